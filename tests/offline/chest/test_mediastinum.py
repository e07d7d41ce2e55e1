"""A wide mediastinum: its borders moved out above the heart, the spine left in place, and moved back."""

from __future__ import annotations

import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, shared_picture, shared_radiographs

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
