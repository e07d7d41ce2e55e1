"""Pituitary tumour: only where the sella or its cistern is in the slice, on the midline, out of the brain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from brain_slices import SHARED, MakeScene, plain_brain
from scipy import ndimage

from plantain.offline.brain.pituitary import add, remove
from plantain.offline.rendering import CannotShow
from plantain.pixels.decode import decode_untrusted
from plantain.pixels.prepare import settle_grey


@pytest.mark.parametrize(
    "name",
    [
        "mni152-t1-axial-z5",
        "mni152-t1-axial-z20",
        "mni152-t1-axial-z40",
        "mni152-t1-coronal-y-10",
        "dipy-t1-coronal",
        "coronal:-40",
        "coronal:-12",
        "coronal:12",
        "coronal:25",
        "sagittal:25",
        "sagittal:40",
    ],
)
def test_pituitary_cannot_be_shown_on_slices_without_the_sella(scene: MakeScene, name: str) -> None:
    with pytest.raises(CannotShow, match=r"sella|ventricle"):
        add(scene(name, "pituitary"))


@pytest.mark.parametrize("name", ["axial:-22"])
def test_pituitary_lies_on_the_midline_in_what_was_not_brain(scene: MakeScene, name: str) -> None:
    given = scene(name, "pituitary", extent="moderate", conspicuity="marked")
    made = add(given)
    change = made.pixels[..., 0].astype(int) - given.pixels[..., 0] > 40
    tissue = given.pixels[..., 0] > 60
    assert (change & tissue).sum() < 0.08 * change.sum()
    middle = ndimage.center_of_mass(plain_brain(given.pixels))[1]
    assert abs(ndimage.center_of_mass(change)[1] - middle) < 15


@pytest.mark.parametrize(
    ("name", "extent"),
    [
        ("axial:-26", "large"),
        ("axial:-22", "moderate"),
        ("axial:-20", "moderate"),
        ("sagittal:0", "small"),
        ("sagittal:2", "moderate"),
        ("coronal:1", "large"),
        ("coronal:6", "moderate"),
    ],
)
def test_pituitary_removal_gives_the_cistern_back(scene: MakeScene, name: str, extent: str) -> None:
    given = scene(name, "pituitary", extent=extent, conspicuity="marked")
    added = add(given)
    restored = remove(scene(name, "pituitary", "remove", pixels=added.pixels))
    where = added.mask
    error = [
        float(np.square(image.pixels[where].astype(float) - given.pixels[where]).mean())
        for image in (added, restored)
    ]
    # A large mass that pressed brain away leaves more room than there was: half the squared error at worst.
    assert error[1] < (0.5 if extent == "large" else 0.3) * error[0]
    # No ghost of the outline: what was empty is nearly so again.
    empty = where & (given.pixels[..., 0] < 2)
    assert (restored.pixels[..., 0][empty] > 25).mean() < 0.06


@pytest.mark.parametrize(
    "name",
    [
        "axial:-40",
        "axial:-22",
        "axial:-14",
        "axial:5",
        "sagittal:0",
        "sagittal:4",
        "coronal:1",
        "coronal:-30",
        "dipy-t1-coronal",
    ],
)
def test_pituitary_removal_finds_no_mass_in_health(scene: MakeScene, name: str) -> None:
    with pytest.raises(CannotShow, match="no pituitary tumour found"):
        remove(scene(name, "pituitary", "remove"))


@pytest.mark.parametrize("path", sorted(SHARED.glob("Brain-MRI-remove/*/*.jpeg")), ids=lambda path: path.stem)
def test_pituitary_removal_finds_no_mass_in_published_slices_without_one(
    scene: MakeScene, path: Path
) -> None:
    pixels = settle_grey(decode_untrusted(path.read_bytes(), path.name))
    for sequence in ("T1", "T2", "FLAIR"):
        given = scene("axial:-22", "pituitary", "remove", pixels=pixels, sequence=sequence)
        with pytest.raises(CannotShow):
            remove(given)
