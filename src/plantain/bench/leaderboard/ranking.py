"""How well metrics order models as people do (Table 3), image by image, ties kept; and how far people agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from plantain.bench.leaderboard.humans import DIMENSIONS, HumanRatings
from plantain.bench.leaderboard.measures import paper_name
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.tables import OVERALL, Table
from plantain.metrics.statistics.means import ClusteredMeans, Estimate, mean_of_known
from plantain.metrics.statistics.ranks import average_ranks, formula_one, spearman
from plantain.pixels.arrays import Floats


@dataclass(frozen=True, slots=True)
class Correlation:
    """Mean rank correlation over images.

    Attributes:
        spearman: Spearman's rho, corrected for ties.
        formula_1: Spearman's rho by MedEBench's formula, which ignores ties.
    """

    spearman: Estimate
    formula_1: Estimate

    @classmethod
    def of(cls, first: Floats, second: Floats, scores: Scores) -> Correlation:
        """Correlate two tables (images, models), higher is better in both, NaN where unknown.

        Images with all models tied are skipped. Intervals are over the images' clusters.
        """
        plan, images = ClusteredMeans(scores.clusters), list(zip(first, second, strict=True))
        found = ([rho(a, b).value for a, b in images] for rho in (spearman, formula_one))
        return cls(*(plan.mean(np.array(values, np.float64), low=-1.0, high=1.0) for values in found))

    def record(self) -> dict[str, object]:
        """Return the correlation as JSON values."""
        return {
            "spearman": self.spearman.value,
            "low": self.spearman.low,
            "high": self.spearman.high,
            "formula_1": self.formula_1.value,
            "n": self.spearman.n,
            "clusters": self.spearman.clusters,
        }


@dataclass(frozen=True, slots=True)
class RankRow:
    """How well one metric orders models as people do in one dimension.

    Attributes:
        metric: the metric's name in tables; `name`: its name in the paper.
        dimension: the rated dimension of MedEBench, e.g. "EA".
        organ: the organ of the images, or `OVERALL`.
    """

    metric: str
    name: str
    dimension: str
    organ: str
    found: Correlation


@dataclass(frozen=True, slots=True)
class Ranking:
    """MedEBench's Table 3: how well metrics order models as people do.

    Attributes:
        raters, models: names of the raters and labels of the models.
        images: number of samples of which a rater rated at least two models, by dimension.
        rows: one per metric and dimension over all images; organs: the same for each organ.
        agreement: dimension -> pair of raters -> how far they agree; empty for one rater.
        remarks: notes on how the ratings were collected.
    """

    raters: tuple[str, ...]
    models: tuple[str, ...]
    images: Mapping[str, int]
    rows: tuple[RankRow, ...]
    organs: tuple[RankRow, ...]
    agreement: Mapping[str, Mapping[tuple[str, str], Correlation]]
    remarks: tuple[str, ...] = ()


def rank(table: Table, ratings: HumanRatings) -> Ranking:
    """Compute the rank correlations of every metric of a table with human raters.

    A metric's values of one image's outputs are correlated with the mean of the raters' ranks of the same outputs;
    correlations are averaged over images, and resampled by source. Lower-is-better metrics are negated first.
    """
    scores = table.scores
    dimensions = [name for name in DIMENSIONS if name in ratings.values]
    people = {name: consensus(ratings.values[name]) for name in dimensions}

    def rows(organ: str) -> tuple[RankRow, ...]:
        chosen = np.array([[organ in (OVERALL, sample.organ)] for sample in scores.samples])
        found = []
        for measure in table.measures:
            if measure.stored.startswith("rank_"):
                continue
            columns = [scores.values(scores.arm(label), measure.stored) for label in ratings.models]
            values = np.stack(columns, axis=1) * (1.0 if measure.higher_is_better else -1.0)
            for name in dimensions:
                one = Correlation.of(values, np.where(chosen, people[name], np.nan), scores)
                found.append(RankRow(measure.name, paper_name(measure), name, organ, one))
        return tuple(found)

    pairs = list(combinations(enumerate(ratings.raters), 2))
    return Ranking(
        raters=ratings.raters,
        models=ratings.models,
        images={name: int((np.isfinite(people[name]).sum(axis=1) > 1).sum()) for name in dimensions},
        rows=rows(OVERALL),
        organs=tuple(row for organ in scores.organs for row in rows(organ)),
        agreement={
            name: {
                (one, other): Correlation.of(ratings.values[name][i], ratings.values[name][j], scores)
                for (i, one), (j, other) in pairs
            }
            for name in dimensions
            if pairs
        },
        remarks=ratings.remarks,
    )


def consensus(ratings: Floats) -> Floats:
    """Return the raters' mean rank of each output within its image: (raters, images, models) to (images, models).

    Ranks are in [0, 1], 1 the best: divided by the number of outputs that the rater saw, so that raters who saw fewer,
    or used another scale, count alike. NaN where not rated; a single rated output has no rank.
    """
    ranks = np.full(ratings.shape, np.nan)
    for rater, image in np.ndindex(ratings.shape[:2]):
        seen = np.flatnonzero(np.isfinite(ratings[rater, image]))
        if seen.size > 1:
            ranks[rater, image, seen] = (average_ranks(ratings[rater, image, seen]) - 1.0) / (seen.size - 1)
    return mean_of_known(ranks, 0)


def ranking_json(ranking: Ranking) -> dict[str, object]:
    """Return a ranking as JSON values, with the attributes of `Ranking` as keys."""
    return {
        "raters": list(ranking.raters),
        "models": list(ranking.models),
        "images": dict(ranking.images),
        "remarks": list(ranking.remarks),
        "rows": [_record(row) for row in ranking.rows],
        "organs": [_record(row) for row in ranking.organs],
        "agreement": [
            {
                "dimension": name,
                "spearman": [{"raters": list(pair), **found.record()} for pair, found in pairs.items()],
            }
            for name, pairs in ranking.agreement.items()
        ],
    }


def _record(row: RankRow) -> dict[str, object]:
    names = {"metric": row.metric, "name": row.name, "dimension": row.dimension, "organ": row.organ}
    return names | row.found.record()
