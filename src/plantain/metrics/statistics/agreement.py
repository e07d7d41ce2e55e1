"""Agreement of raters beyond chance, each coefficient with an interval over clusters.

Cohen's kappa is that of statsmodels (extra `stats`, without which it has no value, with that reason);
Krippendorff's alpha and the intraclass correlation are computed here. The interval is the jackknife's over clusters,
with Student's t on the logit scale of [-1, 1] (Fisher's z): a bootstrap of ten items covers 85 % where it should cover
95. Prevalence is reported next to every coefficient, because 92 % raw agreement is compatible with a kappa below 0.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from plantain.files.installed import install_line
from plantain.metrics.statistics.intervals import Sampling
from plantain.metrics.statistics.means import FEWEST, numbered, too_few
from plantain.pixels.arrays import Floats

Level = Literal["nominal", "interval"]

ONE_CATEGORY = "one category only: chance agreement is certain"

RARE = 10
"""Ratings outside the commonest category below which no interval is computed."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient of agreement between raters, with its interval.

    Attributes:
        value: at most 1; 0 is chance; None with a `reason`.
        low, high: 95 % interval over clusters, in [-1, 1]; None without a value, or if too few clusters change it.
        observed: share of agreeing pairs of ratings (1 minus the observed disagreement for weighted forms); None for
            coefficients whose disagreement has no such scale.
        prevalence: share of the most frequent category among all ratings, in [0, 1]; None for the ICC.
        items, clusters: number of rated items, and of their independent clusters.
    """

    value: float | None
    low: float | None
    high: float | None
    observed: float | None
    prevalence: float | None
    items: int
    clusters: int
    reason: str = ""


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    categories: Sequence[Hashable] | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> Agreement:
    """Return Cohen's kappa of two raters (Cohen 1960).

    Args:
        first, second: one category per item.
        categories: all categories; None: those seen.
        clusters: name of each item's cluster; None: every item by itself.
    """
    order = {name: i for i, name in enumerate(categories or dict.fromkeys([*first, *second]))}
    k, code = len(order), _codes(clusters, len(first))
    tables = np.zeros((int(code.max(initial=-1)) + 1, k, k))
    rows, columns = (np.array([order[name] for name in names], np.intp) for names in (first, second))
    np.add.at(tables, (code, rows, columns), 1.0)
    total = tables.sum(axis=0)

    def kappa(left_out: int | None) -> float:
        from statsmodels.stats.inter_rater import cohens_kappa

        table = total if left_out is None else total - tables[left_out]
        return float(cohens_kappa(table, return_results=False))

    observed = float(np.trace(total)) / len(first) if first else None
    missing = importlib.util.find_spec("statsmodels") is None
    fault = f"needs statsmodels: {install_line('stats')}" if missing else ""
    return _with_interval(kappa, code, total.sum(axis=0) + total.sum(axis=1), observed, fault)


def krippendorff_alpha(
    ratings: npt.ArrayLike, level: Level, *, clusters: Sequence[Hashable] | None = None
) -> Agreement:
    """Return Krippendorff's alpha of any number of raters with missing ratings (Krippendorff 2011).

    Args:
        ratings: (raters, items), NaN where a rating is missing; nominal categories are any numbers.
        level: "nominal" or "interval".
        clusters: name of each item's cluster; None: every item by itself.

    Returns:
        The coefficient over items with at least two ratings.
    """
    table = np.asarray(ratings, np.float64)
    code = _codes(clusters, table.shape[1])
    usable = np.isfinite(table).sum(axis=0) >= 2
    table = table[:, usable]
    _, code = np.unique(code[usable], return_inverse=True)
    known = np.isfinite(table)
    values, inverse = np.unique(table[known], return_inverse=True)
    counts = np.zeros((table.shape[1], max(values.size, 1)))
    np.add.at(counts, (np.nonzero(known)[1], inverse), 1.0)
    if level == "interval":
        parts, alpha = _moments(table, known), _interval_alpha
    else:
        parts, alpha = _coincidences(counts), _nominal_alpha
    sums = np.zeros((int(code.max(initial=-1)) + 1, *parts.shape[1:]))
    np.add.at(sums, code, parts)
    total = sums.sum(axis=0)
    nominal = level == "nominal" and usable.any()
    return _with_interval(
        lambda left_out: alpha(total if left_out is None else total - sums[left_out]),
        code,
        counts.sum(axis=0),
        float(np.trace(total) / total.sum()) if nominal else None,
    )


def icc(ratings: npt.ArrayLike) -> Agreement:
    """Return ICC(2,1), the absolute agreement of single ratings with random raters and items (Shrout and Fleiss 1979).

    Args:
        ratings: (raters, items); items that a rater left out (NaN) are skipped.

    Returns:
        The coefficient with McGraw and Wong's interval (1996).

    Example:
        The table of four judges and six targets by Shrout and Fleiss, for which they print 0.29.

        >>> table = [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]]
        >>> round(icc(table).value, 2)
        0.29
    """
    from scipy.special import fdtri

    table = np.asarray(ratings, np.float64)
    table = table[:, np.isfinite(table).all(axis=0)]
    k, n = table.shape
    if k < 2 or n < 2:
        return Agreement(None, None, None, None, None, n, n, "fewer than two raters or items in common")
    grand, by_item, by_rater = table.mean(), table.mean(axis=0), table.mean(axis=1)
    items = k * float(np.sum((by_item - grand) ** 2)) / (n - 1)
    raters = n * float(np.sum((by_rater - grand) ** 2)) / (k - 1)
    error = float(np.sum((table - by_item - by_rater[:, None] + grand) ** 2)) / ((n - 1) * (k - 1))
    below = items + (k - 1) * error + k * (raters - error) / n
    if below <= 0:
        return Agreement(None, None, None, None, None, n, n, "all ratings are the same")
    value = (items - error) / below
    if error <= 0 or value >= 1:
        return Agreement(value, None, None, None, None, n, n)
    a = k * value / (n * (1 - value))
    b = 1 + a * (n - 1)
    freedom = (a * raters + b * error) ** 2 / (
        (a * raters) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1))
    )
    above, under = float(fdtri(n - 1, freedom, 0.975)), float(fdtri(freedom, n - 1, 0.975))
    spread = k * raters + (k * n - k - n) * error
    low = n * (items - above * error) / (above * spread + n * items)
    high = n * (under * items - error) / (spread + n * under * items)
    return Agreement(value, max(-1.0, low), min(1.0, high), None, None, n, n)


def _coincidences(counts: Floats) -> Floats:
    """Return each item's coincidence matrix, (items, values, values)."""
    pairs = counts[:, :, None] * counts[:, None, :]
    diagonal = np.arange(counts.shape[1])
    pairs[:, diagonal, diagonal] -= counts
    result: Floats = pairs / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]
    return result


def _nominal_alpha(total: Floats) -> float:
    marginal, delta = total.sum(axis=1), 1.0 - np.eye(len(total))
    return float(1.0 - (total * delta).sum() * (marginal.sum() - 1) / (marginal @ delta @ marginal))


def _moments(table: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """Return per item: ratings, their sum, sum of squares, and sum of squared differences over (ratings - 1).

    Interval data can have as many values as ratings: coincidence matrices would be too large.
    """
    centre = float(table[known].mean()) if known.any() else 0.0
    x = np.where(known, table - centre, 0.0)
    m, total, squares = known.sum(axis=0), x.sum(axis=0), (x * x).sum(axis=0)
    within = 2.0 * (m * squares - total**2) / np.maximum(m - 1, 1)
    return np.column_stack([m, total, squares, np.maximum(within, 0.0)]).astype(np.float64)


def _interval_alpha(total: Floats) -> float:
    n, sums, squares, within = total
    return float(1.0 - within * (n - 1) / (2.0 * (n * squares - sums**2)))


def _codes(clusters: Sequence[Hashable] | None, items: int) -> npt.NDArray[np.intp]:
    """Return the number of each item's cluster, in order of first appearance."""
    return np.arange(items) if clusters is None else numbered(clusters)


def _with_interval(
    statistic: Callable[[int | None], float],
    code: npt.NDArray[np.intp],
    marginal: Floats,
    observed: float | None,
    fault: str = "",
) -> Agreement:
    """Return the statistic with the jackknife's interval (Efron and Stein 1981).

    Args:
        statistic: the coefficient without the cluster of that number; None: with all.
        code: of each item, the number of its cluster.
        marginal: ratings of each category.
        fault: why the statistic cannot be computed here.
    """
    items, clusters = code.size, int(code.max(initial=-1)) + 1
    if not items:
        return Agreement(None, None, None, None, None, 0, 0, "no item has two ratings")
    prevalence = float(marginal.max() / marginal.sum())
    if prevalence == 1.0 or fault:
        reason = ONE_CATEGORY if prevalence == 1.0 else fault
        return Agreement(None, None, None, observed, prevalence, items, clusters, reason)
    value = statistic(None)
    known = Agreement(value, None, None, observed, prevalence, items, clusters)
    if marginal.sum() - marginal.max() < RARE or clusters < FEWEST or not -1.0 < value < 1.0:
        return known
    with np.errstate(invalid="ignore", divide="ignore"):
        without = np.array([statistic(number) for number in range(clusters)])
    without = without[np.isfinite(without)]  # the rest may be of one category only
    if too_few(without - value):
        return known
    n = without.size
    error = math.sqrt((n - 1) / n * float(np.sum((without.mean() - without) ** 2)))
    low, high = Sampling(value, error, n - 1).interval(-1.0, 1.0)
    return Agreement(value, low, high, observed, prevalence, items, clusters)
