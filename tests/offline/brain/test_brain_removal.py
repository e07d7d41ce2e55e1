"""Removal of what was added: the slice comes nearer to what it was, and only where the tumour is."""

from __future__ import annotations

import numpy as np
import pytest
from brain_slices import MakeScene

from plantain.offline.brain import RENDERERS
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.blend import dilate


def _psnr(one: Pixels, other: Pixels, where: Mask) -> float:
    error = np.square(one[where].astype(float) - other[where]).mean()
    return float(10 * np.log10(255**2 / error))


CASES = [
    ("glioma", "mni152-t1-axial-z20", "large"),
    ("glioma", "mni152-t1-coronal-y-10", "moderate"),
    ("glioma", "dipy-t1-coronal", "moderate"),
    ("glioma", "dipy-t1-coronal", "large"),
    ("meningioma", "mni152-t1-axial-z20", "large"),
    ("meningioma", "mni152-t1-coronal-y-10", "large"),
]


@pytest.mark.parametrize(("finding", "name", "extent"), CASES)
def test_removal_brings_the_slice_nearer_to_what_it_was(
    scene: MakeScene, finding: str, name: str, extent: str
) -> None:
    given = scene(name, finding, extent=extent, conspicuity="marked", zone=ZONE[finding])
    added = RENDERERS[finding].add(given)
    restored = RENDERERS[finding].remove(scene(name, finding, "remove", pixels=added.pixels))
    assert (restored.mask & added.mask).sum() > 0.25 * added.mask.sum()
    # A plausible normal is not this brain: half a decibel nearer than the tumour was is what holds everywhere.
    was, now = (_psnr(image, given.pixels, added.mask) for image in (added.pixels, restored.pixels))
    assert now > was + 0.5
    far = ~dilate(restored.mask, 20)
    assert np.array_equal(restored.pixels[far], added.pixels[far])


ZONE = {"glioma": "frontal", "meningioma": "convexity"}


@pytest.mark.parametrize("finding", ["glioma", "meningioma"])
def test_removal_gives_the_same_bytes_again(scene: MakeScene, finding: str) -> None:
    given = scene("mni152-t1-axial-z20", finding, extent="large", conspicuity="marked", zone=ZONE[finding])
    added = RENDERERS[finding].add(given).pixels
    first, again = (
        RENDERERS[finding].remove(scene("mni152-t1-axial-z20", finding, "remove", pixels=added))
        for _ in range(2)
    )
    assert np.array_equal(first.pixels, again.pixels)


def test_removal_looks_only_on_the_side_that_was_named(scene: MakeScene) -> None:
    given = scene("mni152-t1-axial-z20", "glioma", side="left", extent="large", conspicuity="marked")
    added = RENDERERS["glioma"].add(given).pixels
    with pytest.raises(CannotShow, match="no glioma"):
        RENDERERS["glioma"].remove(
            scene("mni152-t1-axial-z20", "glioma", "remove", pixels=added, side="right")
        )
