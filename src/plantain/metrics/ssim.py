"""Structural similarity: of whole images, or strictly outside the region that an edit was meant to change."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.metrics.metric import Metric
from plantain.records import Score, unscored

Image = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

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

    Example:
        >>> import numpy as np
        >>> flat = np.full((16, 16), 90, np.uint8)
        >>> ssim(flat, flat).value
        1.0
    """
    _check(before, after, window)
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
        roi: bool array of shape (H, W); True marks the region that the edit was meant to change.
        window: side of the uniform window in pixels, odd.
        field: bool array of shape (H, W); True marks what is image rather than padding or aperture. None:
            all of it.

    Returns:
        A score in [-1, 1], 1 when identical; unscored("roi covers image") if no window fits outside.
    """
    _check(before, after, window)
    outside = ~roi if field is None else ~roi & field
    if outside.shape != before.shape[:2]:
        raise ValueError(f"roi {roi.shape} does not match the images {before.shape[:2]}")
    centres = whole_windows(outside, window)
    total = int(np.count_nonzero(centres))
    if not total:
        return unscored("roi covers image")
    if window == KERNEL_WINDOW:
        return Score(_compiled(before, after, centres) / total)
    return Score(float(ssim_map(before, after, window=window)[centres.astype(bool)].mean()))


class SSIM(Metric):
    """Mean of `ssim` over pairs."""

    name = "ssim"
    higher_is_better = True

    def update(self, before: Image, after: Image) -> Score:
        """Scores one pair and keeps the score for `compute`."""
        return self.keep(ssim(before, after))


class MaskedSSIM(Metric):
    """Mean of `masked_ssim` over samples."""

    name = "masked_ssim"
    higher_is_better = True

    def update(self, before: Image, after: Image, roi: Mask, field: Mask | None = None) -> Score:
        """Scores one sample and keeps the score for `compute`."""
        return self.keep(masked_ssim(before, after, roi, field=field))


def ssim_map(before: Image, after: Image, *, window: int = 7) -> npt.NDArray[np.float64]:
    """The SSIM of the window around each pixel; float64 (H, W), channels averaged.

    Within half a window of the image's border the values rest on mirrored pixels; `ssim` and `masked_ssim`
    leave them out.
    """
    _check(before, after, window)
    if before.ndim == 2:
        return _plane(before, after, window)
    if is_grey(before) and is_grey(after):
        return _plane(before[..., 0], after[..., 0], window)
    channels = [_plane(before[..., c], after[..., c], window) for c in range(before.shape[2])]
    mean: npt.NDArray[np.float64] = np.mean(channels, axis=0)
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


def _plane(before: Image, after: Image, window: int) -> npt.NDArray[np.float64]:
    x, y = before.astype(np.float64), after.astype(np.float64)

    def mean(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
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
    result: npt.NDArray[np.float64] = ((2 * mxy + c1) * (2 * cov + c2)) / ((mxx + myy + c1) * (vx + vy + c2))
    return result


def _check(before: Image, after: Image, window: int) -> None:
    if before.shape != after.shape:
        raise ValueError(f"images differ in shape: {before.shape} and {after.shape}")
    if before.dtype != np.uint8 or after.dtype != np.uint8:
        raise ValueError(f"images must be uint8, not {before.dtype} and {after.dtype}")
    if window < 3 or window % 2 == 0:
        raise ValueError(f"window {window}: an odd number of at least 3")
