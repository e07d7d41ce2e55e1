"""Restoring the original outside of an edit: drawn on a photograph by hand, redrawn as hosted editors do."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import scipy.ndimage
import skimage.data

from plantain.findings import load_taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.pixels.restore import Restored, match_tone, register, restore_outside

AMD = load_taxonomy().get("fundus", "AMD")
SIDE = 640


@pytest.fixture(scope="module")
def original() -> Pixels:
    """Return a retina with room above and below its levels."""
    piece = cv2.resize(skimage.data.retina()[:1280, :1280], (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.clip(piece * 0.75 + 15, 0, 230).astype(np.uint8)


@pytest.fixture(scope="module")
def asked() -> np.ndarray:
    """Return the change of the edit: a disc of 40 levels with a soft border, (H, W)."""
    y, x = np.mgrid[:SIDE, :SIDE]
    return 40.0 / (1.0 + np.exp((np.hypot(y - 330, x - 300) - 50) / 3.0))


def edited(original: Pixels, asked: np.ndarray) -> Pixels:
    return np.clip(np.rint(original + asked[..., None]), 0, 255).astype(np.uint8)


def redrawn(pixels: Pixels) -> Pixels:
    """Return the image moved by about a pixel, with another gamma and contrast, and noisy."""
    ys, xs = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    dx = 1.1 + 0.6 * np.sin(ys / 300) + 0.3 * (xs / SIDE - 0.5)
    moved = cv2.remap(pixels, xs + dx, ys - 0.7, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    toned = 255 * (moved / 255.0) ** 0.9 * 0.96 + 3
    noise = np.random.default_rng(1).normal(0, 2.0, (SIDE, SIDE, 1))
    return np.clip(np.rint(toned + noise), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def restored(original: Pixels, asked: np.ndarray) -> Restored:
    return restore_outside(original, redrawn(edited(original, asked)), AMD)


def test_outside_is_the_original_before_and_after_the_jpeg(original: Pixels, restored: Restored) -> None:
    assert restored.why_not == ""
    assert restored.residual < 0.3
    outside = ~restored.mask
    assert restored.share == pytest.approx(outside.mean())
    assert restored.share > 0.8
    assert np.array_equal(restored.pixels[outside], original[outside])
    coded, final = decode(encode_source(original)), decode(encode_jpeg(restored.pixels))
    assert cv2.absdiff(coded, final)[outside].max() <= 1


def test_the_edit_keeps_its_place_and_strength(
    original: Pixels, asked: np.ndarray, restored: Restored
) -> None:
    assert restored.mask[asked > 2].all()
    made = (restored.pixels.astype(int) - original).mean(axis=2)
    assert made[asked > 39].mean() == pytest.approx(40, rel=0.15)


def test_an_answer_that_cannot_be_restored_is_unchanged(original: Pixels, asked: np.ndarray) -> None:
    answer = edited(original, asked)
    clouds = np.random.default_rng(1).normal(size=(24, 24, 3)).astype(np.float32)
    clouds = cv2.resize(clouds, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    plane = original.astype(np.float32)
    painted = 128 + 30 * clouds + plane - cv2.GaussianBlur(plane, (0, 0), 10.0)
    flat = np.full_like(original, 90)
    spotted = original.copy()
    for x, y in np.ndindex(16, 16):
        cv2.circle(spotted, (40 * x + 20, 40 * y + 20), 8, (250, 250, 90), -1)
    for why, answered, finding in (
        ("the finding changes the whole image", answer, load_taxonomy().get("fundus", "Cataract")),
        ("it cannot be registered", np.ascontiguousarray(original[::-1]), AMD),
        ("it has too little structure", flat, AMD),
        ("it contains no coherent change", original, AMD),
        ("its tones cannot be matched", np.clip(np.rint(painted), 0, 255).astype(np.uint8), AMD),
        ("the change covers more than", spotted, AMD),
    ):
        done = restore_outside(original, answered, finding)
        assert done.why_not.startswith(why)
        assert np.array_equal(done.pixels, answered)
        assert done.share == 0.0 and done.mask.all()


SMALL = 512


@pytest.fixture(scope="module")
def piece() -> np.ndarray:
    """Return a piece of a retina, without levels near the ends."""
    crop = skimage.data.retina()[300:1100, 300:1100]
    small = cv2.resize(crop, (SMALL, SMALL), interpolation=cv2.INTER_AREA)
    return np.clip(small * 0.8 + 10, 20, 235).astype(np.uint8)


def disc(radius: float) -> np.ndarray:
    """Return a soft disc of height 1 in the upper left quarter."""
    y, x = np.mgrid[:SMALL, :SMALL]
    return 1.0 / (1.0 + np.exp((np.hypot(y - 180, x - 180) - radius) / 12.0))


def otherwise_toned(pixels: np.ndarray) -> np.ndarray:
    """Return the image with another gamma, and light that falls off to one side."""
    light = np.linspace(-5, 5, SMALL)[None, :, None]
    return np.clip(np.rint(255 * (pixels / 255.0) ** 1.15 + 4 + light), 0, 255).astype(np.uint8)


def test_a_curve_and_drifting_light_are_undone(piece: np.ndarray) -> None:
    back = match_tone(piece, otherwise_toned(piece), np.ones((SMALL, SMALL), bool))
    off = np.abs(back.astype(float) - piece)
    assert off.mean() < 1.0 and np.quantile(off, 0.99) < 4.0
    assert np.abs(otherwise_toned(piece).astype(float) - piece).mean() > 5.0, "it was off before"


def test_a_finding_that_is_left_out_of_the_reference_is_kept(piece: np.ndarray) -> None:
    change = disc(40)
    edited = np.clip(piece + 12 * change[..., None], 0, 255).astype(np.uint8)
    back = match_tone(piece, otherwise_toned(edited), change < 0.02).astype(float)
    assert (back - piece).mean(axis=2)[change > 0.8].mean() >= 9.5
    assert abs((back - piece).mean(axis=2)[change < 0.05].mean()) < 0.5


def test_clipped_levels_are_taken_from_the_original(piece: np.ndarray) -> None:
    bright = np.clip(piece.astype(int) + 60, 0, 255).astype(np.uint8)
    cut = bright == 255
    assert 0.02 < cut.mean() < 0.9
    back = match_tone(piece, bright, np.ones((SMALL, SMALL), bool))
    assert np.abs(back.astype(float) - piece)[cut].mean() < 1.0
    dark = np.clip(piece.astype(int) - 60, 0, 255).astype(np.uint8)
    back = match_tone(piece, dark, np.ones((SMALL, SMALL), bool))
    assert np.abs(back.astype(float) - piece)[dark == 0].mean() < 1.0


@pytest.fixture(scope="module")
def retina() -> Pixels:
    return np.ascontiguousarray(skimage.data.retina()[::2, ::2][:640, :640])


def bent(pixels: Pixels, most: float) -> Pixels:
    """Return the image moved by scipy (cubic splines), by at most `most` pixels: a shift, a zoom and a slow wave."""
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
def test_register_restores_a_bent_image(most: float, retina: Pixels) -> None:
    moved = bent(retina, most)
    back, residual, why_not = register(retina, moved)
    assert why_not == ""
    assert residual < 0.2
    inside = np.s_[24:-24, 24:-24]
    before, after = (np.abs(one[inside].astype(int) - retina[inside]).mean() for one in (moved, back))
    assert after < 0.5 * before


def test_an_unmoved_image_is_unchanged(retina: Pixels) -> None:
    drawn = retina.copy()
    drawn[200:300, 200:300] += 20
    assert np.array_equal(register(retina, drawn)[0], drawn)
