"""Grey windows, and the values of an image that count for one."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Pixels

Number = TypeVar("Number", npt.NDArray[np.float32], npt.NDArray[np.float64])
Values = npt.NDArray[np.number]


def linear_window(values: Values, ends: tuple[float, float], *, invert: bool = False) -> Pixels:
    """Scale values linearly to uint8 (H, W): the first of the `ends` is 0, the second 255; reversed with `invert`.

    NaN counts as the first end. The result is all 0 unless the second end is larger.
    """
    bottom, top = ends
    if top <= bottom:
        return np.zeros(values.shape, np.uint8)
    filled = np.nan_to_num(values.astype(np.float32), nan=bottom, posinf=top, neginf=bottom)
    share = ((filled - bottom) / (top - bottom)).clip(0.0, 1.0)
    return np.rint((1.0 - share if invert else share) * 255.0).astype(np.uint8)


def film_window(values: Values, ends: tuple[float, float], *, invert: bool = False) -> Pixels:
    """Scale the logarithm of the values to uint8 (H, W), as film responds to dose.

    Use it for radiographs stored linear in dose, where a linear window shows lungs and mediastinum equally pale:
    attenuation is proportional to the logarithm of dose (Beer-Lambert).

    Args:
        values: (H, W).
        ends: positive limits to which values are clipped; the smallest and the largest clipped value become 0 and 255.
        invert: high dose is black, as on film (MONOCHROME1).
    """
    logs = np.log(np.maximum(values, ends[0] / 2).astype(np.float32)).clip(*np.log(ends))
    return linear_window(logs, (float(logs.min()), float(logs.max())), invert=invert)


def without_padding(values: Number) -> Number:
    """Return (N,) values without the padding that a scanner or program put outside the field of view.

    The least value is padding if it is -1000 or below, fills at least 1 % of the image and is far below all others;
    values that resampling made between it and the others are dropped too. Air at -1000 Hounsfield units is kept. The
    greatest value may be padding too (`padding_above`).

    Args:
        values: finite, any shape.
    """
    if (above := padding_above(values)) is not None:
        values = values[values < above]
    least = values.min()
    rest = values[values > least]
    if least > -1000 or not 0 < rest.size <= 0.99 * values.size:
        return values.ravel()
    low, high = np.percentile(rest, (5.0, 99.5))
    margin = 0.1 * (high - low)
    return rest[rest >= low - margin] if low - least > margin else values.ravel()


def padding_above(values: Number) -> float | None:
    """Return the greatest value if it is padding: at least 255, in 1 % of pixels, far above all others; else None."""
    most = values.max()
    if most < 255 or not 0 < np.count_nonzero(values < most) <= 0.99 * values.size:
        return None
    low, high = np.percentile(values[values < most], (0.5, 99.5))
    return float(most) if most - high > high - low > 0 else None
