"""The judge's map of the brain, on heads painted here and on slices that came with packages, turned here."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.samples import package_samples
from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.brain_view import brain_view
from plantain.pixels.arrays import Field, Mask

MIDDLE = (MAP_SIDE - 1) / 2
BRAIN = 90.0


def oval(scale: float) -> Mask:
    ys, xs = np.mgrid[:MAP_SIDE, :MAP_SIDE]
    return np.asarray(np.hypot((xs - MIDDLE) / 88, (ys - MIDDLE) / 108) < scale, bool)


def head(scalp: float, bone: float, *, gyri: bool = True) -> Field:
    """Scalp, a bone of two pixels and more with black in it, and a brain with dark furrows that run inwards from it."""
    level = np.zeros((MAP_SIDE, MAP_SIDE), np.float32)
    level[oval(1.0)], level[oval(0.94)], level[oval(0.94 - bone)] = scalp, 6.0, BRAIN
    if gyri:
        ys, xs = np.mgrid[:MAP_SIDE, :MAP_SIDE]
        turn = np.arctan2(ys - MIDDLE, xs - MIDDLE)
        level[oval(0.94 - bone) & ~oval(0.8) & (np.sin(24 * turn) > 0.75)] = 40.0
    return np.asarray(cv2.GaussianBlur(level, (0, 0), 0.8), np.float32)


def overlap(one: Mask, other: Mask) -> float:
    return float((one & other).sum() / (one | other).sum())


@pytest.mark.parametrize(("scalp", "bone"), [(30.0, 0.04), (25.0, 0.08), (200.0, 0.03), (200.0, 0.1)])
def test_inner_table_is_found_under_faint_scalp_and_thin_bone(scalp: float, bone: float) -> None:
    brain = brain_view(head(scalp, bone), "axial").regions["brain"]
    assert overlap(brain, oval(0.94 - bone)) > 0.95


def test_furrows_of_a_brain_without_its_skull_are_not_taken_for_bone() -> None:
    level = np.where(oval(0.86), head(200.0, 0.04), 0).astype(np.float32)
    assert overlap(brain_view(level, "axial").regions["brain"], oval(0.86)) > 0.95


@pytest.mark.parametrize("degrees", [-8, 8])
def test_midline_follows_a_head_that_is_turned(degrees: int) -> None:
    sample = next(one for one in package_samples() if one.image.id == "mni152-t1-axial-z20")
    grey = np.asarray(sample.pixels[..., 0], np.float32)
    side = max(grey.shape)
    square = np.zeros((side, side), np.float32)
    top, left = (side - grey.shape[0]) // 2, (side - grey.shape[1]) // 2
    square[top : top + grey.shape[0], left : left + grey.shape[1]] = grey
    square = cv2.resize(square, (MAP_SIDE - 40, MAP_SIDE - 40), interpolation=cv2.INTER_AREA)
    level = np.pad(square, 20).astype(np.float32)
    turn = cv2.getRotationMatrix2D((MIDDLE, MIDDLE), degrees, 1.0)
    upright, turned = (
        brain_view(np.asarray(one, np.float32), "axial")
        for one in (level, cv2.warpAffine(level, turn, level.shape[::-1]))
    )
    assert upright.lean == 0
    # Counterclockwise, as the array library means it, the top goes to the left and the chin to the right.
    assert turned.lean == pytest.approx(np.tan(np.deg2rad(degrees)), abs=0.04)
    left_half = upright.side("left")
    assert left_half is not None
    expected = cv2.warpAffine(left_half.astype(np.uint8), turn, level.shape[::-1]).astype(bool)
    found = turned.side("left")
    assert found is not None
    brain = turned.regions["brain"]
    assert overlap(found & brain, expected & brain) > 0.93
