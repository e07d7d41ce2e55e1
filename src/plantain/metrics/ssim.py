"""Structural similarity: of whole images, or strictly outside the region that an edit was meant to change."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.metrics.metric import Metric, MetricSample, check_images, check_mask, within
from plantain.pixels.arrays import Image, Mask, Pixels
from plantain.records import Score, unscored

WINDOW = 7


def ssim(before: Image, after: Image) -> Score:
    """Return the structural similarity (SSIM) of two images, as scikit-image computes it by default.

    Mean over windows of (2 m_x m_y + C1)(2 s_xy + C2) / ((m_x^2 + m_y^2 + C1)(s_x^2 + s_y^2 + C2)) with a uniform
    7 x 7 window, sample (co)variances, C1 = (0.01 * 255)^2 and C2 = (0.03 * 255)^2; channels are averaged. Only
    windows wholly inside the image count.

    Args:
        before, after: uint8 arrays of shape (H, W) or (H, W, C), same shape.

    Returns:
        A score in [-1, 1], 1 when identical; unscored when no window fits.

    Raises:
        ValueError: the arguments are not such images.

    Example:
        >>> import numpy as np
        >>> flat = np.full((16, 16), 90, np.uint8)
        >>> ssim(flat, flat).value
        1.0
    """
    before, after = check_images(before, after)
    return mean_over(before, after, np.ones(before.shape[:2], bool))


def masked_ssim(before: Image, after: Image, roi: Mask, *, field: Mask | None = None) -> Score:
    """Return the SSIM outside the region of interest: how well an edit preserved the rest of the image.

    Averages the SSIM over pixels whose whole window is outside `roi` (and inside `field`), so neither the edit
    itself nor zero-filling nor an empty background can raise the score (the contextual preservation of MedEBench 2.2,
    without the inflation of its published code).

    Args:
        before, after: uint8 arrays of shape (H, W) or (H, W, C), same shape.
        roi: bool (H, W), or uint8 of two levels; True marks the region that the edit was meant to change.
        field: as `roi`; True marks the field of view. None: the whole image.

    Returns:
        A score in [-1, 1], 1 when identical; unscored("roi covers image") if no window fits outside.

    Raises:
        ValueError: the arguments are not such images or masks.

    Example:
        >>> flat, roi = np.full((16, 16), 90, np.uint8), np.zeros((16, 16), np.uint8)
        >>> edited = flat.copy()
        >>> edited[:3, :3], roi[:3, :3] = 255, 255
        >>> ssim(flat, edited).value < masked_ssim(flat, edited, roi).value
        True
    """
    before, after = check_images(before, after)
    outside = ~check_mask(roi, before.shape)
    if field is not None:
        outside &= check_mask(field, before.shape, "field")
    return mean_over(before, after, outside)


class SSIM(Metric):
    """SSIM of an output and the real image after; in [-1, 1]."""

    name, label, low, high = "ssim", "SSIM with the truth", -1.0, 1.0
    needs = ("truth",)

    def measure(self, sample: MetricSample, output: Pixels) -> Score:
        assert sample.truth is not None
        return ssim(sample.truth, output)


def mean_over(before: Image, after: Image, allowed: Mask) -> Score:
    """Return the mean SSIM, in [-1, 1], over windows wholly in `allowed`, bool (H, W); unscored if no window is."""
    centres = whole_windows(allowed)
    total = int(np.count_nonzero(centres))
    if not total:
        return unscored("roi covers image")
    return Score(within(_sum_over(before, after, centres) / total, -1.0, 1.0))


def whole_windows(allowed: Mask) -> Image:
    """Return uint8 (H, W), 1 where the 7 x 7 window around the pixel is wholly in `allowed` and the image, else 0."""
    kernel = np.ones((WINDOW, WINDOW), np.uint8)
    eroded = cv2.erode(allowed.astype(np.uint8), kernel, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.asarray(eroded, np.uint8)


def _sum_over(before: Image, after: Image, centres: Image) -> float:
    """Return the sum of the SSIM over the windows centred where `centres` is 1, channels averaged."""
    # On use: loading numba takes a good part of a second, and this module is loaded by every table.
    from plantain.metrics.ssim_kernel import column_totals

    if before.ndim == 3 and _is_grey(before) and _is_grey(after):
        before, after = before[..., 0], after[..., 0]
    channels = 1 if before.ndim == 2 else before.shape[2]
    height, half = before.shape[0], WINDOW // 2
    inner = centres[half:-half, half:-half]
    weight = inner if channels == 1 else cv2.merge([inner] * channels).reshape(inner.shape[0], -1)
    totals = column_totals(
        np.ascontiguousarray(before).reshape(height, -1),
        np.ascontiguousarray(after).reshape(height, -1),
        np.ascontiguousarray(weight),
        channels,
    )
    return float(totals.sum()) / channels


def _is_grey(image: Image) -> bool:
    """Return True if all channels of an (H, W, C) image are equal."""
    if (image[0] != image[0, :, :1]).any():
        return False
    flat = image.reshape(-1, image.shape[2])
    return all(np.array_equal(flat[:, 0], flat[:, c]) for c in range(1, image.shape[2]))
