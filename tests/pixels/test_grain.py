from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from plantain.pixels.grain import grain_field, grain_sigma, inpaint_smooth, synthesise_grain

SEED = 20260101


def disc(size: int, radius: float, centre: tuple[float, float] | None = None) -> np.ndarray:
    y, x = np.mgrid[:size, :size]
    cy, cx = centre or (size / 2, size / 2)
    return (y - cy) ** 2 + (x - cx) ** 2 <= radius * radius


def grainy(size: int = 256, level: float = 6.0, width: float = 0.8) -> np.ndarray:
    rng = np.random.default_rng(SEED)
    noise = gaussian_filter(rng.standard_normal((size, size)), width)
    return (120 + level * noise / noise.std()).astype(np.float32)


@pytest.mark.parametrize("level", [1.0, 5.0, 12.0])
def test_grain_sigma_of_white_noise(level: float) -> None:
    noise = np.random.default_rng(SEED).normal(128, level, (300, 300)).astype(np.float32)
    # Blur of sigma 1.5 keeps a weight of about 1/(4 pi 1.5^2) = 0.035 at the centre pixel and has a sum of squares
    # of 0.035: variance left is 1 - 2*0.071 + 0.035 = 0.89, its root 0.95 (discrete kernel: 0.071 at the centre).
    assert grain_sigma(noise) == pytest.approx(0.945 * level, rel=0.02)


def test_grain_sigma_ignores_edges_and_black_border() -> None:
    image = grainy()
    quiet = grain_sigma(image)
    image[:, 100:104] = 250
    image[:60] = 0
    assert grain_sigma(image) == pytest.approx(quiet, rel=0.1)
    assert grain_sigma(np.zeros((50, 50), np.uint8)) == 0.0


def test_grain_field_is_zero_on_a_ramp() -> None:
    ramp = np.tile(np.arange(64, dtype=np.float32), (64, 1))
    assert np.abs(grain_field(ramp)[:, 10:-10]).max() < 1e-3


@pytest.mark.parametrize("width", [0.6, 1.2])
def test_synthesised_grain_has_strength_and_texture_of_its_source(width: float) -> None:
    image = grainy(width=width)
    target = disc(256, 50)
    field = synthesise_grain(image, target, np.random.default_rng(SEED))
    residual = grain_field(image)
    assert not field[~target].any()
    assert field[target].std() == pytest.approx(residual[~target].std(), rel=0.15)
    # Neighbouring pixels correlate as they do in the source.
    for shift in (1, 2, 3):
        ours, theirs = (
            np.corrcoef(plane[100:150, 100:150].ravel(), np.roll(plane, shift, 1)[100:150, 100:150].ravel())[
                0, 1
            ]
            for plane in (field, residual)
        )
        assert ours == pytest.approx(theirs, abs=0.12)


def test_synthesised_grain_does_not_repeat() -> None:
    field = synthesise_grain(grainy(), disc(256, 100), np.random.default_rng(SEED))[80:176, 80:176]
    spectrum = np.abs(np.fft.fft2(field - field.mean())) ** 2
    correlation = np.fft.ifft2(spectrum).real
    correlation /= correlation[0, 0]
    correlation[:6, :6] = correlation[-6:, :6] = correlation[:6, -6:] = correlation[-6:, -6:] = 0
    # Chance over 96x96 shifts of a texture with a few pixels' correlation stays far below this; a copy reaches 1.
    assert np.abs(correlation).max() < 0.2


def test_synthesised_grain_follows_its_seed_only() -> None:
    image, target = grainy(), disc(256, 30)
    first, again, other = (synthesise_grain(image, target, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_synthesised_grain_of_nothing_is_nothing() -> None:
    flat = np.full((64, 64), 90, np.uint8)
    rng = np.random.default_rng(SEED)
    assert not synthesise_grain(flat, disc(64, 10), rng).any()
    assert not synthesise_grain(flat, np.zeros((64, 64), bool), rng).any()
    assert not synthesise_grain(grainy(64), disc(64, 10), rng, source=np.zeros((64, 64), bool)).any()


@pytest.mark.parametrize("radius", [3, 20, 90])
def test_inpaint_smooth_continues_a_ramp(radius: float) -> None:
    y, x = np.mgrid[:256, :256].astype(np.float32)
    ramp = 20 + 0.5 * x + 0.25 * y
    hole = disc(256, radius)
    filled = inpaint_smooth(np.where(hole, 255, ramp).astype(np.float32), hole)
    assert np.array_equal(filled[~hole], ramp[~hole])
    # The border is smoothed from outside, which shifts it by about a pixel's worth of slope.
    assert np.abs(filled - ramp).max() < 1.0


def test_inpaint_smooth_lets_no_grain_in_and_meets_the_image_edge() -> None:
    image = grainy()
    hole = disc(256, 60, (0, 128))
    filled = inpaint_smooth(image, hole)
    inner = disc(256, 40, (0, 128))
    assert filled[inner].std() < 0.25 * image.std()
    assert filled[inner].mean() == pytest.approx(120, abs=1.5)


def test_inpaint_smooth_needs_a_border() -> None:
    with pytest.raises(ValueError, match="no border"):
        inpaint_smooth(grainy(64), np.ones((64, 64), bool))


def test_inpaint_smooth_stays_within_the_border_of_a_ragged_hole() -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(10):
        plane = cv2.GaussianBlur(rng.uniform(0, 255, (160, 160)).astype(np.float32), (0, 0), 6)
        blotches = cv2.GaussianBlur(
            rng.standard_normal((160, 160)).astype(np.float32), (0, 0), rng.uniform(1, 5)
        )
        hole = blotches > np.quantile(blotches, rng.uniform(0.5, 0.95))
        filled = inpaint_smooth(plane, hole)
        assert plane[~hole].min() - 1 <= filled.min() and filled.max() <= plane[~hole].max() + 1
