"""What holds for every chest renderer on a real radiograph: same bytes again, nothing touched outside, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.data
from chest_pictures import MakeScene, shared_picture, shared_radiographs

from plantain.offline.chest import RENDERERS
from plantain.offline.rendering import CannotShow
from plantain.pixels.blend import dilate
from plantain.pixels.prepare import prepare

PLACES = [
    ("Atelectasis", "right", "basal"),
    ("Consolidation", "left", "mid"),
    ("Edema", None, "perihilar"),
    ("Fracture", "right", "posterior rib"),
    ("Lung Lesion", "left", "upper"),
    ("Lung Opacity", "left", "upper"),
    ("Pleural Effusion", "left", None),
    ("Pneumonia", "right", "mid"),
    ("Pneumothorax", "left", None),
]


@pytest.mark.parametrize(("finding", "side", "zone"), PLACES)
def test_add_keeps_to_its_mask_repeats_itself_and_shows_more_when_asked(
    scene: MakeScene, finding: str, side: str | None, zone: str | None
) -> None:
    changes = []
    for extent, conspicuity in (("small", "subtle"), ("large", "marked")):
        given = scene(finding, side=side, zone=zone, extent=extent, conspicuity=conspicuity)
        before = given.pixels.copy()
        made = RENDERERS[finding].add(given)
        assert made.pixels.shape == before.shape and made.pixels.dtype == np.uint8
        assert made.mask.any() and made.support == "local"
        far = ~dilate(made.mask, 20)
        assert np.array_equal(made.pixels[far], before[far])
        assert np.array_equal(given.pixels, before), "the original was written to"
        assert np.array_equal(made.pixels[..., 0], made.pixels[..., 2])
        changes.append(np.abs(made.pixels.astype(int) - before).sum())
    assert changes[1] > 2 * changes[0]
    again = RENDERERS[finding].add(
        scene(finding, side=side, zone=zone, extent=extent, conspicuity=conspicuity)
    )
    assert np.array_equal(made.pixels, again.pixels)
    assert np.array_equal(made.mask, again.mask) and made.note == again.note


@pytest.mark.parametrize("finding", ["Consolidation", "Fracture", "Atelectasis"])
def test_another_seed_and_another_variant_are_another_drawing(scene: MakeScene, finding: str) -> None:
    first, other = (RENDERERS[finding].add(scene(finding, seed=seed, side="left")) for seed in (3, 4))
    varied = RENDERERS[finding].add(scene(finding, seed=3, side="left", variant=2))  # type: ignore[arg-type]
    assert not np.array_equal(first.pixels, other.pixels)
    assert not np.array_equal(first.pixels, varied.pixels)


@pytest.mark.parametrize("finding", sorted(RENDERERS))
def test_nothing_is_drawn_on_or_taken_from_what_is_not_a_frontal_chest(
    scene: MakeScene, finding: str
) -> None:
    retina = prepare(np.repeat(skimage.data.retina()[..., 1:2], 3, axis=2))[0]
    noise = np.random.default_rng(0).integers(0, 256, (1024, 1024, 1), np.uint8).repeat(3, axis=2)
    blank = np.zeros((1024, 1024, 3), np.uint8)
    for work in (RENDERERS[finding].add, RENDERERS[finding].remove):
        for pixels in (retina, noise, blank):
            with pytest.raises(CannotShow):
                work(scene(finding, pixels=pixels))
        with pytest.raises(CannotShow, match="lateral"):
            work(scene(finding, view="lateral"))


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
@pytest.mark.parametrize("finding", ["Consolidation", "Edema", "Fracture"])
def test_markers_and_the_black_border_stay_as_they_are(scene: MakeScene, finding: str) -> None:
    for path in shared_radiographs()[:2]:
        pixels = shared_picture(path)
        made = RENDERERS[finding].add(scene(finding, pixels=pixels, extent="large", conspicuity="marked"))
        changed = (made.pixels != pixels).any(axis=2)
        assert changed.any()
        assert not changed[pixels[..., 0] > 250].any()
        # Collimation and padding, seen independently: columns and rows that are black from end to end.
        assert not changed[:, (pixels[..., 0] < 8).all(axis=0)].any()
        assert not changed[(pixels[..., 0] < 8).all(axis=1)].any()
