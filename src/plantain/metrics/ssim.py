"""Structural similarity: of whole images, or strictly outside the region that an edit was meant to change."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.records import Score, unscored

Image = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

RANGE = 255.0
K1, K2 = 0.01, 0.03


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
    kernel = np.ones((window, window), np.uint8)
    centres = cv2.erode(
        outside.astype(np.uint8), kernel, borderType=cv2.BORDER_CONSTANT, borderValue=0
    ).astype(bool)
    if not centres.any():
        return unscored("roi covers image")
    return Score(float(ssim_map(before, after, window=window)[centres].mean()))


def ssim_map(before: Image, after: Image, *, window: int = 7) -> npt.NDArray[np.float64]:
    """The SSIM of the window around each pixel; float64 (H, W), channels averaged.

    Within half a window of the image's border the values rest on mirrored pixels; `ssim` and `masked_ssim`
    leave them out.
    """
    _check(before, after, window)
    if before.ndim == 2 or bool((before == before[..., :1]).all() and (after == after[..., :1]).all()):
        return _plane(
            before if before.ndim == 2 else before[..., 0],
            after if after.ndim == 2 else after[..., 0],
            window,
        )
    channels = [_plane(before[..., c], after[..., c], window) for c in range(before.shape[2])]
    mean: npt.NDArray[np.float64] = np.mean(channels, axis=0)
    return mean


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
