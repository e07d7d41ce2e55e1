"""Registering an edited image to its original: moved by another library, found to a fraction of a pixel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import skimage.data

from plantain.pixels.arrays import Pixels
from plantain.pixels.restore import register


@pytest.fixture(scope="module")
def retina() -> Pixels:
    return np.ascontiguousarray(skimage.data.retina()[::2, ::2][:640, :640])


def bent(pixels: Pixels, most: float) -> Pixels:
    """Moved by scipy (cubic splines), by at most `most` pixels: a shift, a zoom and a slow wave."""
    height, width = pixels.shape[:2]
    ys, xs = np.mgrid[:height, :width].astype(float)
    dx = most * (0.5 + 0.3 * (xs / width - 0.5) + 0.2 * np.sin(ys / 90))
    dy = most * (-0.4 + 0.3 * (ys / height - 0.5) + 0.2 * np.cos(xs / 110))
    channels = [
        scipy.ndimage.map_coordinates(
            pixels[..., c].astype(float), [ys + dy, xs + dx], order=3, mode="nearest"
        )
        for c in range(3)
    ]
    return np.clip(np.rint(np.stack(channels, -1)), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("most", [0.6, 2.0])
def test_a_bent_picture_comes_back_over_its_original(most: float, retina: Pixels) -> None:
    moved = bent(retina, most)
    back, residual, why_not = register(retina, moved)
    assert why_not == ""
    assert residual < 0.2
    inside = np.s_[24:-24, 24:-24]
    before, after = (np.abs(one[inside].astype(int) - retina[inside]).mean() for one in (moved, back))
    assert after < 0.5 * before


def test_what_was_not_moved_stays_as_it_is(retina: Pixels) -> None:
    drawn = retina.copy()
    drawn[200:300, 200:300] += 20
    assert np.array_equal(register(retina, drawn)[0], drawn)
