"""Meningioma: on the inner table or the falx, outside the brain's tissue, strong only after contrast."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from brain_slices import MakeScene, plain_brain
from scipy import ndimage

from plantain.offline.brain.meningioma import add
from plantain.offline.rendering import CannotShow


@pytest.mark.parametrize(
    "name", ["mni152-t1-axial-z5", "mni152-t1-axial-z20", "dipy-t1-coronal", "sagittal:25"]
)
def test_meningioma_of_the_convexity_sits_broad_on_the_inner_table(scene: MakeScene, name: str) -> None:
    # With contrast the tumour is plain to see; half brightness leaves it room.
    half = (scene(name, "meningioma").pixels * 0.45).astype(np.uint8)
    for seed in range(3):
        given = scene(
            name, "meningioma", pixels=half, sequence="T1+C", zone="convexity", extent="moderate",
            conspicuity="marked", seed=seed,
        )  # fmt: skip
        made = add(given)
        tumour = made.pixels[..., 0].astype(int) - half[..., 0] > 30
        brain = plain_brain((half > 9).astype(np.uint8) * 255)
        assert (tumour & ~ndimage.binary_dilation(brain, iterations=4)).sum() < 0.01 * tumour.sum()
        edge = brain & ~ndimage.binary_erosion(brain, iterations=12)
        # Base of 26 to 34 mm at about 0.2 mm a pixel: at least 60 of its pixels lie within 12 pixels of the table.
        assert (tumour & edge).sum() > 60 * 8


@pytest.mark.parametrize("side", ["left", "right"])
def test_meningioma_of_the_falx_touches_the_midline_on_the_asked_side(scene: MakeScene, side: str) -> None:
    half = (scene("mni152-t1-axial-z20", "meningioma").pixels * 0.45).astype(np.uint8)
    given = scene(
        "mni152-t1-axial-z20", "meningioma", pixels=half, sequence="T1+C", zone="falx", side=side,
        extent="moderate", conspicuity="marked",
    )  # fmt: skip
    tumour = add(given).pixels[..., 0].astype(int) - half[..., 0] > 30
    columns = np.flatnonzero(tumour.sum(axis=0) > 5)
    middle = ndimage.center_of_mass(plain_brain((half > 9).astype(np.uint8) * 255))[1]
    nearest = columns.min() - middle if side == "left" else middle - columns.max()
    assert -12 < nearest < 25  # pixels of about 0.23 mm
    offset = ndimage.center_of_mass(tumour)[1] - middle
    assert offset > 10 if side == "left" else offset < -10


def test_meningioma_of_the_falx_cannot_be_shown_on_a_sagittal_slice(scene: MakeScene) -> None:
    with pytest.raises(CannotShow, match="sagittal"):
        add(scene("sagittal:25", "meningioma", zone="falx"))


def test_meningioma_without_contrast_is_about_as_bright_as_grey_matter(scene: MakeScene) -> None:
    given = scene("dipy-t1-coronal", "meningioma", zone="convexity", extent="large", conspicuity="marked")
    made = add(given)
    change = ndimage.gaussian_filter(made.pixels[..., 0].astype(float) - given.pixels[..., 0], 6)
    core = change < 0.6 * change.min()
    level = made.pixels[..., 0][core].mean()
    brain = given.pixels[..., 0][plain_brain(given.pixels)]
    assert np.percentile(brain, 5) < level < np.percentile(brain, 60)
    assert int(made.pixels.max()) <= int(given.pixels.max()) + 3


def test_cortex_under_a_meningioma_is_pushed_inwards(scene: MakeScene) -> None:
    given = scene("mni152-t1-axial-z5", "meningioma", zone="convexity", extent="large", conspicuity="marked")
    made = add(given)
    # More than the tumour itself is meant to change: half width times height of a dome is under 0.6 of the mask.
    bright = (given.pixels[..., 0] > 200).sum() - (made.pixels[..., 0] > 200).sum()
    assert 0 < bright < made.mask.sum()


@pytest.mark.parametrize("width", [614, 1024])
def test_nothing_moves_outside_the_brain(scene: MakeScene, width: int) -> None:
    # Squeezed as some published slices are: the tumour is as large as the head is narrow.
    whole = scene("mni152-t1-axial-z20", "meningioma").pixels
    squeezed = cv2.resize(whole, (width, 1024), interpolation=cv2.INTER_AREA)
    pixels = np.pad(squeezed, ((0, 0), ((1024 - width) // 2,) * 2, (0, 0)))
    outside = ~ndimage.binary_dilation(plain_brain(pixels), iterations=8)
    for seed in (0, 2):
        made = add(
            scene("mni152-t1-axial-z20", "meningioma", pixels=pixels, zone="falx", extent="large", seed=seed)
        )
        change = np.abs(made.pixels[..., 0].astype(int) - pixels[..., 0])
        assert (change > 8).sum() > 4000
        assert (change[outside] > 8).sum() < 20
