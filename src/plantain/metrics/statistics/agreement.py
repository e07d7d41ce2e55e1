"""Agreement of raters beyond chance: Cohen, Fleiss, Randolph and Krippendorff, each with an interval over clusters.

All of them are functions of sums over items, so whole clusters of items are left out by taking their tables away: the
jackknife says how far the coefficient would move with other items, and the interval is Student's t on the logit scale
of [-1, 1] (Fisher's z); a bootstrap of ten items covers 85 % where it says 95. Prevalence stands beside every
coefficient: 92 % raw agreement can go with a kappa below 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from plantain.metrics.inputs import check_choice, check_numbers
from plantain.metrics.statistics.intervals import Sampling
from plantain.metrics.statistics.means import too_few
from plantain.pixels.arrays import Floats

Level = Literal["nominal", "ordinal", "interval"]

ONE_CATEGORY = "one category only: chance agreement is certain"

RARE = 10
"""Ratings outside the commonest category below which no interval covers: by chance, none of them may agree."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient with what it rests on.

    Attributes:
        value: at most 1; 0 is chance; None with a `reason`.
        low, high: 95 % interval over clusters, in [-1, 1]; None without a value, or where too few clusters change it,
            so that nothing says how sure it is.
        observed: share of agreeing pairs of ratings (1 minus the observed disagreement for weighted forms);
            None for Krippendorff's ordinal and interval alpha, whose disagreement has no such scale.
        prevalence: share of the most frequent category among all ratings, in [0, 1].
        items, clusters: counts behind it.
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
    weights: Literal["none", "linear", "quadratic"] = "none",
    clusters: Sequence[Hashable] | None = None,
) -> Agreement:
    """Cohen's kappa of two raters (Cohen 1960; weighted: 1968).

    Args:
        first, second: one category per item.
        categories: all categories in order; needed for weights. None: those seen, in order of appearance.
        weights: disagreement by distance in the order of `categories`.
        clusters: of each item; None: every item by itself.

    Raises:
        ValueError: lists of different length, a category not listed, weights without `categories`.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} ratings: one of each per item")
    check_choice(weights, ("none", "linear", "quadratic"), "weights")
    if weights != "none" and categories is None:
        raise ValueError("weighted kappa needs the categories in their order")
    order = {name: i for i, name in enumerate(categories or dict.fromkeys([*first, *second]))}
    strangers = [name for name in [*first, *second] if name not in order]
    if strangers:
        raise ValueError(f"rating {strangers[0]!r} is not one of {list(order)}")
    k = len(order)
    tables = np.zeros((len(first), k, k))
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        tables[i, order[a], order[b]] = 1.0
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)
    cost = {"none": (distance > 0) * 1.0, "linear": distance, "quadratic": distance**2}[weights]
    scale = float(cost.max()) if k > 1 else 1.0

    def kappa(total: Floats) -> Floats:
        share = total / total.sum(axis=(1, 2), keepdims=True)
        expected = np.einsum("na,nb,ab->n", share.sum(axis=2), share.sum(axis=1), cost)
        result: Floats = 1.0 - (share * cost).sum(axis=(1, 2)) / expected
        return result

    marginal = tables.sum(axis=(0, 1)) + tables.sum(axis=(0, 2))
    observed = 1.0 - float((tables * cost).sum()) / scale / len(first) if first else None
    return _with_interval(tables, kappa, marginal, observed, clusters)


def fleiss_kappa(
    counts: npt.ArrayLike,
    *,
    chance: Literal["observed", "uniform"] = "observed",
    clusters: Sequence[Hashable] | None = None,
) -> Agreement:
    """Fleiss' kappa of several raters, or Randolph's with free margins (Fleiss 1971; Randolph 2005).

    Args:
        counts: (items, categories): how many raters chose each category; the same number for every item.
        chance: "observed" margins (Fleiss) or "uniform" over categories (Randolph).
        clusters: of each item; None: every item by itself.

    Raises:
        ValueError: not the same number of raters, at least 2, for each item (use `krippendorff_alpha`).
    """
    check_choice(chance, ("observed", "uniform"), "chance")
    table = check_numbers(counts, "counts", "items", "categories")
    if not table.shape[1] or not (table >= 0).all() or (table % 1 != 0).any():
        raise ValueError("counts: whole numbers of raters, 0 or more, for at least one category")
    raters = float(table[0].sum()) if table.shape[0] else 2.0
    if raters < 2 or (table.sum(axis=1) != raters).any():
        raise ValueError("Fleiss' kappa needs the same number of raters, at least 2, for every item")
    agreeing = (table * (table - 1)).sum(axis=1) / (raters * (raters - 1))
    parts = np.column_stack([table / raters, agreeing, np.ones(table.shape[0])])

    def kappa(total: Floats) -> Floats:
        share = total[:, :-1] / total[:, -1:]
        margins = share[:, :-1]
        expected = (margins**2).sum(axis=1) if chance == "observed" else 1.0 / table.shape[1]
        result: Floats = 1.0 - (1.0 - share[:, -1]) / (1.0 - expected)
        return result

    observed = float(agreeing.mean()) if agreeing.size else None
    return _with_interval(parts, kappa, table.sum(axis=0), observed, clusters)


def krippendorff_alpha(
    ratings: npt.ArrayLike,
    level: Level,
    *,
    clusters: Sequence[Hashable] | None = None,
) -> Agreement:
    """Krippendorff's alpha of any number of raters with missing ratings (Krippendorff 2011).

    Args:
        ratings: (raters, items), numbers; NaN where a rating is missing. Nominal categories as any numbers.
        level: "nominal", "ordinal" or "interval".
        clusters: of each item; None: every item by itself.

    Returns:
        The coefficient over items with at least two ratings.

    Raises:
        ValueError: no such table, an infinite rating, another level, or not a cluster for each item.
    """
    check_choice(level, ("nominal", "ordinal", "interval"), "level")
    table = check_numbers(ratings, "ratings", "raters", "items")
    if clusters is not None and len(clusters) != table.shape[1]:
        raise ValueError(f"{len(clusters)} clusters for {table.shape[1]} items")
    usable = np.isfinite(table).sum(axis=0) >= 2
    table = table[:, usable]
    kept = None if clusters is None else [c for c, use in zip(clusters, usable, strict=True) if use]
    known = np.isfinite(table)
    values, inverse = np.unique(table[known], return_inverse=True)
    counts = np.zeros((table.shape[1], max(values.size, 1)))
    np.add.at(counts, (np.nonzero(known)[1], inverse), 1.0)
    marginal = counts.sum(axis=0)
    if level == "interval":
        return _with_interval(_moments(table, known), _interval_alpha, marginal, None, kept)
    m = counts.sum(axis=1)[:, None, None]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, np.arange(counts.shape[1]), np.arange(counts.shape[1])] -= counts
    coincidences = pairs / np.maximum(m - 1, 1)

    def alpha(total: Floats) -> Floats:
        n_c = total.sum(axis=2)
        n = n_c.sum(axis=1)
        middle = np.cumsum(n_c, axis=1) - n_c / 2
        apart = middle[:, :, None] - middle[:, None, :]
        different = 1.0 - np.eye(n_c.shape[1])
        delta = apart**2 if level == "ordinal" else np.broadcast_to(different, total.shape)
        expected = np.einsum("na,nb,nab->n", n_c, n_c, delta * different) / (n - 1)
        result: Floats = 1.0 - (total * delta).sum(axis=(1, 2)) / expected
        return result

    observed = None
    if level == "nominal" and usable.any():
        observed = float(np.einsum("iaa->", coincidences) / coincidences.sum())
    return _with_interval(coincidences, alpha, marginal, observed, kept)


def _moments(table: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """Per item: ratings, their sum, sum of squares, and sum of squared differences over (ratings - 1)."""
    centre = float(table[known].mean()) if known.any() else 0.0
    x = np.where(known, table - centre, 0.0)
    m, total, squares = known.sum(axis=0), x.sum(axis=0), (x * x).sum(axis=0)
    within = 2.0 * (m * squares - total**2) / np.maximum(m - 1, 1)
    return np.column_stack([m, total, squares, np.maximum(within, 0.0)]).astype(np.float64)


def _interval_alpha(total: Floats) -> Floats:
    n, sums, squares, within = total.T
    expected = 2.0 * (n * squares - sums**2) / (n - 1)
    result: Floats = 1.0 - within / expected
    return result


def _with_interval(
    parts: Floats,
    statistic: Callable[[Floats], Floats],
    marginal: Floats,
    observed: float | None,
    clusters: Sequence[Hashable] | None,
) -> Agreement:
    """The statistic of the items' summed parts, with the jackknife's interval over clusters."""
    items = parts.shape[0]
    if clusters is not None and len(clusters) != items:
        raise ValueError(f"{len(clusters)} clusters for {items} items")
    if not items:
        return Agreement(None, None, None, None, None, 0, 0, "no item has two ratings")
    seen: dict[Hashable, int] = {}
    labels = clusters if clusters is not None else range(items)
    code = np.array([seen.setdefault(name, len(seen)) for name in labels])
    prevalence = float(marginal.max() / marginal.sum())
    if prevalence == 1.0:
        return Agreement(None, None, None, observed, prevalence, items, len(seen), ONE_CATEGORY)
    sums = np.zeros((len(seen), *parts.shape[1:]))
    np.add.at(sums, code, parts)
    value = float(statistic(sums.sum(axis=0, keepdims=True))[0])
    rare = marginal.sum() - marginal.max() < RARE
    low, high = (None, None) if rare else _jackknife(sums, statistic, value)
    return Agreement(value, low, high, observed, prevalence, items, len(seen))


def _jackknife(
    sums: Floats, statistic: Callable[[Floats], Floats], value: float
) -> tuple[float | None, float | None]:
    """The interval from the values without one cluster each (Efron and Stein 1981)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        without = statistic(sums.sum(axis=0, keepdims=True) - sums)
    without = without[np.isfinite(without)]  # what is left may be of one category only
    n = without.size
    if not -1.0 < value < 1.0 or too_few(without - value):
        return None, None
    influence = without.mean() - without
    error = math.sqrt((n - 1) / n * float(np.sum(influence**2)))
    return Sampling(value, error, n - 1).interval(-1.0, 1.0)
