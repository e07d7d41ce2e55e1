"""How well an attention map agrees with the region of an edit: the overlap of the thresholded map, next to chance.

MedEBench (section 4) averages a concept's cross-attention over steps, scales it to [0, 1], binarises it at 1.3 times
Otsu's threshold and takes the intersection over union with the region. That number depends on the region's size, so
the overlap of a random map of equal area is reported with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.metric import check_mask
from plantain.pixels.arrays import Floats, Mask
from plantain.records import Score, unscored

Map = npt.NDArray[np.floating]

ALPHA = 1.3
"""Factor on Otsu's threshold (MedEBench, 4)."""


@dataclass(frozen=True, slots=True)
class Grounding:
    """Agreement of one attention map with one region.

    Attributes:
        iou: intersection over union of the binarised map and the region, in [0, 1].
        chance: the IoU expected of as many pixels drawn at random, in [0, 1].
        threshold: `ALPHA` times Otsu's threshold, on the map's [0, 1] scale; None when unscored.
        selected: share of the pixels above the threshold, in [0, 1].
    """

    iou: Score
    chance: Score
    threshold: float | None
    selected: float


def scaled(attention: Map) -> Floats | None:
    """Scale a map linearly so that its minimum is 0 and its maximum 1; return None if it is constant or not finite."""
    values = np.asarray(attention, np.float64)
    if not values.size or not np.isfinite(values).all():
        return None
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-12 * max(1.0, abs(high)):
        return None
    return (values - low) / (high - low)


def grounding(attention: Map, roi: Mask) -> Grounding:
    """Measure how well one attention map agrees with one region.

    Args:
        attention: float (H, W), any scale; more is more attention.
        roi: bool (H, W), or uint8 of two levels.

    Returns:
        The measures; unscored, with the reason, if map or region is constant. A threshold above every value selects
        nothing: the overlap is then 0.

    Raises:
        ValueError: the arguments are not such a map or mask.
    """
    if attention.ndim != 2 or not np.issubdtype(attention.dtype, np.floating):
        raise ValueError(f"attention: float (H, W) is needed, not {attention.dtype} {attention.shape}")
    roi = check_mask(roi, attention.shape)
    inside = int(np.count_nonzero(roi))
    if inside in (0, roi.size):
        none = unscored("the region is empty" if not inside else "the region covers the image")
        return Grounding(none, none, None, 0.0)
    from skimage.filters import threshold_otsu  # on use: loading it takes half a second

    values = scaled(attention)
    if values is None:
        none = unscored("degenerate map: no value differs from another")
        return Grounding(none, none, None, 0.0)
    level = ALPHA * float(threshold_otsu(values, nbins=256))
    chosen = values > level
    selected = int(np.count_nonzero(chosen))
    overlap = int(np.count_nonzero(chosen & roi))
    expected = selected * inside / roi.size
    return Grounding(
        iou=Score(overlap / (selected + inside - overlap)),
        chance=Score(expected / (selected + inside - expected)),
        threshold=level,
        selected=selected / roi.size,
    )
