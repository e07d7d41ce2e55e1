"""Pneumothorax on the real radiograph: darker and emptier beyond a hairline, and closed again."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, shared_picture, shared_radiographs

from plantain.offline.chest.pneumothorax import RENDERER
from plantain.offline.rendering import CannotShow


def _texture(pixels: np.ndarray) -> np.ndarray:
    gray = pixels[..., 0].astype(np.float32)
    return np.abs(cv2.GaussianBlur(gray, (0, 0), 1.5) - cv2.GaussianBlur(gray, (0, 0), 4.0))


@pytest.mark.parametrize("side", ["left", "right"])
def test_air_is_darker_emptier_and_on_the_side_that_was_asked_for(scene: MakeScene, side: str) -> None:
    given = scene("Pneumothorax", side=side, extent="large", conspicuity="marked")
    made = RENDERER.add(given)
    rows, columns = np.nonzero(made.mask)
    # The patient's left is image right.
    assert (columns.mean() > 512) == (side == "left")
    assert rows.mean() < 512, "erect: air rises"
    inside = cv2.erode(made.mask.astype(np.uint8), np.ones((15, 15))) > 0
    before, after = given.pixels[..., 0].astype(float), made.pixels[..., 0].astype(float)
    assert (after - before)[inside].mean() < -6
    assert _texture(made.pixels)[inside].mean() < 0.95 * _texture(given.pixels)[inside].mean()
    # A hairline, not a wire: nothing grows brighter by more than a sixth of the display's range.
    assert 3 < (after - before).max() < 42


def test_supine_air_lies_at_the_base(scene: MakeScene) -> None:
    made = RENDERER.add(scene("Pneumothorax", side="right", position="supine", extent="large"))
    assert np.nonzero(made.mask)[0].mean() > 600
    assert "supine" in made.note


def test_air_at_the_base_of_an_erect_film_cannot_be_shown(scene: MakeScene) -> None:
    with pytest.raises(CannotShow, match="supine"):
        RENDERER.add(scene("Pneumothorax", zone="basal", position="erect"))


def test_a_chest_without_a_pleural_line_is_left_alone(scene: MakeScene) -> None:
    with pytest.raises(CannotShow, match="no pneumothorax found"):
        RENDERER.remove(scene("Pneumothorax", "remove"))


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_what_was_drawn_is_taken_back(scene: MakeScene) -> None:
    for path in shared_radiographs()[2:5]:
        pixels = shared_picture(path)
        made = RENDERER.add(
            scene("Pneumothorax", pixels=pixels, side="right", extent="large", conspicuity="marked")
        )
        back = RENDERER.remove(scene("Pneumothorax", "remove", pixels=made.pixels, side="right"))
        assert psnr_inside(back.pixels, pixels, made.mask) > psnr_inside(made.pixels, pixels, made.mask) + 0.5
