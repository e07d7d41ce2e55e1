"""What is left of a lesion, by the brain's two halves: on slices painted here, so that the answer is known."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from fakes.samples import package_samples
from plantain.findings import load_taxonomy
from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.brain_view import brain_view
from plantain.offline.instruments.pair import pair_of
from plantain.offline.instruments.removal import Removal, removal_of
from plantain.offline.judge import judge_encoded
from plantain.offline.removals import MOST_SPOT, broken
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.encode import encode_source
from plantain.records import Direction, Observations
from plantain.rubrics import MED_BANANA

MIDDLE = MAP_SIDE // 2
BRAIN, LESION = 90, 105
AT, RADIUS = (80, 120), 18


def disc(x: int, y: int, radius: int) -> Mask:
    mask = np.zeros((MAP_SIDE, MAP_SIDE), np.uint8)
    cv2.circle(mask, (x, y), radius, 1, -1)
    return mask.astype(bool)


def painted(*bright: Mask) -> Pixels:
    """A brain without its skull, with places as bright as a lesion and a grain that has no sides."""
    grain = np.random.default_rng(5).normal(0, 3, (MAP_SIDE, MAP_SIDE))
    level = (BRAIN + (grain + grain[:, ::-1]) / 2) * disc(MIDDLE, MIDDLE, 100)
    for place in bright:
        level[place] = LESION
    level = cv2.GaussianBlur(level.astype(np.float32), (0, 0), 1.0)
    return np.repeat(np.clip(np.rint(level), 0, 255).astype(np.uint8)[..., None], 3, axis=2)


def both(x: int, y: int, radius: int) -> Mask:
    return disc(x, y, radius) | disc(MAP_SIDE - 1 - x, y, radius)


def seen(before: Pixels, after: Pixels) -> Removal:
    removal = removal_of(pair_of(before, after, "brain_mri"), disc(MIDDLE, MIDDLE, 98))
    assert removal is not None
    return removal


VESSELS = both(AT[0] + RADIUS + 4, AT[1], 4)
"""Beside the lesion, and at the same place of the other half."""


def test_removal_anatomy_of_both_halves_is_no_rest() -> None:
    removal = seen(painted(disc(*AT, RADIUS), VESSELS), painted(VESSELS))
    assert removal.spot == 0.0


@pytest.mark.parametrize("rest", [disc(AT[0] - 8, AT[1], 4), VESSELS & (np.arange(MAP_SIDE) < MIDDLE)])
def test_removal_rest_without_counterpart_is_seen(rest: Mask) -> None:
    removal = seen(painted(disc(*AT, RADIUS) | rest), painted(rest))
    assert removal.spot > MOST_SPOT


def test_removal_rest_on_a_copy_of_the_lesion_is_seen() -> None:
    """A lesion on both sides: what is left of one is not excused by the other."""
    lesions = both(*AT, RADIUS) | disc(*AT, RADIUS + 4)
    removal = seen(painted(lesions), painted(lesions & ~disc(AT[0] - 4, AT[1], RADIUS)))
    assert removal.spot > MOST_SPOT


@pytest.mark.parametrize(("share", "fails"), [(0.5, True), (0.7, True), (0.9, False), (1.0, False)])
def test_removal_part_of_the_extent_fails(share: float, fails: bool) -> None:
    lesion = disc(*AT, RADIUS)
    columns = AT[0] - RADIUS + share * 2 * RADIUS
    stays = lesion & (np.arange(MAP_SIDE) > columns)
    assert bool(broken(seen(painted(lesion), painted(stays)))) is fails


def test_vault_leaves_the_face_out() -> None:
    """A coronal head 120 wide and 200 high: of a skull that wide the brain takes the upper 0.92 of the width."""
    head = np.zeros((MAP_SIDE, MAP_SIDE), np.float32)
    cv2.ellipse(head, (MIDDLE, 88), (60, 60), 0, 0, 360, 100.0, -1)
    head[88:228, MIDDLE - 60 : MIDDLE + 60] = 100.0
    view = brain_view(head, "coronal")
    rows = np.flatnonzero(view.region("vault").any(axis=1))
    assert rows[0] == pytest.approx(28, abs=3)
    assert rows[-1] == pytest.approx(28 + 0.92 * 120, abs=4)
    assert view.region("brain")[200, MIDDLE]
    whole = brain_view(head, "axial")
    assert np.array_equal(whole.region("vault"), whole.region("brain"))


def test_removal_of_a_meningioma_off_the_dura_is_certified() -> None:
    """Deep in the brain, as one of a ventricle: where a real tumour lies is not the fault of its removal."""
    pixels = [cv2.resize(one, (1024, 1024)) for one in (painted(disc(*AT, RADIUS)), painted())]
    image = replace(
        package_samples()[0].image, modality="brain_mri", plane="axial", sequence="T1", contrast="yes"
    )
    seen = judge_encoded(
        encode_source(pixels[0]),
        encode_source(pixels[1]),
        "Remove the meningioma.",
        replace(image, synthetic=False, labels=("meningioma",)),
        load_taxonomy().get("brain_mri", "meningioma"),
        Direction.REMOVE,
        MED_BANANA,
    )
    assert isinstance(seen, Observations)
    compliance = seen.criteria["instruction_compliance"]
    assert compliance.passed, compliance.evidence
