"""Draining an effusion on real radiographs: into the angle and not into the abdomen, its grain kept."""

from __future__ import annotations

import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, shared_picture, shared_radiographs

from plantain.offline.chest.anatomy import find_chest
from plantain.offline.chest.effusion import RENDERER
from plantain.offline.rendering import CannotShow
from plantain.pixels.blend import dilate
from plantain.pixels.grain import grain_sigma

pytestmark = pytest.mark.skipif(
    not shared_radiographs(), reason="the shared example radiographs are not here"
)


def test_a_drained_angle_is_near_the_healthy_one_and_keeps_its_grain(scene: MakeScene) -> None:
    pixels = shared_picture(shared_radiographs()[3])
    words = {"side": "right", "extent": "moderate", "conspicuity": "moderate"}
    ill = RENDERER.add(scene("Pleural Effusion", pixels=pixels, **words))
    healed = RENDERER.remove(scene("Pleural Effusion", "remove", pixels=ill.pixels, **words))
    # Measured 5 dB and more on this film; 3 dB is half the error's power.
    assert psnr_inside(healed.pixels, pixels, ill.mask) > psnr_inside(ill.pixels, pixels, ill.mask) + 3
    inside = healed.mask & ill.mask
    kept = grain_sigma(healed.pixels[..., 0], inside) / grain_sigma(pixels[..., 0], inside)
    assert 0.6 < kept < 1.7
    changed = (healed.pixels != ill.pixels).any(axis=2)
    assert not changed[~dilate(healed.mask, 20)].any()


@pytest.mark.parametrize("number", range(len(shared_radiographs())))
def test_nothing_is_drained_from_films_that_look_healthy(scene: MakeScene, number: int) -> None:
    pixels = shared_picture(shared_radiographs()[number])
    with pytest.raises(CannotShow, match="no pleural effusion found"):
        RENDERER.remove(scene("Pleural Effusion", "remove", pixels=pixels))


def test_a_smooth_round_nodule_is_no_marker(scene: MakeScene) -> None:
    pixels = shared_picture(shared_radiographs()[0]).copy()
    rows, columns = np.mgrid[:1024, :1024]
    nodule = 75 * np.exp(-0.5 * (((rows - 330) ** 2 + (columns - 690) ** 2) / 8.0**2))
    drawn = np.clip(pixels + nodule[..., None], 0, 255).astype(np.uint8)
    assert not find_chest(drawn).protected[322:338, 682:698].any()
