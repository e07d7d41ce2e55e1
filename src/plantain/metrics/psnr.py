"""Peak signal-to-noise ratio of two images."""

from __future__ import annotations

import numpy as np

from plantain.metrics.metric import Metric, MetricSample, check_images
from plantain.pixels.arrays import Image, Pixels
from plantain.records import Score, unscored


def psnr(before: Image, after: Image) -> Score:
    """Return the peak signal-to-noise ratio, 10 log10(255^2 / mean squared error) over all pixels and channels.

    Args:
        before, after: uint8 arrays of shape (H, W) or (H, W, C), same shape.

    Returns:
        Decibels, 0 or more, higher is more alike; unscored for identical images, whose infinite value would make
        every mean infinite.

    Raises:
        ValueError: the arguments are not such images.

    Example:
        >>> import numpy as np
        >>> black, white = np.zeros((4, 4), np.uint8), np.full((4, 4), 255, np.uint8)
        >>> psnr(black, white).value
        0.0
    """
    before, after = check_images(before, after)
    error = float(np.mean((before.astype(np.float64) - after) ** 2))
    if error == 0.0:
        return unscored("identical images: PSNR is infinite")
    return Score(float(10.0 * np.log10(255.0**2 / error)))


class PSNR(Metric):
    """PSNR of an output and the real image after, in dB; identical pairs are unscored."""

    name, label, unit, digits = "psnr", "PSNR with the truth, dB", "dB", 1
    needs = ("truth",)

    def measure(self, sample: MetricSample, output: Pixels) -> Score:
        assert sample.truth is not None
        return psnr(sample.truth, output)
