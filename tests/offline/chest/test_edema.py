"""Edema: both lungs alike, around the hila or at the bases; taken off both again."""

from __future__ import annotations

import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, shared_picture, shared_radiographs

from plantain.offline.chest import RENDERERS
from plantain.offline.chest.anatomy import find_chest
from plantain.offline.rendering import CannotShow

EDEMA = RENDERERS["Edema"]


def test_both_lungs_turn_hazy_about_alike(scene: MakeScene) -> None:
    for zone, low in (("perihilar", False), ("basal", True)):
        given = scene("Edema", zone=zone, extent="moderate", conspicuity="moderate")
        made = EDEMA.add(given)
        change = made.pixels[..., 0].astype(float) - given.pixels[..., 0]
        chest = find_chest(given.pixels)
        sums = [change[lung.mask].mean() for lung in (chest.right, chest.left)]
        assert min(sums) > 1.0 and max(sums) < 2.5 * min(sums)
        rows = np.nonzero(made.mask)[0]
        share = (rows.mean() - chest.right.top) / (chest.right.bottom - chest.right.top)
        assert (share > 0.7) == low


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_marked_edema_is_taken_off_and_clear_lungs_are_left(scene: MakeScene) -> None:
    refused = 0
    for path in shared_radiographs()[:2]:
        pixels = shared_picture(path)
        made = EDEMA.add(
            scene("Edema", pixels=pixels, zone="perihilar", extent="large", conspicuity="marked")
        )
        back = EDEMA.remove(scene("Edema", "remove", pixels=made.pixels, zone="perihilar"))
        assert psnr_inside(pixels, back.pixels, made.mask) > psnr_inside(pixels, made.pixels, made.mask) + 1
        try:
            EDEMA.remove(scene("Edema", "remove", pixels=pixels))
        except CannotShow:
            refused += 1
    assert refused == 2
