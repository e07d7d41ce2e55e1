"""Alignment of pairs: a known map is found again. `test_preparing` has exact pairs and pairs that are refused."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.medebench_tree import picture, spot
from plantain.bench.prepare.alignment import align, apply_alignment
from plantain.pixels.arrays import Pixels

SIZE = (300, 220)
CAT = picture("chelsea", left=60, top=40, size=SIZE)
COFFEE = picture("coffee", left=120, top=80, size=SIZE)
IHC = picture("ihc", left=80, top=80, size=SIZE)


def moved(pixels: Pixels, turn: float, scale: float, dx: float, dy: float) -> tuple[Pixels, np.ndarray]:
    """The picture seen from elsewhere, in other light, and the map that was used."""
    matrix = cv2.getRotationMatrix2D((SIZE[0] / 2, SIZE[1] / 2), turn, scale)
    matrix[:, 2] += (dx, dy)
    warped = cv2.warpAffine(pixels, matrix, SIZE, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
    return np.clip(np.rint(warped * 0.85 + 18.0), 0, 255).astype(np.uint8), matrix


def corner_error(found: np.ndarray, used: np.ndarray) -> float:
    """How far a corner lies from itself after the used map and the found one, in pixels."""
    corners = np.array([[0, 0, 1], [SIZE[0], 0, 1], [0, SIZE[1], 1], [SIZE[0], SIZE[1], 1]], float)
    there = corners @ used.T
    back = np.hstack([there, np.ones((4, 1))]) @ found.T
    return float(np.abs(back - corners[:, :2]).max())


@pytest.mark.parametrize("pixels", [CAT, COFFEE, IHC], ids=["cat", "coffee", "stain"])
def test_a_known_map_is_found_again_through_light_and_the_change(pixels: Pixels) -> None:
    marked, _ = spot(pixels, (140, 100), 22)
    after, used = moved(pixels, 6.0, 1.07, 9.0, -6.0)
    found = align(marked, after)
    assert found.refusal == ""
    assert corner_error(found.matrix, used) < 1.5
    assert found.quality > 0.9 > found.before
    warped, covered = apply_alignment(after, found.matrix, SIZE)
    place = covered & ~spot(pixels, (140, 100), 34)[1]
    assert np.abs(warped.astype(float) - (pixels * 0.85 + 18.0))[place].mean() < 4.0
