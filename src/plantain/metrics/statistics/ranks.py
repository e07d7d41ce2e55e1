"""Rank correlations of a metric with people's scores, image by image; ties count as ties."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Floats
from plantain.records import Score, unscored

RESOLUTION = 1e-9
"""Differences up to this share of the larger value, or of 1, are rounding: such values are tied."""


def average_ranks(values: npt.ArrayLike) -> Floats:
    """Return the ranks of values, float64 (n,), 1 for the lowest; ties share the mean of the ranks they span.

    Neighbours closer than `RESOLUTION` are tied.

    Example:
        >>> average_ranks([10, 20, 20, 30]).tolist()
        [1.0, 2.5, 2.5, 4.0]
    """
    numbers = np.asarray(values, np.float64)
    order = np.argsort(numbers, kind="stable")
    ahead, behind = numbers[order[1:]], numbers[order[:-1]]
    steps = ahead - behind > RESOLUTION * np.maximum(1.0, np.maximum(abs(ahead), abs(behind)))
    inverse = np.zeros(numbers.size, np.intp)
    inverse[order[1:]] = np.cumsum(steps)
    counts = np.bincount(inverse)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    return ranks


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> Score:
    """Return Spearman's rho: Pearson's correlation of average ranks.

    Args:
        first, second: one value per item; items where either is NaN are left out.

    Returns:
        A score in [-1, 1]; unscored with fewer than two items or when all items of one side are tied.
    """
    x, y, reason = _pairs(first, second)
    if reason:
        return unscored(reason)
    a, b = (ranks - ranks.mean() for ranks in (average_ranks(x), average_ranks(y)))
    return Score(float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0)))


def formula_one(first: npt.ArrayLike, second: npt.ArrayLike) -> Score:
    """Return Spearman's rho by MedEBench's formula (1), 1 - 6 sum d^2 / (m (m^2 - 1)), not corrected for ties.

    Without ties it equals `spearman`. Tied items are ranked at random, and the expected value is returned, so that a
    constant metric has 0. Arguments as for `spearman`.
    """
    x, y, reason = _pairs(first, second)
    if reason:
        return unscored(reason)
    a, b = (ranks - ranks.mean() for ranks in (average_ranks(x), average_ranks(y)))
    return Score(float(12.0 * (a @ b) / (x.size**3 - x.size)))


def _pairs(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats, str]:
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    kept = np.isfinite(x) & np.isfinite(y)
    x, y = x[kept], y[kept]
    if x.size < 2:
        return x, y, "fewer than two items"
    return x, y, "all items tied" if any(np.ptp(average_ranks(values)) == 0 for values in (x, y)) else ""
