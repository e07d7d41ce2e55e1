"""Structural similarity: of whole images, or strictly outside the region that an edit was meant to change."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.metrics.inputs import check_images, check_mask, within
from plantain.metrics.metric import Metric, MetricSample
from plantain.pixels.arrays import Floats, Image, Mask, Pixels
from plantain.records import Score, unscored

RANGE = 255.0
K1, K2 = 0.01, 0.03
KERNEL_WINDOW = 7
"""The window of the compiled loop; other windows take the slower map."""


def ssim(before: Image, after: Image, *, window: int = 7) -> Score:
    """Structural similarity of two images, as scikit-image computes it by default.

    Mean over windows of (2 m_x m_y + C1)(2 s_xy + C2) / ((m_x^2 + m_y^2 + C1)(s_x^2 + s_y^2 + C2)) with a
    uniform window, sample (co)variances, C1 = (0.01 * 255)^2 and C2 = (0.03 * 255)^2; channels are averaged.
    Only windows wholly inside the image count.

    Args:
        before, after: uint8 arrays of shape (H, W) or (H, W, C), same shape.
        window: side of the window in pixels, odd.

    Returns:
        A score in [-1, 1], 1 when identical; unscored when no window fits.

    Raises:
        ValueError: what is given is no such image, or the window is no odd number of at least 3.

    Example:
        >>> import numpy as np
        >>> flat = np.full((16, 16), 90, np.uint8)
        >>> ssim(flat, flat).value
        1.0
    """
    before, after = _checked(before, after, window)
    return masked_ssim(before, after, np.zeros(before.shape[:2], bool), window=window)


def masked_ssim(
    before: Image, after: Image, roi: Mask, *, window: int = 7, field: Mask | None = None
) -> Score:
    """Structural similarity outside the region of interest: how well an edit left the rest alone.

    Averages the SSIM map over pixels whose whole window lies outside `roi` (and inside `field`), so neither
    the edit itself nor zero-filling nor an empty background can raise the score (the contextual preservation
    of MedEBench 2.2, without the inflation of its published code).

    Args:
        before, after: uint8 arrays of shape (H, W) or (H, W, C), same shape.
        roi: bool (H, W), or uint8 of two levels; True marks the region that the edit was meant to change.
        window: side of the uniform window in pixels, odd.
        field: as `roi`; True marks what is image rather than padding or aperture. None:
            all of it.

    Returns:
        A score in [-1, 1], 1 when identical; unscored("roi covers image") if no window fits outside.

    Raises:
        ValueError: what is given is no such image or mask.

    Example:
        >>> flat, roi = np.full((16, 16), 90, np.uint8), np.zeros((16, 16), np.uint8)
        >>> edited = flat.copy()
        >>> edited[:3, :3], roi[:3, :3] = 255, 255
        >>> ssim(flat, edited).value < masked_ssim(flat, edited, roi).value
        True
    """
    before, after = _checked(before, after, window)
    outside = ~check_mask(roi, before.shape)
    if field is not None:
        outside &= check_mask(field, before.shape, "field")
    centres = whole_windows(outside, window)
    total = int(np.count_nonzero(centres))
    if not total:
        return unscored("roi covers image")
    if window == KERNEL_WINDOW:
        return Score(within(_compiled(before, after, centres) / total, -1.0, 1.0))
    mean = float(ssim_map(before, after, window=window)[centres.astype(bool)].mean())
    return Score(within(mean, -1.0, 1.0))


class SSIM(Metric):
    """`ssim` of an output and the real image after."""

    name, label, low, high = "ssim", "SSIM with the truth", -1.0, 1.0
    needs = ("truth",)

    def update(self, before: Image, after: Image) -> Score:
        """Scores one pair and keeps the score for `compute`."""
        return self.keep(ssim(before, after))

    def measure(self, sample: MetricSample, output: Pixels) -> Score:
        assert sample.truth is not None
        return ssim(sample.truth, output)


def ssim_map(before: Image, after: Image, *, window: int = 7) -> Floats:
    """The SSIM of the window around each pixel; float64 (H, W), channels averaged.

    Within half a window of the image's border the values rest on mirrored pixels; `ssim` and `masked_ssim`
    leave them out.
    """
    before, after = _checked(before, after, window)
    if before.ndim == 2:
        return _plane(before, after, window)
    if is_grey(before) and is_grey(after):
        return _plane(before[..., 0], after[..., 0], window)
    channels = [_plane(before[..., c], after[..., c], window) for c in range(before.shape[2])]
    mean: Floats = np.mean(channels, axis=0)
    return mean


def whole_windows(allowed: Mask, window: int) -> Image:
    """1 at each pixel whose whole window lies in `allowed` and in the image, else 0; uint8 (H, W)."""
    kernel = np.ones((window, window), np.uint8)
    eroded = cv2.erode(allowed.astype(np.uint8), kernel, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.asarray(eroded, np.uint8)


def is_grey(image: Image) -> bool:
    """Whether all channels of an (H, W, C) image are equal, as a grey modality is carried."""
    if (image[0] != image[0, :, :1]).any():
        return False
    flat = image.reshape(-1, image.shape[2])
    return all(np.array_equal(flat[:, 0], flat[:, c]) for c in range(1, image.shape[2]))


def _compiled(before: Image, after: Image, centres: Image) -> float:
    """The sum of the SSIM over the windows centred where `centres` is 1, channels averaged."""
    # On use: loading numba takes a good part of a second, and this module is loaded by every table.
    from plantain.metrics.ssim_kernel import column_totals

    if before.ndim == 3 and is_grey(before) and is_grey(after):
        before, after = before[..., 0], after[..., 0]
    channels = 1 if before.ndim == 2 else before.shape[2]
    height, half = before.shape[0], KERNEL_WINDOW // 2
    inner = centres[half:-half, half:-half]
    weight = inner if channels == 1 else cv2.merge([inner] * channels).reshape(inner.shape[0], -1)
    totals = column_totals(
        np.ascontiguousarray(before).reshape(height, -1),
        np.ascontiguousarray(after).reshape(height, -1),
        np.ascontiguousarray(weight),
        channels,
    )
    return float(totals.sum()) / channels


def _plane(before: Image, after: Image, window: int) -> Floats:
    x, y = before.astype(np.float64), after.astype(np.float64)

    def mean(values: Floats) -> Floats:
        return np.asarray(
            cv2.boxFilter(values, cv2.CV_64F, (window, window), borderType=cv2.BORDER_REFLECT), np.float64
        )

    sample = window * window / (window * window - 1)
    mx, my = mean(x), mean(y)
    mxx, myy, mxy = mx * mx, my * my, mx * my
    vx = sample * (mean(x * x) - mxx)
    vy = sample * (mean(y * y) - myy)
    cov = sample * (mean(x * y) - mxy)
    c1, c2 = (K1 * RANGE) ** 2, (K2 * RANGE) ** 2
    result: Floats = ((2 * mxy + c1) * (2 * cov + c2)) / ((mxx + myy + c1) * (vx + vy + c2))
    return result


def _checked(before: Image, after: Image, window: int) -> tuple[Image, Image]:
    if window < 3 or window % 2 == 0:
        raise ValueError(f"window {window}: an odd number of at least 3")
    return check_images(before, after)
