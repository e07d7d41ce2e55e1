"""What holds for every brain renderer on real slices: same bytes again, nothing touched outside, refusals."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import skimage.data
from brain_slices import SHARED, MakeScene

from fakes.samples import sample_of
from plantain.offline.brain import RENDERERS
from plantain.offline.rendering import CannotShow, Scene
from plantain.pixels.blend import dilate
from plantain.pixels.prepare import prepare

PLACES = [
    ("glioma", "mni152-t1-axial-z20"),
    ("glioma", "mni152-t1-coronal-y-10"),
    ("glioma", "dipy-t1-coronal"),
    ("glioma", "sagittal:25"),
    ("meningioma", "mni152-t1-axial-z5"),
    ("meningioma", "mni152-t1-axial-z40"),
    ("meningioma", "dipy-t1-coronal"),
    ("meningioma", "sagittal:25"),
    ("pituitary", "axial:-22"),
    ("pituitary", "sagittal:0"),
]


@pytest.mark.parametrize(("finding", "name"), PLACES)
def test_add_touches_nothing_beyond_twenty_pixels_of_its_mask_and_shows_more_when_asked(
    scene: MakeScene, finding: str, name: str
) -> None:
    changes = []
    for extent, conspicuity in (("small", "subtle"), ("large", "marked")):
        given = scene(name, finding, extent=extent, conspicuity=conspicuity)
        before = given.pixels.copy()
        made = RENDERERS[finding].add(given)
        far = ~dilate(made.mask, 20)
        assert made.pixels.shape == before.shape and made.pixels.dtype == np.uint8
        assert made.mask.any() and made.support == "local"
        assert np.array_equal(made.pixels[far], before[far])
        assert np.array_equal(given.pixels, before), "the original was written to"
        assert np.array_equal(made.pixels[..., 0], made.pixels[..., 2])
        changes.append(np.abs(made.pixels.astype(int) - before.astype(int)).sum())
    assert changes[1] > 2 * changes[0]


@pytest.mark.parametrize(("finding", "name"), PLACES[::3])
def test_add_gives_the_same_bytes_for_the_same_seed_and_others_for_another(
    scene: MakeScene, finding: str, name: str
) -> None:
    first, again, other = (RENDERERS[finding].add(scene(name, finding, seed=seed)) for seed in (3, 3, 4))
    assert np.array_equal(first.pixels, again.pixels)
    assert np.array_equal(first.mask, again.mask)
    assert first.note == again.note
    assert not np.array_equal(first.pixels, other.pixels)


@pytest.mark.parametrize("finding", ["glioma", "meningioma", "pituitary"])
def test_nothing_is_drawn_on_or_taken_from_what_is_not_a_brain(scene: MakeScene, finding: str) -> None:
    chest = sample_of("chest_xray").pixels
    fundus = skimage.data.retina()
    green = np.repeat(fundus[..., 1:2], 3, axis=2)
    noise = np.random.default_rng(0).integers(0, 256, (1024, 1024, 1), np.uint8).repeat(3, axis=2)
    blank = np.zeros((1024, 1024, 3), np.uint8)
    for pixels in (prepare(chest)[0], prepare(fundus)[0], prepare(green)[0], noise, blank):
        for work in (RENDERERS[finding].add, RENDERERS[finding].remove):
            with pytest.raises(CannotShow):
                work(scene("mni152-t1-axial-z20", finding, pixels=pixels))


@pytest.mark.parametrize("finding", ["glioma", "meningioma", "pituitary"])
@pytest.mark.parametrize("name", ["mni152-t1-axial-z20", "mni152-t1-coronal-y-10", "dipy-t1-coronal"])
def test_removal_finds_nothing_in_a_healthy_slice(scene: MakeScene, finding: str, name: str) -> None:
    with pytest.raises(CannotShow, match=f"no {finding}"):
        RENDERERS[finding].remove(scene(name, finding, "remove"))


def _shared_slices() -> list[Path]:
    return sorted((SHARED / "Brain-MRI-remove" / "normal").glob("*.jpeg"))


@pytest.mark.skipif(not _shared_slices(), reason="the shared example slices are not here")
def test_renderers_keep_scalp_and_markers_on_slices_with_a_skull(scene: MakeScene) -> None:
    for path in _shared_slices()[:2]:
        gray = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        assert gray is not None
        pixels = np.repeat(gray[..., None], 3, axis=2)
        for finding in ("glioma", "meningioma"):
            given: Scene = scene(
                "mni152-t1-axial-z20", finding, pixels=pixels, sequence="FLAIR", plane="axial"
            )
            made = RENDERERS[finding].add(given)
            changed = (made.pixels != pixels).any(axis=2)
            # The scalp, seen independently: the outermost 12 pixels of everything that is not background.
            body = cv2.morphologyEx((gray > 12).astype(np.uint8), cv2.MORPH_CLOSE, np.ones((25, 25)))
            depth = cv2.distanceTransform(body, cv2.DIST_L2, 5)
            assert not (changed & (depth < 12)).any()
