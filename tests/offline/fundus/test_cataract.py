"""Cataract: haze over the whole field, a sharp border, black outside, and contrast given back."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.scenes import SceneMaker
from plantain.offline.fundus import RENDERERS
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Pixels

CATARACT = RENDERERS["Cataract"]


def _detail(pixels: Pixels) -> float:
    green = pixels[200:800, 300:900, 1].astype(float)
    return float((green - cv2.GaussianBlur(green, (0, 0), 2.0)).std())


def _border_slope(pixels: Pixels) -> float:
    """Steepest fall across the field's border along rays from the middle, median over rays, in grey levels a pixel."""
    level = pixels.astype(float).mean(axis=2)
    falls = []
    for angle in np.linspace(0.1, 6.2, 40):
        reach = np.arange(440, 511)
        xs = np.clip(np.rint(512 + reach * np.cos(angle)), 0, 1023).astype(int)
        ys = np.clip(np.rint(512 + reach * np.sin(angle)), 0, 1023).astype(int)
        falls.append(float(np.max(-np.diff(level[ys, xs]), initial=0)))
    return float(np.median(falls))


def test_add_loses_contrast_and_detail_over_the_whole_field(make_scene: SceneMaker, retina: Pixels) -> None:
    detail = [_detail(retina)]
    for level in ("subtle", "moderate", "marked"):
        rendering = CATARACT.add(make_scene(retina, "Cataract", conspicuity=level))
        detail.append(_detail(rendering.pixels))
    assert rendering.support == "diffuse"
    assert detail[0] > detail[1] > detail[2] > detail[3]
    assert detail[3] < 0.5 * detail[0]


def test_add_keeps_the_border_sharp_and_the_outside_black(make_scene: SceneMaker, retina: Pixels) -> None:
    rendering = CATARACT.add(make_scene(retina, "Cataract", conspicuity="marked"))
    outside = ~rendering.mask
    assert np.array_equal(rendering.pixels[outside], retina[outside])
    assert outside.mean() > 0.15
    assert _border_slope(rendering.pixels) > 0.75 * _border_slope(retina)


def test_add_turns_the_tint_towards_yellow(make_scene: SceneMaker, retina: Pixels) -> None:
    rendering = CATARACT.add(make_scene(retina, "Cataract", conspicuity="marked"))
    before, after = (p[300:700, 300:700].astype(float).mean(axis=(0, 1)) for p in (retina, rendering.pixels))
    assert after[1] / after[0] > before[1] / before[0]


def test_remove_gives_contrast_back_and_is_nearer_to_the_original(
    make_scene: SceneMaker, retina: Pixels
) -> None:
    hazy = CATARACT.add(make_scene(retina, "Cataract", conspicuity="marked"))
    clear = CATARACT.remove(make_scene(hazy.pixels, "Cataract", direction="remove"))
    inside = hazy.mask
    before, after = (
        np.square(p[inside].astype(float) - retina[inside]).mean() for p in (hazy.pixels, clear.pixels)
    )
    assert after < before
    assert _detail(clear.pixels) > 1.3 * _detail(hazy.pixels)
    assert np.array_equal(clear.pixels[~inside], retina[~inside])


def test_remove_from_clear_media_finds_nothing(make_scene: SceneMaker, retina: Pixels) -> None:
    with pytest.raises(CannotShow, match="no media haze found"):
        CATARACT.remove(make_scene(retina, "Cataract", direction="remove"))
