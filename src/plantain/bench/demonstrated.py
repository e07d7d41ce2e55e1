"""What demonstrations in the prompt change: Table 7 (b), each number paired with the same samples without any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plantain.bench.arms import Arm
from plantain.bench.measures import MAIN, Measure
from plantain.bench.tables import Table
from plantain.metrics.paired import holm, paired_differences
from plantain.metrics.resampling import Estimate, Resampling
from plantain.records import derive_seed

CONFUSION = "demo_similarity"
"""How far outputs look like the demonstrations: the measure of an editor that confuses them with the sample."""


@dataclass(frozen=True, slots=True)
class ShotRow:
    """One number of a few-shot study.

    Attributes:
        model, task: whose, and of which samples; task "" for all of the study.
        shots: demonstrations shown.
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
            rows.extend(_rows(table, name, arms, task, measure, chosen))
    return rows


def _rows(
    table: Table, name: str, arms: Sequence[Arm], task: str, measure: Measure, chosen: np.ndarray
) -> list[ShotRow]:
    scores = table.scores
    clusters = [scores.samples[i].cluster for i in chosen]
    strata = [scores.samples[i].organ for i in chosen]
    values = {arm.label: scores.values(arm, measure.stored)[chosen] for arm in arms}
    known = {label: array for label, array in values.items() if np.isfinite(array).any()}
    if not known:
        return []
    common = np.logical_and.reduce([np.isfinite(array) for array in known.values()])
    paired = {label: np.where(common, array, np.nan) for label, array in known.items()}
    seed = derive_seed(scores.seed, "shots", measure.name)
    plan = Resampling(clusters, strata, seed=seed)
    first = next(iter(known))
    changes = {
        pair.second: pair
        for pair in paired_differences(paired, clusters, strata, seed=seed)
        if pair.first == first
    }
    corrected = dict(zip(changes, holm([pair.p for pair in changes.values()]), strict=True))
    rows = []
    for arm in arms:
        if arm.label not in known:
            continue
        pair = changes.get(arm.label)
        change = _reversed(pair.estimate) if pair is not None else None
        estimate = plan.mean(paired[arm.label])
        rows.append(
            ShotRow(name, task, arm.shots or 0, measure.name, estimate, change, corrected.get(arm.label))
        )
    return rows


def _reversed(estimate: Estimate) -> Estimate:
    """The same difference the other way round."""

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return Estimate(
        minus(estimate.value),
        minus(estimate.high),
        minus(estimate.low),
        estimate.n,
        estimate.clusters,
        estimate.method,
    )
