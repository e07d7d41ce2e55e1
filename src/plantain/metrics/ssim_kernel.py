"""The inner loop of SSIM with the 7 x 7 window: one pass over interleaved channels, compiled on first use.

Window sums of 8-bit pixels are whole numbers, and 49 * sum(xy) - sum(x) sum(y) fits 32 bits, so everything up
to the one division per pixel is exact. That division is done in single precision (relative error about 1e-7
per pixel, less in the mean). Nothing is reassociated, so every processor gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Floats

WINDOW = 7
_STRIP = 1024  # columns taken together: their running sums (16 bytes each) stay in the first-level cache
_N = np.int32(WINDOW * WINDOW)
_C1 = np.float32((0.01 * 255.0) ** 2 * WINDOW**4)
_C2 = np.float32((0.03 * 255.0) ** 2 * WINDOW * WINDOW * (WINDOW * WINDOW - 1))


Bytes = npt.NDArray[np.uint8]
Sums = npt.NDArray[np.int32]
F = TypeVar("F", bound=Callable[..., object])


def _compiled(function: F) -> F:
    """Compiles on first call and keeps the machine code where Python keeps its own, if that can be written."""
    try:
        kept: F = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # installed read-only and no cache folder of the user's either
        kept = numba.njit(nogil=True)(function)
    return kept


@_compiled
def column_totals(
    before: npt.NDArray[np.uint8],
    after: npt.NDArray[np.uint8],
    weight: npt.NDArray[np.uint8],
    channels: int,
) -> npt.NDArray[np.float64]:
    """Compute the SSIM of every 7 x 7 window, and return its weighted sum down each column.

    Args:
        before, after: C-contiguous uint8 (H, W * channels), channels interleaved; H and W at least 7.
        weight: C-contiguous uint8 (H - 6, (W - 6) * channels): 1 where the window centred there counts, or 0.
        channels: values per pixel.

    Returns:
        float64 ((W - 6) * channels,).
    """
    inner = weight.shape[1]
    totals = np.zeros(inner, np.float64)
    for left in range(0, inner, _STRIP):
        right = min(left + _STRIP, inner)
        end = right + (WINDOW - 1) * channels
        _strip(before[:, left:end], after[:, left:end], weight[:, left:right], channels, totals[left:right])
    return totals


@_compiled
def _strip(before: Bytes, after: Bytes, weight: Bytes, channels: int, totals: Floats) -> None:
    height, width = before.shape
    sums = np.zeros((4, width), np.int32)
    for r in range(height):
        _add_row(before[r], after[r], sums)
        if r >= WINDOW:
            _take_row(before[r - WINDOW], after[r - WINDOW], sums)
        if r >= WINDOW - 1:
            _windows(sums, weight[r - WINDOW + 1], np.uint64(channels), totals)


@_compiled
def _add_row(x: Bytes, y: Bytes, sums: Sums) -> None:
    sx, sy, ss, sp = sums[0], sums[1], sums[2], sums[3]
    for i in range(x.size):
        a, b = np.int32(x[i]), np.int32(y[i])
        sx[i] = np.int32(sx[i] + a)
        sy[i] = np.int32(sy[i] + b)
        ss[i] = np.int32(ss[i] + a * a + b * b)
        sp[i] = np.int32(sp[i] + a * b)


@_compiled
def _take_row(x: Bytes, y: Bytes, sums: Sums) -> None:
    sx, sy, ss, sp = sums[0], sums[1], sums[2], sums[3]
    for i in range(x.size):
        a, b = np.int32(x[i]), np.int32(y[i])
        sx[i] = np.int32(sx[i] - a)
        sy[i] = np.int32(sy[i] - b)
        ss[i] = np.int32(ss[i] - a * a - b * b)
        sp[i] = np.int32(sp[i] - a * b)


@_compiled
def _windows(sums: Sums, weight: Bytes, step: np.uint64, totals: Floats) -> None:
    sx, sy, ss, sp = sums[0], sums[1], sums[2], sums[3]
    for i in range(weight.size):
        mx, my, s, p = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for k in range(WINDOW):
            j = np.uint64(i) + np.uint64(k) * step
            mx = np.int32(mx + sx[j])
            my = np.int32(my + sy[j])
            s = np.int32(s + ss[j])
            p = np.int32(p + sp[j])
        cross = np.int32(mx * my)
        power = np.int32(mx * mx + my * my)
        covariance = np.int32(2 * (_N * p - cross))
        variance = np.int32(_N * s - power)
        top = (np.float32(np.int32(2 * cross)) + _C1) * (np.float32(covariance) + _C2)
        bottom = (np.float32(power) + _C1) * (np.float32(variance) + _C2)
        totals[i] += np.float64(np.float32(weight[i]) * (top / bottom))
