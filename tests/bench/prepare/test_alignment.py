"""Alignment of pairs: known maps are found again, true pairs pass, others are refused."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.medebench_tree import picture, spot
from plantain.bench.prepare.alignment import align, apply_alignment
from plantain.bench.prepare.regions_proposed import DifferenceProposer
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


def test_an_exact_pair_stays_exact_and_another_size_is_brought_to_the_first() -> None:
    found = align(spot(CAT, (140, 100), 22)[0], CAT)
    assert (found.method, found.overlap, found.shift) == ("as it is", 1.0, 0.0)
    assert np.allclose(found.matrix, np.eye(2, 3))
    found = align(CAT, cv2.resize(CAT, (600, 440), interpolation=cv2.INTER_CUBIC))
    assert np.allclose(found.matrix[:, :2], np.eye(2) / 2, atol=0.003)
    assert np.abs(found.matrix[:, 2]).max() < 1.0
    assert found.quality > 0.95


@pytest.mark.parametrize(("one", "other"), [(CAT, COFFEE), (COFFEE, IHC), (IHC, CAT)])
def test_pictures_of_different_things_are_refused(one: Pixels, other: Pixels) -> None:
    found = align(one, other)
    assert "alignment quality" in found.refusal or "overlap" in found.refusal


def test_the_difference_proposes_the_planted_spot() -> None:
    marked, wide = spot(CAT, (140, 100), 22)
    bright = np.clip(np.rint(CAT * 0.9 + 14.0), 0, 255).astype(np.uint8)
    found = DifferenceProposer().propose(marked, bright, "mole")
    assert 1 <= len(found) <= 3
    union = (found[0].mask | wide).sum()
    assert (found[0].mask & wide).sum() / union > 0.75
    assert all(0.0 <= proposal.score <= 1.0 for proposal in found)
    assert DifferenceProposer().propose(marked, None, "mole") == ()
