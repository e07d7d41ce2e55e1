"""How well an attention map lies on the region that an edit was about: thresholded overlap, and measures without one.

MedEBench (section 4.3) averages a concept's cross-attention over steps, scales it to [0, 1], binarises it at 1.3 times
Otsu's threshold and takes the intersection over union with the region. That number follows the region's size, so the
overlap of a random map of equal area stands beside it, and three measures that need no threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.inputs import check_mask
from plantain.pixels.arrays import Mask
from plantain.records import Score, unscored

Map = npt.NDArray[np.floating]

ALPHA = 1.3
"""Factor on Otsu's threshold (MedEBench, 4.3)."""

BINS = 256
"""Histogram bins of Otsu's threshold."""


@dataclass(frozen=True, slots=True)
class Grounding:
    """What one attention map says about one region.

    Attributes:
        iou: intersection over union of the binarised map and the region, in [0, 1].
        chance: the iou expected of as many pixels drawn at random, in [0, 1].
        mass: share of the attention inside the region over the region's share of the area; 1 is chance.
        pointing: 1.0 when the map's maximum lies inside the region (several maxima: the share of them), else 0.0.
        auroc: probability that a pixel inside has more attention than one outside, ties half; 0.5 is chance.
        threshold: the level above which the map counts, on its [0, 1] scale; None when it has none.
        selected: share of the pixels above the threshold, in [0, 1].
    """

    iou: Score
    chance: Score
    mass: Score
    pointing: Score
    auroc: Score
    threshold: float | None
    selected: float


def scaled(attention: Map) -> npt.NDArray[np.float64] | None:
    """The map on [0, 1] by its own minimum and maximum; None when it is constant or not finite."""
    values = np.asarray(attention, np.float64)
    if not values.size or not np.isfinite(values).all():
        return None
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-12 * max(1.0, abs(high)):
        return None
    return (values - low) / (high - low)


def otsu(values: Map) -> float:
    """Otsu's threshold of values in [0, 1] (Otsu 1979), over `BINS` bins; the centre of the last bin below it.

    Example:
        >>> import numpy as np
        >>> 0.05 < otsu(np.array([0.0, 0.1, 0.1, 0.9, 1.0, 1.0])) < 0.9
        True
    """
    counts, edges = np.histogram(np.asarray(values, np.float64), bins=BINS)
    centres = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)[:-1].astype(np.float64)
    above = counts.sum() - below
    total = np.cumsum(counts * centres)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = below * above * (total[:-1] / below - (total[-1] - total[:-1]) / above) ** 2
    return float(centres[int(np.nanargmax(variance))])


def grounding(attention: Map, roi: Mask, *, alpha: float = ALPHA) -> Grounding:
    """Measures one map against one region.

    Args:
        attention: float (H, W), any scale; more is more attention.
        roi: bool (H, W), or uint8 of two levels.
        alpha: factor on Otsu's threshold.

    Returns:
        All measures; each unscored with its reason where the map or the region is degenerate. A threshold above every
        value selects nothing: the overlap is then 0, and `selected` says so.

    Raises:
        ValueError: what is given is no such map or mask.
    """
    if attention.ndim != 2 or not np.issubdtype(attention.dtype, np.floating):
        raise ValueError(f"attention: float (H, W) is needed, not {attention.dtype} {attention.shape}")
    roi = check_mask(roi, attention.shape)
    inside = int(np.count_nonzero(roi))
    if inside in (0, roi.size):
        return _nothing("the region is empty" if not inside else "the region covers the image")
    values = scaled(attention)
    if values is None:
        return _nothing("degenerate map: no value differs from another")
    share = inside / roi.size
    level = alpha * otsu(values)
    chosen = values > level
    selected = int(np.count_nonzero(chosen))
    overlap = int(np.count_nonzero(chosen & roi))
    weight = np.asarray(attention, np.float64)
    total = float(weight.sum())
    positive = total > 0 and float(weight.min()) >= 0
    return Grounding(
        iou=Score(overlap / (selected + inside - overlap)),
        chance=Score(chance_iou(selected, inside, roi.size)),
        mass=Score(float(weight[roi].sum()) / total / share) if positive else unscored("no attention mass"),
        pointing=Score(float(roi[values == 1.0].mean())),
        auroc=_auroc(values, roi),
        threshold=level,
        selected=selected / roi.size,
    )


def _nothing(reason: str) -> Grounding:
    none = unscored(reason)
    return Grounding(none, none, none, none, none, None, 0.0)


def chance_iou(selected: int, inside: int, size: int) -> float:
    """The iou expected when `selected` of `size` pixels are drawn at random, with the expected overlap.

    Example:
        >>> round(chance_iou(25, 25, 100), 4)
        0.1429
    """
    overlap = selected * inside / size
    union = selected + inside - overlap
    return overlap / union if union else 0.0


def _auroc(values: npt.NDArray[np.float64], roi: Mask) -> Score:
    """Area under the curve by ranks, ties averaged (Mann and Whitney 1947)."""
    _, start, counts = np.unique(values.ravel(), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[start]
    mask = roi.ravel()
    n, m = int(mask.sum()), int((~mask).sum())
    return Score(float((ranks[mask].sum() - n * (n + 1) / 2) / (n * m)))
