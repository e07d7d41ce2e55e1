"""Pituitary tumour: only where the sella or its cistern is in the slice, on the midline, out of the brain."""

from __future__ import annotations

import numpy as np
import pytest
from brain_slices import MakeScene, plain_brain
from scipy import ndimage

from plantain.models.offline.brain.pituitary import add, remove
from plantain.models.offline.rendering import CannotShow


@pytest.mark.parametrize(
    "name",
    [
        "mni152-t1-axial-z5",
        "mni152-t1-axial-z20",
        "mni152-t1-axial-z40",
        "mni152-t1-coronal-y-10",
        "coronal:2",
        "coronal:-40",
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


@pytest.mark.parametrize("name", ["axial:-22", "sagittal:0"])
def test_pituitary_removal_gives_the_cistern_back(scene: MakeScene, name: str) -> None:
    given = scene(name, "pituitary", extent="moderate", conspicuity="marked")
    added = add(given)
    restored = remove(scene(name, "pituitary", "remove", pixels=added.pixels))
    where = added.mask
    error = [
        float(np.square(image.pixels[where].astype(float) - given.pixels[where]).mean())
        for image in (added, restored)
    ]
    assert error[1] < 0.3 * error[0]
