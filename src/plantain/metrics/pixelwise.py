"""Metrics that compare pixels: PSNR, SSIM, and SSIM outside the region that an edit was meant to change."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.metrics.metric import Measured, Metric, MetricSample, check_images, check_mask
from plantain.pixels.arrays import Image, Mask, Pixels
from plantain.records import Score, unscored

WINDOW = 7

_DARK = 10
"""Brightest grey level of a background: padding is 0, the surround of a fundus or a head is a little brighter."""
_LEAST = 0.02
"""A field of view smaller than this share of the frame is ignored: the whole frame is taken."""


def psnr(before: Image, after: Image) -> Score:
    """Return the peak signal-to-noise ratio, 10 log10(255^2 / mean squared error) over all pixels and channels.

    Args:
        before, after: uint8 arrays of shape (H, W) or (H, W, C), same shape.

    Returns:
        Decibels, 0 or more, higher for more similar images; unscored for identical images, whose infinite value would
        make every mean infinite.

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


def masked_ssim(before: Image, after: Image, roi: Mask) -> Score:
    """Return the SSIM outside the region of interest: how well an edit preserved the rest of the image.

    Averages the SSIM over pixels whose whole 7 x 7 window is outside `roi`, so neither the edit nor zero-filling raises
    the score (contextual preservation, MedEBench 2.2, without the bias of its published code: see `cp_reference`).

    Args:
        before, after: uint8 arrays of shape (H, W) or (H, W, C), same shape.
        roi: (H, W), bool, or uint8 with 0 and 1 or 0 and 255; nonzero where the edit was meant to change the image.

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
    return mean_over(before, after, ~check_mask(roi, before.shape))


def mean_over(before: Image, after: Image, allowed: Mask) -> Score:
    """Return the mean SSIM, in [-1, 1], over windows wholly in `allowed`, bool (H, W); unscored if no window is."""
    kernel = np.ones((WINDOW, WINDOW), np.uint8)
    centres = np.asarray(
        cv2.erode(allowed.astype(np.uint8), kernel, borderType=cv2.BORDER_CONSTANT, borderValue=0), np.uint8
    )
    total = int(np.count_nonzero(centres))
    if not total:
        return unscored("roi covers image")
    return Score(float(np.clip(_sum_over(before, after, centres) / total, -1.0, 1.0)))


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


def cp_reference(before: Image, after: Image, roi: Mask | Image) -> Score:
    """Return the masked SSIM as MedEBench's published code computes it, to compare with published numbers.

    Both images are multiplied by 1 - mask / 255, truncated to uint8, and compared by `ssim` over the whole frame. The
    emptied region agrees perfectly, so for a region of share r the score is near r + (1 - r) * `masked_ssim`, which
    does not have this bias. The mask's grey levels are used, as published: a mask stored as 0 and 1 hides next to
    nothing, and a soft edge dims its pixels.

    Args:
        before, after: uint8 arrays of shape (H, W) or (H, W, C), same shape.
        roi: (H, W), the region meant to change: bool, or uint8 grey levels as stored in the mask's file.

    Returns:
        A score in [-1, 1], 1 when identical outside; unscored if the image is smaller than the 7 x 7 window.

    Raises:
        ValueError: the arguments are not such images or a mask.

    Example:
        >>> import numpy as np
        >>> flat, mask = np.full((16, 16), 90, np.uint8), np.zeros((16, 16), np.uint8)
        >>> cp_reference(flat, flat, mask).value
        1.0
    """
    before, after = check_images(before, after)
    if roi.dtype != np.uint8 or roi.shape != before.shape[:2]:
        roi = check_mask(roi, before.shape)
    grey = roi.astype(np.float64) * 255.0 if roi.dtype == np.bool_ else roi.astype(np.float64)
    kept = 1.0 - grey / 255.0
    if before.ndim == 3:
        kept = kept[..., np.newaxis]
    return ssim((before * kept).astype(np.uint8), (after * kept).astype(np.uint8))


def field_of_view(pixels: Pixels) -> Mask:
    """Return the field of view of a uint8 image (H, W, 3): bool (H, W), brighter than the background, holes closed.

    Dark parts that touch the image's border are background; enclosed ones, such as ventricles and lungs, are not. An
    image without a dark surround, or with hardly any bright part, is returned as all True.
    """
    brightest = cv2.medianBlur(np.ascontiguousarray(pixels.max(axis=2)), 5)
    lit = (brightest > _DARK).astype(np.uint8)
    contours, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    field = np.zeros(lit.shape, np.uint8)
    large = [contour for contour in contours if cv2.contourArea(contour) >= _LEAST / 10 * lit.size]
    cv2.drawContours(field, large, -1, 1, cv2.FILLED)
    found = field.astype(bool)
    return found if float(found.mean()) >= _LEAST else np.ones(lit.shape, bool)


class PSNR(Metric):
    """PSNR of an output and the real image after the change, in dB, higher is better; unscored if identical."""

    name, label, unit, digits = "psnr", "PSNR with the truth, dB", "dB", 1
    needs = ("truth",)

    def measure(self, sample: MetricSample, output: Pixels) -> Score:
        assert sample.truth is not None
        return psnr(sample.truth, output)


class SSIM(Metric):
    """SSIM of an output and the real image after the change, in [-1, 1], higher is better."""

    name, label, low, high = "ssim", "SSIM with the truth", -1.0, 1.0
    needs = ("truth",)

    def measure(self, sample: MetricSample, output: Pixels) -> Score:
        assert sample.truth is not None
        return ssim(sample.truth, output)


class CPReference(Metric):
    """Context preservation by masked SSIM as MedEBench publishes it (`cp_reference`); in [-1, 1]."""

    name, label, low, high = "cp_reference", "masked SSIM, as published", -1.0, 1.0
    needs, column = ("roi",), "CP"

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        grey = sample.roi_grey
        assert grey is not None
        return cp_reference(sample.before, output, grey), {"roi_share": float(grey.mean()) / 255}


class MaskedSSIM(Metric):
    """SSIM of an output and the image before, strictly outside the region (`masked_ssim`); in [-1, 1]."""

    name, label, column = "masked_ssim", "SSIM over windows wholly outside the region", "CP (strict)"
    low, high, needs = -1.0, 1.0, ("roi",)

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        assert sample.roi is not None
        share = float(check_mask(sample.roi, sample.before.shape).mean())
        return masked_ssim(sample.before, output, sample.roi), {"roi_share": share}
