"""Statistics by rank, where ties count as ties: correlations with people's scores, and areas under the ROC curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.means import ClusteredMeans, Estimate, mean_of_known
from plantain.pixels.arrays import Floats
from plantain.records import Score, unscored

Statistic = Callable[[npt.ArrayLike, npt.ArrayLike], Score]


RESOLUTION = 1e-9
"""Differences up to this share of the larger value, or of 1, are rounding: such values are tied."""


def average_ranks(values: npt.ArrayLike) -> Floats:
    """Return ranks from 1; ties share the mean of the ranks they span.

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
    return _cosine(*(ranks - ranks.mean() for ranks in (average_ranks(x), average_ranks(y))))


def formula_one(first: npt.ArrayLike, second: npt.ArrayLike) -> Score:
    """Return MedEBench's formula (1), 1 - 6 sum d^2 / (m (m^2 - 1)), which has no correction for ties.

    Without ties it is `spearman`. With ties it depends on how they are broken: this is its expectation over ties
    broken at random, so that a constant metric has 0. Arguments as for `spearman`.
    """
    x, y, reason = _pairs(first, second)
    if reason:
        return unscored(reason)
    a, b = (ranks - ranks.mean() for ranks in (average_ranks(x), average_ranks(y)))
    return Score(float(12.0 * (a @ b) / (x.size**3 - x.size)))


def kendall(first: npt.ArrayLike, second: npt.ArrayLike) -> Score:
    """Return Kendall's tau-b; arguments and value as for `spearman`."""
    x, y, reason = _pairs(first, second)
    if reason:
        return unscored(reason)
    ranks = (average_ranks(values) for values in (x, y))
    return _cosine(*(np.sign(np.subtract.outer(one, one)).ravel() for one in ranks))


def _cosine(a: Floats, b: Floats) -> Score:
    return Score(float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0)))


def _pairs(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats, str]:
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    kept = np.isfinite(x) & np.isfinite(y)
    x, y = x[kept], y[kept]
    if x.size < 2:
        return x, y, "fewer than two items"
    return x, y, "all items tied" if any(np.ptp(average_ranks(values)) == 0 for values in (x, y)) else ""


def image_correlation(
    metric: npt.ArrayLike,
    human: npt.ArrayLike,
    clusters: Sequence[Hashable],
    *,
    statistic: Statistic = spearman,
) -> Estimate:
    """Return the mean over images of the rank correlation, across models, of a metric with people.

    Args:
        metric, human: (images, models), higher is better in both; NaN where there is none.
        clusters: of each image.
        statistic: `spearman` or `kendall`.

    Returns:
        The mean correlation with its interval; images with all models tied are left out of n.
    """
    rows = zip(np.asarray(metric, np.float64), np.asarray(human, np.float64), strict=True)
    values = [statistic(a, b).value for a, b in rows]
    return ClusteredMeans(clusters).mean(np.array(values, np.float64), low=-1.0, high=1.0)


def human_ceiling(
    ratings: npt.ArrayLike, clusters: Sequence[Hashable], *, statistic: Statistic = spearman
) -> Estimate:
    """Return how well one reader's order of the models agrees with the others': the most a metric can reach.

    Args:
        ratings: (raters, images, models), higher is better; NaN where someone did not rate.
        clusters: of each image.
        statistic: `spearman` or `kendall`.

    Returns:
        The mean over images of the mean over raters of each rater's correlation with the mean of the others.
    """
    table = np.asarray(ratings, np.float64)
    means = np.full(table.shape[1], np.nan)
    for image, rows in enumerate(table.transpose(1, 0, 2)):
        found = [
            statistic(row, mean_of_known(np.delete(rows, i, axis=0), 0)).value for i, row in enumerate(rows)
        ]
        if scored := [value for value in found if value is not None]:
            means[image] = np.mean(scored)
    return ClusteredMeans(clusters).mean(means, low=-1.0, high=1.0)


FEWEST = 5
"""Groups of cases, and of other images, below which no interval is given."""


def _components(scores: Floats, cases: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Of each case the share of others below it; of each other one the share of cases above it; ties count half."""
    n, m = int(cases.sum()), int((~cases).sum())
    ranks = average_ranks(scores)
    above = (ranks[cases] - average_ranks(scores[cases])) / m
    below = 1 - (ranks[~cases] - average_ranks(scores[~cases])) / n
    return above, below


def _share(groups: int) -> float:
    return groups / (groups - 1)


@dataclass(frozen=True, slots=True)
class PairedArea:
    """Two areas over the same images.

    Attributes:
        first, second: mean areas over repeats.
        difference: first minus second.
        low, high: its 95 % interval in [-1, 1], over groups and repeats; None if they cannot be computed.
    """

    first: float
    second: float
    difference: float
    low: float | None
    high: float | None


def paired_areas(
    first: npt.ArrayLike, second: npt.ArrayLike, cases: npt.ArrayLike, groups: npt.ArrayLike
) -> PairedArea:
    """Return the difference of two areas under the ROC curve on the same images, repeat by repeat.

    The variance adds that of the difference over groups (Obuchowski 1997, repeats averaged) and that of its mean over
    repeats, which are taken for independent; degrees of freedom by Satterthwaite.

    Args:
        first, second: (repeats, N), two repeats or more, e.g. of several seeds of training.
        cases: bool (N,), of both kinds.
        groups: (N,), of each image.

    Raises:
        ValueError: no case or no control.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    y, g = np.asarray(cases, bool), np.asarray(groups)
    n, m = int(y.sum()), int((~y).sum())
    if not n or not m:
        raise ValueError("an area needs cases and controls")
    parts = [[_components(own, y) for own in scores] for scores in (a, b)]
    areas = np.array([[above.mean() for above, _ in each] for each in parts])
    apart = areas[0] - areas[1]
    difference = float(apart.mean())
    above, below = (
        np.mean([one[k] - other[k] for one, other in zip(*parts, strict=True)], axis=0) for k in (0, 1)
    )
    names, whose = np.unique(g, return_inverse=True)
    by_case = np.bincount(whose[y], above - difference, len(names))
    by_other = np.bincount(whose[~y], below - difference, len(names))
    case_groups, other_groups = len(set(whose[y].tolist())), len(set(whose[~y].tolist()))
    measured = float(areas[0].mean()), float(areas[1].mean()), difference
    if min(case_groups, other_groups) < FEWEST:
        return PairedArea(*measured, None, None)
    over_groups = max(
        0.0,
        float(
            _share(case_groups) * (by_case**2).sum() / n**2
            + _share(other_groups) * (by_other**2).sum() / m**2
            + 2 * _share(len(names)) * (by_case * by_other).sum() / (n * m)
        ),
    )
    over_repeats = float(apart.var(ddof=1)) / len(apart)
    # Satterthwaite: the more the repeats say, the fewer degrees of freedom.
    total = over_groups + over_repeats
    freedom = total**2 / (
        over_repeats**2 / (len(apart) - 1) + over_groups**2 / (min(case_groups, other_groups) - 1) + 1e-300
    )
    from scipy.special import stdtrit  # on use: scipy.stats would cost over a second

    half = float(stdtrit(max(freedom, 1.0), 0.975)) * math.sqrt(total)
    return PairedArea(*measured, max(-1.0, difference - half), min(1.0, difference + half))
