"""From stored detector or scanner values to 8-bit grey as a viewer would show them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage

Values = npt.NDArray[np.integer] | npt.NDArray[np.floating]


def window(values: Values, centre: float, width: float, *, invert: bool = False) -> Pixels:
    """Linear window to grey levels (DICOM PS3.3, C.11.2.1.2.1).

    Args:
        values: (H, W), after the modality LUT.
        centre, width: in the units of `values`.
        invert: low values are white (MONOCHROME1).

    Returns:
        uint8 (H, W).

    Raises:
        ValueError: width below 1, for which the standard defines no window; see `percentile_window`.
    """
    if not width >= 1:
        raise ValueError(f"window width {width:g}: must be at least 1")
    # Width 1 is a step at centre - 0.5; a slope this steep is one for every stored value.
    slope = 1.0 / max(width - 1.0, 1e-6)
    share = ((values.astype(np.float32) - np.float32(centre - 0.5)) * np.float32(slope) + 0.5).clip(0.0, 1.0)
    return np.rint((1.0 - share if invert else share) * 255.0).astype(np.uint8)


def percentile_window(
    values: Values, low: float = 0.5, high: float = 99.5, *, invert: bool = False
) -> Pixels:
    """Window spanned by two percentiles of the finite values, for files that state none: uint8 (H, W).

    A constant image comes back black.
    """
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        raise BadImage("image: it holds no finite value")
    bottom, top = (float(bound) for bound in np.percentile(finite, (low, high)))
    if top <= bottom:
        return np.zeros(values.shape, np.uint8)
    filled = np.nan_to_num(values.astype(np.float32), nan=bottom, posinf=top, neginf=bottom)
    share = ((filled - bottom) / (top - bottom)).clip(0.0, 1.0)
    return np.rint((1.0 - share if invert else share) * 255.0).astype(np.uint8)


def film_window(values: Values, low: float = 0.5, high: float = 99.5, *, invert: bool = False) -> Pixels:
    """Window in the logarithm of the values, as film answers to dose: uint8 (H, W).

    For radiographs stored linear in dose, whose lungs and mediastinum a linear window shows equally pale;
    attenuation is proportional to the logarithm of dose (Beer-Lambert).

    Args:
        values: (H, W), positive where there is a signal.
        low, high: percentiles of the positive values that become the ends of the scale.
        invert: high dose is black, as on film (MONOCHROME1).
    """
    positive = values[values > 0]
    if positive.size == 0:
        raise BadImage("image: it holds no positive value")
    bottom, top = np.log(np.percentile(positive, (low, high)))
    logs = np.log(np.maximum(values, positive.min()).astype(np.float32)).clip(bottom, top)
    return percentile_window(logs, 0.0, 100.0, invert=invert)
