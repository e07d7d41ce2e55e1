"""How well metrics order models as people do (Table 3), image by image, ties kept; and how far people agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from plantain.bench.leaderboard.humans import DIMENSIONS, HumanRatings
from plantain.bench.leaderboard.measures import Measure, paper_name
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.tables import OVERALL, Table
from plantain.metrics.statistics.agreement import Agreement, cohen_kappa, fleiss_kappa, krippendorff_alpha
from plantain.metrics.statistics.means import Estimate, mean_of_known
from plantain.metrics.statistics.ranks import average_ranks, formula_one, image_correlation, spearman
from plantain.pixels.arrays import Floats
from plantain.records import Score

MOST_CATEGORIES = 25
"""Ratings with more different values are no categories: agreement is then of distances only."""

STATISTICS: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], Score]] = {
    "spearman": spearman,
    "formula_1": formula_one,
}


@dataclass(frozen=True, slots=True)
class RankRow:
    """How well one metric orders models as people do in one dimension: mean rank correlations over images.

    Attributes:
        metric: the metric's name in tables; `name`: its name in the paper.
        dimension: the rated dimension of MedEBench, e.g. "EA".
        organ: the organ of the images, or `OVERALL`.
        spearman: Spearman's rho, corrected for ties.
        formula_1: Spearman's rho by MedEBench's formula, which ignores ties.
    """

    metric: str
    name: str
    dimension: str
    organ: str
    spearman: Estimate
    formula_1: Estimate


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Agreement of raters in one dimension.

    Attributes:
        level: level of Krippendorff's alpha: "ordinal", or "interval" with many different values; "of ranks" if some
            raters gave scores and others ranks, so that only the order within an image is comparable.
        krippendorff: Krippendorff's alpha.
        fleiss: Fleiss' kappa over the outputs that all raters rated; None if the values are not categories.
        cohen: quadratically weighted kappa of each pair of raters; empty if the values are not categories.
        spearman: rank correlations of each pair of raters, by statistic: means over images.
    """

    dimension: str
    level: str
    krippendorff: Agreement
    fleiss: Agreement | None
    cohen: Mapping[tuple[str, str], Agreement]
    spearman: Mapping[tuple[str, str], Mapping[str, Estimate]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """MedEBench's Table 3: how well metrics order models as people do.

    Attributes:
        raters, models: names of the raters and labels of the models.
        images: number of samples of which a rater rated at least two models, by dimension.
        rows: one per metric and dimension over all images; organs: the same for each organ.
        agreement: agreement of the raters by dimension; empty for one rater.
        remarks: notes on how the ratings were collected.
    """

    raters: tuple[str, ...]
    models: tuple[str, ...]
    images: Mapping[str, int]
    rows: tuple[RankRow, ...]
    organs: tuple[RankRow, ...]
    agreement: tuple[RaterAgreement, ...]
    remarks: tuple[str, ...] = ()


def rank(table: Table, ratings: HumanRatings) -> Ranking:
    """Compute the rank correlations of every metric of a table with human raters.

    A metric's values of one image's outputs are correlated with the mean of the raters' ranks of the same outputs;
    correlations are averaged over images, and resampled by source. Lower-is-better metrics are negated first.
    """
    scores = table.scores
    dimensions = [name for name in DIMENSIONS if name in ratings.values]
    people = {name: consensus(ratings.values[name]) for name in dimensions}
    several = len(ratings.raters) > 1
    measures = [measure for measure in table.measures if not measure.stored.startswith("rank_")]

    def rows(organ: str) -> tuple[RankRow, ...]:
        chosen = np.array([organ in (OVERALL, sample.organ) for sample in scores.samples])
        return tuple(
            _row(
                scores, measure, ratings.models, name, np.where(chosen[:, None], people[name], np.nan), organ
            )
            for measure in measures
            for name in dimensions
        )

    return Ranking(
        raters=ratings.raters,
        models=ratings.models,
        images={name: int((np.isfinite(people[name]).sum(axis=1) > 1).sum()) for name in dimensions},
        rows=rows(OVERALL),
        organs=tuple(row for organ in scores.organs for row in rows(organ)),
        agreement=tuple(_agreement(scores, name, ratings) for name in dimensions if several),
        remarks=ratings.remarks,
    )


def ranks_within(ratings: Floats) -> Floats:
    """Convert ratings to each rater's ranks within an image, (raters, images, models), in [0, 1], 1 the best.

    Ranks are divided by the number of outputs that the rater saw, so that raters who saw fewer, or used another scale,
    count alike. NaN where not rated; a single rated output has no rank.
    """
    ranks = np.full(ratings.shape, np.nan)
    for rater, image in np.ndindex(ratings.shape[:2]):
        seen = np.flatnonzero(np.isfinite(ratings[rater, image]))
        if seen.size > 1:
            ranks[rater, image, seen] = (average_ranks(ratings[rater, image, seen]) - 1.0) / (seen.size - 1)
    return ranks


def consensus(ratings: Floats) -> Floats:
    """Return the raters' mean rank of each output within its image: (raters, images, models) to (images, models)."""
    return mean_of_known(ranks_within(ratings), 0)


def _row(
    scores: Scores, measure: Measure, models: tuple[str, ...], dimension: str, people: Floats, organ: str
) -> RankRow:
    sign = 1.0 if measure.higher_is_better else -1.0
    values = np.stack([sign * scores.values(scores.arm(label), measure.stored) for label in models], axis=1)
    found = {
        name: image_correlation(values, people, scores.clusters, statistic=statistic)
        for name, statistic in STATISTICS.items()
    }
    return RankRow(measure.name, paper_name(measure), dimension, organ, **found)


def _agreement(scores: Scores, dimension: str, ratings: HumanRatings) -> RaterAgreement:
    values, level = ratings.values[dimension], ""
    if dimension in ratings.mixed:
        values, level = ranks_within(values), " of ranks"
    flat = values.reshape(values.shape[0], -1)
    clusters = [cluster for cluster in scores.clusters for _ in ratings.models]
    kinds = np.unique(flat[np.isfinite(flat)])
    numbers = {name: i for i, name in enumerate(ratings.raters)}
    spearmans = {
        (one, other): {
            name: image_correlation(
                values[numbers[one]], values[numbers[other]], scores.clusters, statistic=statistic
            )
            for name, statistic in STATISTICS.items()
        }
        for one, other in combinations(ratings.raters, 2)
    }
    if kinds.size > MOST_CATEGORIES:
        alpha = krippendorff_alpha(flat, "interval", clusters=clusters)
        return RaterAgreement(dimension, f"interval{level}", alpha, None, {}, spearmans)
    complete = np.flatnonzero(np.isfinite(flat).all(axis=0))
    counts = np.stack([(flat[:, complete] == kind).sum(axis=0) for kind in kinds], axis=1)
    cohen = {}
    for one, other in combinations(range(len(ratings.raters)), 2):
        both = np.flatnonzero(np.isfinite(flat[[one, other]]).all(axis=0))
        cohen[ratings.raters[one], ratings.raters[other]] = cohen_kappa(
            flat[one, both].tolist(),
            flat[other, both].tolist(),
            categories=kinds.tolist(),
            weights="quadratic",
            clusters=[clusters[i] for i in both],
        )
    return RaterAgreement(
        dimension,
        f"ordinal{level}",
        krippendorff_alpha(flat, "ordinal", clusters=clusters),
        fleiss_kappa(counts, clusters=[clusters[i] for i in complete]),
        cohen,
        spearmans,
    )


def ranking_json(ranking: Ranking) -> dict[str, object]:
    """Return a ranking as JSON values, with the attributes of `Ranking` as keys."""
    return {
        "raters": list(ranking.raters),
        "models": list(ranking.models),
        "images": dict(ranking.images),
        "remarks": list(ranking.remarks),
        "rows": [_row_json(row) for row in ranking.rows],
        "organs": [_row_json(row) for row in ranking.organs],
        "agreement": [
            {
                "dimension": one.dimension,
                "krippendorff": {"level": one.level, **_agreement_json(one.krippendorff)},
                "fleiss": one.fleiss and _agreement_json(one.fleiss),
                "cohen": [
                    {"raters": list(pair), **_agreement_json(kappa)} for pair, kappa in one.cohen.items()
                ],
                "spearman": [
                    {"raters": list(pair), **_correlations(**found)} for pair, found in one.spearman.items()
                ],
            }
            for one in ranking.agreement
        ],
    }


def _row_json(row: RankRow) -> dict[str, object]:
    found = _correlations(row.spearman, row.formula_1)
    return {"metric": row.metric, "name": row.name, "dimension": row.dimension, "organ": row.organ, **found}


def _correlations(spearman: Estimate, formula_1: Estimate) -> dict[str, object]:
    return {
        "spearman": spearman.value,
        "low": spearman.low,
        "high": spearman.high,
        "formula_1": formula_1.value,
        "n": spearman.n,
        "clusters": spearman.clusters,
    }


def _agreement_json(found: Agreement) -> dict[str, object]:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "prevalence": found.prevalence,
        "n": found.items,
        "clusters": found.clusters,
        "reason": found.reason,
    }
