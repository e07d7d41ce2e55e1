from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pixels.pictures import colour, grey
from plantain.pixels.encode import prepare, resize, restore, settle_grey
from plantain.records import Geometry

SIZES = st.integers(1, 200)


def noise(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, 3), np.uint8)


def content(geometry: Geometry) -> np.ndarray:
    """Where a square of 64 pixels shows the original."""
    mask = np.zeros((64, 64), bool)
    rows = slice(geometry.top, geometry.top + geometry.inner_height)
    mask[rows, geometry.left : geometry.left + geometry.inner_width] = True
    return mask


@given(SIZES, SIZES)
def test_prepare_geometry_lies_in_the_square_and_inverts(width: int, height: int) -> None:
    prepared, geometry = prepare(noise(width, height), 64)
    assert prepared.shape == (64, 64, 3)
    assert (geometry.width, geometry.height, geometry.mode) == (width, height, "pad")
    assert max(geometry.inner_width, geometry.inner_height) == 64
    assert 0 <= geometry.left <= geometry.left + geometry.inner_width <= 64
    assert 0 <= geometry.top <= geometry.top + geometry.inner_height <= 64
    assert restore(prepared, geometry).shape == (height, width, 3)
    mask = content(geometry)
    assert mask.sum() == geometry.inner_width * geometry.inner_height
    assert not prepared[~mask].any()


@given(st.integers(1, 64), st.booleans())
def test_restore_is_exact_where_nothing_was_resized(short: int, tall: bool) -> None:
    original = noise(short, 64) if tall else noise(64, short)
    assert np.array_equal(restore(*prepare(original, 64)), original)


def test_pad_keeps_the_aspect_and_centres() -> None:
    _, geometry = prepare(noise(1841 // 4, 1955 // 4), 1024)
    # 460x488 scaled by 1024/488 = 2.098: 965 wide, (1024 - 965) // 2 = 29 on the left.
    assert (geometry.inner_width, geometry.inner_height, geometry.left, geometry.top) == (965, 1024, 29, 0)


def test_prepare_shrinks_without_aliasing() -> None:
    lines = np.zeros((512, 512, 3), np.uint8)
    lines[:, ::2] = 200
    # Every target pixel averages whole periods: the mean, without moire.
    assert np.unique(resize(lines, 128, 128)).tolist() == [100]


def test_settle_grey_makes_channels_equal_only_for_grey_pictures() -> None:
    gray = np.repeat(grey(200, 200)[:, :, None], 3, axis=2)
    assert settle_grey(gray) is gray
    rng = np.random.default_rng(5)
    tinted = np.clip(gray.astype(int) + rng.integers(-1, 2, gray.shape), 0, 255).astype(np.uint8)
    settled = settle_grey(tinted)
    assert np.array_equal(settled[..., 0], settled[..., 1])
    assert np.abs(settled.astype(int) - gray).max() <= 1
    marked = gray.copy()
    marked[:20, :20] = (255, 0, 0)
    assert settle_grey(marked) is marked
    assert np.array_equal(settle_grey(colour(64, 64)), colour(64, 64))


def test_prepare_shows_what_is_square_square_and_restores_pixels_that_are_not() -> None:
    """Pixels twice as high as wide (PS3.3, C.7.6.3.1.7): 256 x 128 of them are a square field."""
    pixels = noise(256, 128)
    square, geometry = prepare(pixels, 256, aspect=2.0)
    assert geometry == Geometry(256, 128, "pad", 0, 0, 256, 256)
    assert restore(square, geometry).shape == pixels.shape
    mask = np.zeros((128, 256, 3), np.uint8)
    mask[40:60, 100:150] = 255
    square, geometry = prepare(mask, 256, aspect=2.0)
    assert np.array_equal(square[80:120, 100:150] > 127, np.full((40, 50, 3), True))
    assert np.array_equal(restore(square, geometry) > 127, mask > 127)
