"""PSNR against scikit-image, and the case that has no number."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.metrics import peak_signal_noise_ratio

from plantain.metrics import psnr


def test_psnr_agrees_with_scikit_image():
    rng = np.random.default_rng(5)
    before = rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)
    after = rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)
    assert psnr(before, after).value == pytest.approx(peak_signal_noise_ratio(before, after), abs=1e-9)


def test_psnr_of_identical_images_is_unscored():
    image = np.zeros((4, 4), np.uint8)
    assert psnr(image, image).value is None
