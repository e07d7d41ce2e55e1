"""How well metrics order models as people do (Table 3), image by image, ties kept; and how far people agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from plantain.bench.leaderboard.humans import DIMENSIONS, HumanRatings
from plantain.bench.leaderboard.measures import Measure
from plantain.bench.leaderboard.table_rows import Scores
from plantain.bench.leaderboard.tables import Table
from plantain.metrics.statistics.agreement import Agreement, cohen_kappa, fleiss_kappa, krippendorff_alpha
from plantain.metrics.statistics.means import Estimate
from plantain.metrics.statistics.ranks import (
    average_ranks,
    human_ceiling,
    image_correlation,
    kendall,
    spearman,
)
from plantain.pixels.arrays import Floats
from plantain.records import Score

MANY = 25
"""More different values than this are no categories: agreement is then of distances only."""

Statistic = Callable[[npt.ArrayLike, npt.ArrayLike], Score]
STATISTICS: dict[str, Statistic] = {"spearman": spearman, "kendall": kendall}


@dataclass(frozen=True, slots=True)
class RankRow:
    """How one metric orders the models of an image as people do in one dimension: means over images."""

    metric: str
    dimension: str
    spearman: Estimate
    kendall: Estimate


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Agreement of raters in one dimension.

    Attributes:
        krippendorff: alpha, "ordinal" or, with many different values, "interval", as `level` says; "of ranks" where
            some raters gave scores and others ranks, which have nothing but the order within an image in common.
        fleiss: kappa over the outputs that all have rated; None where the values are no categories.
        cohen: quadratically weighted kappa of each pair; empty where the values are no categories.
    """

    dimension: str
    level: str
    krippendorff: Agreement
    fleiss: Agreement | None
    cohen: Mapping[tuple[str, str], Agreement]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Table 3 with what it rests on.

    Attributes:
        raters, models: who rated, and whose outputs.
        images: samples on which anybody rated at least two models, by dimension.
        rows: one per metric and dimension.
        ceiling: by dimension and statistic, how far one rater orders models as the others do; empty for one rater.
        agreement: by dimension; empty for one rater.
    """

    raters: tuple[str, ...]
    models: tuple[str, ...]
    images: Mapping[str, int]
    rows: tuple[RankRow, ...]
    ceiling: Mapping[str, Mapping[str, Estimate]]
    agreement: tuple[RaterAgreement, ...]


def rank(table: Table, ratings: HumanRatings) -> Ranking:
    """Compares every metric of a table with people.

    A metric's models of one image are correlated with the mean of the raters' ranks of the same outputs; what is
    averaged, and resampled by source, are images. Lower-is-better metrics are turned round first.
    """
    scores = table.scores
    dimensions = [name for name in DIMENSIONS if name in ratings.values]
    people = {name: consensus(ratings.values[name]) for name in dimensions}
    rows = [
        _row(scores, measure, ratings.models, name, people[name])
        for measure in table.measures
        for name in dimensions
    ]
    several = len(ratings.raters) > 1
    return Ranking(
        raters=ratings.raters,
        models=ratings.models,
        images={name: int((np.isfinite(people[name]).sum(axis=1) > 1).sum()) for name in dimensions},
        rows=tuple(rows),
        ceiling={name: _ceiling(scores, ratings.values[name]) for name in dimensions} if several else {},
        agreement=tuple(_agreement(scores, name, ratings) for name in dimensions) if several else (),
    )


def ranks_within(ratings: Floats) -> Floats:
    """(raters, images, models): each rater's ranks of the outputs of an image.

    Ranks are brought to [0, 1] by the number of outputs that the rater saw, 1 for the best, so that a rater who saw
    fewer, or used another scale, counts alike. NaN where nobody rated; a single rated output has no rank.
    """
    ranks = np.full(ratings.shape, np.nan)
    for rater, image in np.ndindex(ratings.shape[:2]):
        seen = np.flatnonzero(np.isfinite(ratings[rater, image]))
        if seen.size > 1:
            ranks[rater, image, seen] = (average_ranks(ratings[rater, image, seen]) - 1.0) / (seen.size - 1)
    return ranks


def consensus(ratings: Floats) -> Floats:
    """(raters, images, models) to (images, models): the mean over raters of their `ranks_within` an image."""
    ranks = ranks_within(ratings)
    known = np.isfinite(ranks)
    count = known.sum(axis=0)
    total = np.where(known, ranks, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _row(
    scores: Scores, measure: Measure, models: tuple[str, ...], dimension: str, people: Floats
) -> RankRow:
    sign = 1.0 if measure.higher_is_better else -1.0
    values = np.stack([sign * scores.values(scores.arm(label), measure.stored) for label in models], axis=1)
    found = {
        name: image_correlation(values, people, scores.clusters, statistic=statistic)
        for name, statistic in STATISTICS.items()
    }
    return RankRow(measure.name, dimension, found["spearman"], found["kendall"])


def _ceiling(scores: Scores, ratings: Floats) -> dict[str, Estimate]:
    ranks = ranks_within(
        ratings
    )  # what metrics are held against, too: the others' mean is of ranks, not of scales
    return {
        name: human_ceiling(ranks, scores.clusters, statistic=statistic)
        for name, statistic in STATISTICS.items()
    }


def _agreement(scores: Scores, dimension: str, ratings: HumanRatings) -> RaterAgreement:
    mixed = dimension in ratings.mixed
    table = ranks_within(ratings.values[dimension]) if mixed else ratings.values[dimension]
    level = " of ranks" if mixed else ""
    flat = table.reshape(table.shape[0], -1)
    clusters = [cluster for cluster in scores.clusters for _ in ratings.models]
    kinds = np.unique(flat[np.isfinite(flat)])
    if kinds.size > MANY:
        alpha = krippendorff_alpha(flat, "interval", clusters=clusters)
        return RaterAgreement(dimension, f"interval{level}", alpha, None, {})
    alpha = krippendorff_alpha(flat, "ordinal", clusters=clusters)
    complete = np.flatnonzero(np.isfinite(flat).all(axis=0))
    counts = np.stack([(flat[:, complete] == kind).sum(axis=0) for kind in kinds], axis=1)
    fleiss = fleiss_kappa(counts, clusters=[clusters[i] for i in complete])
    cohen = {}
    for one, other in combinations(range(len(ratings.raters)), 2):
        both = np.flatnonzero(np.isfinite(flat[[one, other]]).all(axis=0))
        cohen[ratings.raters[one], ratings.raters[other]] = cohen_kappa(
            [float(value) for value in flat[one, both]],
            [float(value) for value in flat[other, both]],
            categories=[float(kind) for kind in kinds],
            weights="quadratic",
            clusters=[clusters[i] for i in both],
        )
    return RaterAgreement(dimension, f"ordinal{level}", alpha, fleiss, cohen)


def ranking_json(ranking: Ranking) -> dict[str, object]:
    """A ranking as scripts read it."""
    return {
        "raters": list(ranking.raters),
        "models": list(ranking.models),
        "images": dict(ranking.images),
        "rows": [
            {"metric": row.metric, "dimension": row.dimension, **_both(row.spearman, row.kendall)}
            for row in ranking.rows
        ],
        "ceiling": [
            {"dimension": name, **_both(found["spearman"], found["kendall"])}
            for name, found in ranking.ceiling.items()
        ],
        "agreement": [
            {
                "dimension": one.dimension,
                "krippendorff": {"level": one.level, **_agreed(one.krippendorff)},
                "fleiss": None if one.fleiss is None else _agreed(one.fleiss),
                "cohen": [{"raters": list(pair), **_agreed(kappa)} for pair, kappa in one.cohen.items()],
            }
            for one in ranking.agreement
        ],
    }


def _both(rho: Estimate, tau: Estimate) -> dict[str, object]:
    return {
        "spearman": rho.value,
        "low": rho.low,
        "high": rho.high,
        "kendall": tau.value,
        "kendall_low": tau.low,
        "kendall_high": tau.high,
        "n": rho.n,
        "clusters": rho.clusters,
    }


def _agreed(found: Agreement) -> dict[str, object]:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "prevalence": found.prevalence,
        "n": found.items,
        "clusters": found.clusters,
        "reason": found.reason,
    }
