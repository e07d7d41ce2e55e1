"""A wide mediastinum: its borders moved out above the heart, the spine left in place, and moved back."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, rg1, shared_picture, shared_radiographs

from plantain.offline.chest import RENDERERS
from plantain.offline.chest.anatomy import find_chest
from plantain.offline.rendering import CannotShow
from plantain.pixels.blend import dilate

WIDE = RENDERERS["Enlarged Cardiomediastinum"]


def test_lung_beside_the_mediastinum_is_covered_and_the_spine_stays(scene: MakeScene) -> None:
    given = scene("Enlarged Cardiomediastinum", extent="moderate", conspicuity="moderate")
    made = WIDE.add(given)
    assert made.support == "warp"
    assert np.array_equal(made.pixels[~dilate(made.mask, 20)], given.pixels[~dilate(made.mask, 20)])
    chest = find_chest(given.pixels)
    change = made.pixels[..., 0].astype(float) - given.pixels[..., 0]
    top, bottom = int(chest.right.top), int(chest.right.bottom)
    rows = slice(top + int(0.16 * (bottom - top)), top + int(0.34 * (bottom - top)))
    for lung, outward in ((chest.right, -1), (chest.left, 1)):
        border = int(lung.medial_at(np.array([(rows.start + rows.stop) / 2]))[0])
        beside = sorted((border + outward * 4, border + outward * 30))
        assert change[rows, beside[0] : beside[1]].mean() > 3
    middle = int(chest.midline)
    assert np.abs(change[rows, middle - 6 : middle + 7]).max() < 2
    again = WIDE.add(scene("Enlarged Cardiomediastinum", extent="moderate", conspicuity="moderate"))
    assert np.array_equal(made.pixels, again.pixels)


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_it_is_moved_back_and_a_narrow_one_is_left(scene: MakeScene) -> None:
    for path in shared_radiographs()[1:3]:
        pixels = shared_picture(path)
        with pytest.raises(CannotShow, match="no wide mediastinum"):
            WIDE.remove(scene("Enlarged Cardiomediastinum", "remove", pixels=pixels))
        made = WIDE.add(
            scene("Enlarged Cardiomediastinum", pixels=pixels, extent="large", conspicuity="marked")
        )
        back = WIDE.remove(scene("Enlarged Cardiomediastinum", "remove", pixels=made.pixels))
        assert psnr_inside(pixels, back.pixels, made.mask) > psnr_inside(pixels, made.pixels, made.mask) + 2


def test_grain_is_kept_where_the_picture_is_pulled_apart(scene: MakeScene) -> None:
    plane = rg1()[0][..., 0] + np.random.default_rng(3).normal(0, 4, rg1()[0].shape[:2])
    noisy = np.clip(plane, 0, 255).astype(np.uint8)[..., None].repeat(3, axis=2)
    given = scene("Enlarged Cardiomediastinum", pixels=noisy, extent="large", conspicuity="marked")
    made = WIDE.add(given)
    # Blind to slopes (Immerkaer 1996).
    kernel = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32) / 6
    before, after = (
        np.abs(cv2.filter2D(one[..., 0].astype(np.float32), -1, kernel))
        for one in (given.pixels, made.pixels)
    )
    rows = np.nonzero(made.mask)[0]
    band = np.zeros_like(made.mask)
    band[int(np.median(rows)) - 40 : int(np.median(rows)) + 40] = True
    # By eye the spine is at x 520: what lies within 130 pixels of it is pulled apart.
    band[:, :390] = band[:, 650:] = False
    inside = band & made.mask
    assert after[inside].mean() > 0.85 * before[inside].mean()
