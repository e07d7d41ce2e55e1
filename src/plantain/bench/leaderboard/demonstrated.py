"""What examples change, shown in the prompt or learned from: Table 7, each number paired with the fewest examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plantain.bench.generate.arms import Arm
from plantain.bench.leaderboard.measures import MAIN, Measure
from plantain.bench.leaderboard.table_rows import Scores
from plantain.bench.leaderboard.tables import Table
from plantain.metrics.statistics.means import ClusteredMeans, Estimate
from plantain.metrics.statistics.paired import holm, paired_differences
from plantain.pixels.arrays import Floats

CONFUSION = "demo_similarity"
"""How far outputs look like the demonstrations: the measure of an editor that confuses them with the sample."""


@dataclass(frozen=True, slots=True)
class ShotRow:
    """One number of a study of how many examples help.

    Attributes:
        model, task: whose, and of which samples; task "" for all of the study.
        shots: demonstrations shown, or samples learned from.
        metric: name in the table.
        estimate: mean over the samples that every number of shots has a score of.
        change: difference from the fewest shots on the same samples; None for the fewest.
        p_holm: of the change, corrected over the numbers of shots; None without one.
    """

    model: str
    task: str
    shots: int
    metric: str
    estimate: Estimate
    change: Estimate | None
    p_holm: float | None

    @property
    def differs(self) -> bool:
        return self.p_holm is not None and self.p_holm < 0.05


def studies(table: Table) -> dict[str, list[Arm]]:
    """The few-shot studies of a run: arms that differ in the number of demonstrations only, fewest first."""
    found: dict[str, list[Arm]] = {}
    for arm in table.scores.arms:
        if arm.shots is not None:
            found.setdefault(arm.label.removesuffix(f"+{arm.shots}shot"), []).append(arm)
    return {
        name: sorted(arms, key=lambda arm: arm.shots or 0) for name, arms in found.items() if len(arms) > 1
    }


def shot_rows(table: Table, name: str, arms: Sequence[Arm]) -> list[ShotRow]:
    """The rows of one study: over all its samples, then by task.

    Every mean of one metric is over the same samples, those that all numbers of shots have a score of: a refusal at
    three shots must not make three shots look better.
    """
    scores = table.scores
    measures = [m for m in table.measures if m.name in (*MAIN, CONFUSION)]
    study = np.logical_and.reduce([scores.covered(arm) for arm in arms])
    tasks = sorted({sample.task for sample, inside in zip(scores.samples, study, strict=True) if inside})
    rows = []
    for task in ("", *tasks):
        chosen = np.flatnonzero(
            [
                inside and task in ("", sample.task)
                for sample, inside in zip(scores.samples, study, strict=True)
            ]
        )
        for measure in measures:
            levels = {arm.shots or 0: scores.values(arm, measure.stored) for arm in arms}
            rows.extend(level_rows(scores, name, task, measure, levels, chosen))
    return rows


def level_rows(
    scores: Scores, name: str, task: str, measure: Measure, levels: Mapping[int, Floats], chosen: np.ndarray
) -> list[ShotRow]:
    """The rows of one metric: every level on the samples that all levels have a score of, paired with the first.

    Args:
        scores: whose samples.
        name, task, measure: for the rows.
        levels: number of examples -> one value per sample of `scores`, NaN where unscored; fewest first.
        chosen: indices of the samples that the rows are about.
    """
    clusters = [scores.samples[i].cluster for i in chosen]
    strata = [scores.samples[i].organ for i in chosen]
    values = {level: array[chosen] for level, array in levels.items()}
    known = {str(level): array for level, array in values.items() if np.isfinite(array).any()}
    if not known:
        return []
    common = np.logical_and.reduce([np.isfinite(array) for array in known.values()])
    paired = {label: np.where(common, array, np.nan) for label, array in known.items()}
    plan = ClusteredMeans(clusters, strata)
    first = next(iter(known))
    changes = {
        pair.second: pair
        for pair in paired_differences(paired, clusters, strata, low=measure.low, high=measure.high)
        if pair.first == first
    }
    corrected = dict(zip(changes, holm([pair.p for pair in changes.values()]), strict=True))
    rows = []
    for level, array in paired.items():
        pair = changes.get(level)
        change = _reversed(pair.estimate) if pair is not None else None
        rows.append(
            ShotRow(
                name,
                task,
                int(level),
                measure.name,
                plan.mean(array, low=measure.low, high=measure.high),
                change,
                corrected.get(level),
            )
        )
    return rows


def _reversed(estimate: Estimate) -> Estimate:
    """The same difference the other way round."""

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return replace(estimate, value=minus(estimate.value), low=minus(estimate.high), high=minus(estimate.low))
