"""How far a metric orders models as people do: rank correlations that count ties as ties, image by image."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from plantain.metrics.inputs import check_finite, check_numbers
from plantain.metrics.statistics.means import ClusteredMeans, Estimate
from plantain.pixels.arrays import Floats
from plantain.records import Score, unscored

MANY = 512
"""Items from which comparing all pairs takes longer than loading a library that does not."""


def average_ranks(values: npt.ArrayLike) -> Floats:
    """Ranks from 1, ties sharing the mean of the ranks they span. Raises ValueError for what has no order, as NaN.

    Example:
        >>> average_ranks([10, 20, 20, 30]).tolist()
        [1.0, 2.5, 2.5, 4.0]
    """
    numbers = check_finite(check_numbers(values, "values", "items"), "values")
    _, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
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
    if x.size > MANY:
        from scipy.stats import (
            kendalltau,
        )  # on use: it costs over a second, and takes n log n steps where we take n²

        return Score(float(np.clip(kendalltau(x, y).statistic, -1.0, 1.0)))
    dx, dy = (np.sign(np.subtract.outer(values, values)).ravel() for values in (x, y))
    return Score(float(np.clip(dx @ dy / np.sqrt((dx @ dx) * (dy @ dy)), -1.0, 1.0)))


def _pairs(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats, str]:
    x, y = check_numbers(first, "first", "items"), check_numbers(second, "second", "items")
    if x.shape != y.shape:
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
    first, second = (
        check_numbers(values, name, "images", "models")
        for values, name in ((metric, "metric"), (human, "human"))
    )
    if first.shape != second.shape:
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
    table = check_numbers(ratings, "ratings", "raters", "images", "models")
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
