"""Our SSIM and PSNR against scikit-image's, and the masked one against what it must not be fooled by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.data import retina
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from plantain.metrics import masked_ssim, psnr, ssim


def noisy(image: np.ndarray, seed: int, sigma: float = 9.0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0.0, sigma, image.shape)
    return np.clip(image.astype(float) + noise, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def eye() -> np.ndarray:
    return np.asarray(retina())[400:720, 300:620]


def test_ssim_colour_agrees_with_scikit_image(eye):
    after = noisy(eye, 2)
    expected = structural_similarity(eye, after, channel_axis=-1)
    assert ssim(eye, after).value == pytest.approx(expected, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(7, 40), st.integers(7, 40))
def test_ssim_of_random_images_agrees_with_scikit_image(seed, height, width):
    rng = np.random.default_rng(seed)
    before = rng.integers(0, 256, (height, width), dtype=np.uint8)
    after = rng.integers(0, 256, (height, width), dtype=np.uint8)
    expected = structural_similarity(before, after)
    assert ssim(before, after).value == pytest.approx(expected, abs=1e-6)


def test_masked_ssim_is_one_when_only_the_region_changed(eye):
    roi = np.zeros(eye.shape[:2], bool)
    roi[100:180, 90:200] = True
    after = eye.copy()
    after[roi] = 255 - after[roi]
    assert masked_ssim(eye, after, roi).value == 1.0


def test_masked_ssim_counts_exactly_the_windows_outside(eye):
    after = noisy(eye, 4)
    roi = np.zeros(eye.shape[:2], bool)
    roi[50:90, 50:90] = True
    field = np.zeros_like(roi)
    field[:200, :240] = True
    # Window 7: centres keep 3 pixels away from the region, the field's border and the image's border.
    centres = np.zeros_like(roi)
    centres[3:197, 3:237] = True
    centres[47:93, 47:93] = False
    expected = structural_similarity(eye, after, channel_axis=-1, full=True)[1][centres].mean()
    assert masked_ssim(eye, after, roi, field=field).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "shape",
    [
        (7, 7),
        (40, 1500),
        (7, 8, 4),
    ],
)
def test_ssim_of_extreme_values_and_odd_shapes_agrees_with_scikit_image(shape):
    # Only 0 and 255: the largest sums that the 32-bit loop meets; wide rows cross its strips.
    rng = np.random.default_rng(8)
    before = rng.choice(np.array([0, 255], np.uint8), shape, p=[0.1, 0.9])
    after = rng.choice(np.array([0, 255], np.uint8), shape, p=[0.1, 0.9])
    axis = -1 if len(shape) == 3 else None
    for one, other in [(before, after), (before, before // 255), (np.full_like(before, 255), before)]:
        expected = structural_similarity(one, other, channel_axis=axis)
        assert ssim(one, other).value == pytest.approx(expected, abs=1e-6)


def test_psnr_agrees_with_scikit_image_and_identical_images_have_none(eye):
    after = noisy(eye, 5)
    assert psnr(eye, after).value == pytest.approx(peak_signal_noise_ratio(eye, after), abs=1e-9)
    assert psnr(eye, eye).value is None
