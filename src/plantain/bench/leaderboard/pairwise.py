"""Models two at a time: Bradley-Terry strengths by people's comparisons, and by those that a judge's EA implies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plantain.bench.leaderboard.measures import Measure
from plantain.bench.leaderboard.table_rows import Scores, barred, baseline, given_region
from plantain.bench.leaderboard.tables import Table
from plantain.metrics.statistics.bradley_terry import Comparison, Strengths, bradley_terry
from plantain.metrics.statistics.means import FEWEST
from plantain.records.counts import counted

MOST_PAIRS = 50_000
"""Comparisons that are fitted at most."""


@dataclass(frozen=True, slots=True)
class PairwiseTable:
    """Strengths of models by one source of comparisons.

    Attributes:
        source: who compared.
        rule: how comparisons came about, in words.
        strengths: what was fitted.
        ranked: whether an order may be told from them: False where the judge has failed its gate.
    """

    source: str
    rule: str
    strengths: Strengths
    ranked: bool = True

    @property
    def lacking(self) -> str:
        """Why there are no intervals; "" where there are."""
        if any(value.low is not None for value in self.strengths.strength):
            return ""
        few = f"no interval: {counted(self.strengths.cases, 'independent source')}"
        return few + (f", {FEWEST} are needed" if self.strengths.cases < FEWEST else "")


def pairwise_tables(table: Table, people: Sequence[Comparison] = ()) -> list[PairwiseTable]:
    """By people, if they compared, then by each judge that has scored at least two models."""
    found = []
    by_people = fitted_strengths(people)
    if by_people is not None:
        found.append(PairwiseTable("people", f"{counted(by_people.readers, 'reader')}", by_people))
    for judge, strengths in sorted(judged_strengths(table.scores).items()):
        trusted = not barred(table.scores, Measure("EA", f"ea@{judge}", "editing accuracy"))
        found.append(PairwiseTable(judge, "the higher EA of a sample wins", strengths, trusted))
    return found


def pairwise_rows(tables: Sequence[PairwiseTable]) -> Iterator[dict[str, object]]:
    """One row a source and model, the strongest first, as scripts read them."""
    for table in tables:
        found = table.strengths
        order = sorted(range(len(found.models)), key=lambda i: -found.strength[i].value)
        for i in order:
            value, rank = found.strength[i], found.ranks[i]
            yield {
                "by": table.source,
                "model": found.models[i],
                "strength": value.value,
                "low": value.low,
                "high": value.high,
                "rank_low": rank[0] if table.ranked else None,
                "rank_high": rank[1] if table.ranked else None,
                "comparisons": found.comparisons,
                "readers": found.readers,
                "clusters": found.cases,
            }


def judged_strengths(scores: Scores) -> dict[str, Strengths]:
    """Strengths by the comparisons that each judge's editing accuracy implies: the higher score of a sample wins.

    Models that find the place only: baselines have nothing to win, arms of a few-shot study see part of the samples.
    """
    found: dict[str, Strengths] = {}
    for metric in scores.metrics:
        criterion, _, judge = metric.partition("@")
        if criterion != "ea" or not judge:
            continue
        arms = [arm for arm in scores.arms if not (baseline(arm) or given_region(arm)) and arm.shots is None]
        values = {arm.label: scores.values(arm, metric) for arm in arms}
        labels = sorted(label for label, own in values.items() if np.isfinite(own).any())
        comparisons = [
            Comparison(one, other, int(np.sign(values[one][i] - values[other][i])), judge, facts.cluster)
            for i, facts in enumerate(scores.samples)
            for n, one in enumerate(labels)
            for other in labels[n + 1 :]
            if np.isfinite(values[one][i]) and np.isfinite(values[other][i])
        ]
        fitted = fitted_strengths(comparisons, implied=True)
        if fitted is not None:
            found[judge] = fitted
    return found


def fitted_strengths(comparisons: Sequence[Comparison], *, implied: bool = False) -> Strengths | None:
    """Strengths; None without comparisons, with more than are fitted, or where no strengths follow from them."""
    if not comparisons or len(comparisons) > MOST_PAIRS:
        return None
    try:
        return bradley_terry(comparisons, implied=implied)
    except (ValueError, np.linalg.LinAlgError):
        return None
