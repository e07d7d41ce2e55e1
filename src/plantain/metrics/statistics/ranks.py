"""How far a metric orders models as people do: rank correlations that count ties as ties, image by image."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.means import ClusteredMeans, Estimate
from plantain.pixels.arrays import Floats
from plantain.records import Score, unscored


def average_ranks(values: npt.ArrayLike) -> Floats:
    """Ranks from 1, ties sharing the mean of the ranks they span.

    Example:
        >>> average_ranks([10, 20, 20, 30]).tolist()
        [1.0, 2.5, 2.5, 4.0]
    """
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2.0)[inverse]
    return ranks


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> Score:
    """Pearson's correlation of average ranks: Spearman's rho in the form that is right with ties.

    Args:
        first, second: one value per item; items where either is NaN are left out.

    Returns:
        A score in [-1, 1]; unscored with fewer than two items or when one side has no order at all.
    """
    x, y, reason = _pairs(first, second)
    if reason:
        return unscored(reason)
    a, b = average_ranks(x), average_ranks(y)
    a, b = a - a.mean(), b - b.mean()
    return Score(float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0)))


def kendall(first: npt.ArrayLike, second: npt.ArrayLike) -> Score:
    """Kendall's tau-b: concordant less discordant pairs, over the geometric mean of the pairs untied on each side.

    Args:
        first, second: one value per item; items where either is NaN are left out.

    Returns:
        A score in [-1, 1]; unscored with fewer than two items or when one side has no order at all.
    """
    x, y, reason = _pairs(first, second)
    if reason:
        return unscored(reason)
    agreed = untied_x = untied_y = 0.0
    for i in range(1, x.size):  # row by row: a matrix of all pairs would not fit for many items
        dx, dy = np.sign(x[i] - x[:i]), np.sign(y[i] - y[:i])
        agreed += float(dx @ dy)
        untied_x += float(dx @ dx)
        untied_y += float(dy @ dy)
    return Score(float(np.clip(agreed / np.sqrt(untied_x * untied_y), -1.0, 1.0)))


def _pairs(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats, str]:
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"ranks need two lists of equal length, not {x.shape} and {y.shape}")
    kept = np.isfinite(x) & np.isfinite(y)
    x, y = x[kept], y[kept]
    if x.size < 2:
        return x, y, "fewer than two items"
    if (x == x[0]).all() or (y == y[0]).all():
        return x, y, "all items tied"
    return x, y, ""


def image_correlation(
    metric: npt.ArrayLike,
    human: npt.ArrayLike,
    clusters: Sequence[Hashable],
    *,
    statistic: Callable[[npt.ArrayLike, npt.ArrayLike], Score] = spearman,
) -> Estimate:
    """The mean over images of the rank correlation, across models, of a metric with people.

    Args:
        metric, human: (images, models), higher is better in both; NaN where there is none.
        clusters: of each image.
        statistic: `spearman` or `kendall`.

    Returns:
        The mean correlation with its interval; images without an order are left out of n.
    """
    first, second = np.asarray(metric, np.float64), np.asarray(human, np.float64)
    if first.shape != second.shape or first.ndim != 2:
        raise ValueError(f"metric and human must be (images, models): {first.shape}, {second.shape}")
    found = [statistic(a, b).value for a, b in zip(first, second, strict=True)]
    values = np.array([np.nan if value is None else value for value in found])
    return ClusteredMeans(clusters).mean(values, low=-1.0, high=1.0)


def human_ceiling(
    ratings: npt.ArrayLike,
    clusters: Sequence[Hashable],
    *,
    statistic: Callable[[npt.ArrayLike, npt.ArrayLike], Score] = spearman,
) -> Estimate:
    """How far one person orders models as the others do, on average: what a metric can hope for.

    Args:
        ratings: (raters, images, models), higher is better; NaN where someone did not rate.
        clusters: of each image.
        statistic: `spearman` or `kendall`.

    Returns:
        The mean over images of the mean over raters of each rater's correlation with the others' mean.
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 3:
        raise ValueError(f"ratings must be (raters, images, models), not {table.shape}")
    means = np.full(table.shape[1], np.nan)
    for image in range(table.shape[1]):
        found = []
        for rater in range(table.shape[0]):
            others = np.delete(table[:, image], rater, axis=0)
            known = np.isfinite(others)
            count = known.sum(axis=0)
            total = np.where(known, others, 0.0).sum(axis=0)
            mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
            value = statistic(table[rater, image], mean).value
            if value is not None:
                found.append(value)
        if found:
            means[image] = float(np.mean(found))
    return ClusteredMeans(clusters).mean(means, low=-1.0, high=1.0)
