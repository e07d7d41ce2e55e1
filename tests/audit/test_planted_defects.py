"""Planted defects change the edit as described, and are refused where they do not apply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fakes.samples import prepared_of
from plantain.audit.planted_defects import DEFECTS, CleanEdit, NotApplicable, plant
from plantain.findings import load_taxonomy
from plantain.offline.language import Intent
from plantain.pixels.decode import decode
from plantain.records import BUILD_DIRECTIONS, Direction

REMOVALS = ("moved elsewhere", "half left")
BY_NAME = {defect.name: defect for defect in DEFECTS}


@pytest.fixture(scope="module")
def clean() -> CleanEdit:
    image, data = prepared_of("chest_xray")
    original = np.ascontiguousarray(decode(data)[:768, 256:])  # all lengths are in units of the frame's size
    ys, xs = np.mgrid[:768, :768]
    inside = np.clip((45 - np.hypot(xs - 525, ys - 225)) / 19, 0, 1)
    edited = np.clip(np.rint(original + 40 * inside[..., None]), 0, 255).astype(np.uint8)
    finding = load_taxonomy().get("chest_xray", "Lung Lesion")
    intent = Intent("Lung Lesion", Direction.ADD, side="left", zone="upper")
    return CleanEdit(
        image, finding, Direction.ADD, intent, "Add one.", original, edited, inside > 0, "local", "lesion"
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_every_defect_is_deterministic_and_violates_a_criterion(clean, name):
    assert len(DEFECTS) == len(BY_NAME) and all(BY_NAME[name].violates[one] for one in BUILD_DIRECTIONS)
    if name in REMOVALS:
        clean = replace(clean, direction=Direction.REMOVE, original=clean.edited, edited=clean.original)
    first, second = (plant(BY_NAME[name], clean, 5) for _ in range(2))
    assert np.array_equal(first.edited, second.edited)
    assert not np.array_equal(first.edited, clean.edited)
    assert first.mask is clean.mask


def test_no_change_is_the_original(clean):
    assert np.array_equal(plant(BY_NAME["no change"], clean, 1).edited, clean.original)


def test_wrong_side_leaves_the_named_side_alone(clean):
    spoilt = plant(BY_NAME["wrong side"], clean, 1)
    moved = np.abs(spoilt.edited.astype(int) - clean.original).max(axis=2) > 3
    assert not moved[:, 420:].any()
    assert moved[:, :360].any()


def test_change_outside_avoids_the_mask(clean):
    spoilt = plant(BY_NAME["change outside"], clean, 3)
    moved = (spoilt.edited != clean.edited).any(axis=2)
    assert not (moved & clean.mask).any()


def test_a_diffuse_edit_has_no_seam_and_no_outside(clean):
    diffuse = CleanEdit(**{**{f: getattr(clean, f) for f in CleanEdit.__slots__}, "support": "diffuse"})
    for name in ("hard seam", "change outside", "global brightness", "lost grain"):
        with pytest.raises(NotApplicable):
            plant(BY_NAME[name], diffuse, 1)


def test_half_left_keeps_half_of_a_lesion_and_moved_elsewhere_changes_its_side(clean):
    removal = replace(clean, direction=Direction.REMOVE, original=clean.edited, edited=clean.original)
    half = plant(BY_NAME["half left"], removal, 1).edited.astype(int)
    left_over = (half - clean.original)[clean.mask].sum() / (clean.edited.astype(int) - clean.original)[
        clean.mask
    ].sum()
    assert 0.4 < left_over < 0.6
    moved = plant(BY_NAME["moved elsewhere"], removal, 1).edited.astype(int) - clean.original
    assert not moved[:, 420:].any() and moved[:, :360].max() > 20
    with pytest.raises(NotApplicable):
        plant(BY_NAME["half left"], clean, 1)
