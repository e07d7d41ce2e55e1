"""Restoring the original outside of an edit: drawn on a photograph by hand, redrawn as hosted editors do."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import skimage.data

from plantain.findings import load_taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.pixels.restore import Restored, restore_outside

AMD = load_taxonomy().get("fundus", "AMD")
SIDE = 640


@pytest.fixture(scope="module")
def original() -> Pixels:
    """A retina with room above and below its levels."""
    piece = cv2.resize(skimage.data.retina()[:1280, :1280], (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.clip(piece * 0.75 + 15, 0, 230).astype(np.uint8)


@pytest.fixture(scope="module")
def asked() -> np.ndarray:
    """What the edit adds: a disc of 40 levels with a soft border, (H, W)."""
    y, x = np.mgrid[:SIDE, :SIDE]
    return 40.0 / (1.0 + np.exp((np.hypot(y - 330, x - 300) - 50) / 3.0))


def edited(original: Pixels, asked: np.ndarray) -> Pixels:
    return np.clip(np.rint(original + asked[..., None]), 0, 255).astype(np.uint8)


def redrawn(pixels: Pixels) -> Pixels:
    """Moved by about a pixel, with another gamma and contrast, and noisy."""
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


def test_a_region_limits_an_edit_that_the_taxonomy_does_not_know(original: Pixels, asked: np.ndarray) -> None:
    twice = asked + np.roll(asked, (-170, 160), axis=(0, 1))
    done = restore_outside(original, redrawn(edited(original, twice)), None, asked > 1)
    assert done.why_not == ""
    assert done.mask[asked > 2].all()
    assert not done.mask[np.roll(asked, (-170, 160), axis=(0, 1)) > 10].any(), "the other disc is restored"


def test_an_answer_that_cannot_be_restored_stays_as_it_came(original: Pixels, asked: np.ndarray) -> None:
    answer = edited(original, asked)
    clouds = np.random.default_rng(1).normal(size=(24, 24, 3)).astype(np.float32)
    clouds = cv2.resize(clouds, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    plane = original.astype(np.float32)
    painted = 128 + 30 * clouds + plane - cv2.GaussianBlur(plane, (0, 0), 10.0)
    flat = np.full_like(original, 90)
    spotted = original.copy()
    for x, y in np.ndindex(16, 16):
        cv2.circle(spotted, (40 * x + 20, 40 * y + 20), 8, (250, 250, 90), -1)
    for why, given, finding in (
        ("neither a known finding nor a region", answer, None),
        ("the finding changes the whole image", answer, load_taxonomy().get("fundus", "Cataract")),
        ("it cannot be registered", np.ascontiguousarray(original[::-1]), AMD),
        ("it has too little structure", flat, AMD),
        ("it contains no coherent change", original, AMD),
        ("its tones cannot be matched", np.clip(np.rint(painted), 0, 255).astype(np.uint8), AMD),
        ("the change covers more than", spotted, AMD),
    ):
        done = restore_outside(original, given, finding)
        assert done.why_not.startswith(why)
        assert np.array_equal(done.pixels, given)
        assert done.share == 0.0 and done.mask.all()
