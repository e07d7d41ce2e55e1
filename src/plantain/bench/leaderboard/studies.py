"""Studies within a table: demonstrations or training samples (Table 7), and swept parameters (Figure 7).

Every mean of one metric is over the same samples, those with a score at every level or setting: a refusal at one level
must not make that level look better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from plantain.bench.generate.runfile import Arm
from plantain.bench.leaderboard.measures import MAIN, Measure, against
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.tables import Table
from plantain.metrics.statistics.means import ClusteredMeans, Estimate, mean_of_known
from plantain.pixels.arrays import Floats

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class ShotRow:
    """One mean score in a study of how many examples help.

    Attributes:
        model, task: the model, and the task; "" for all tasks of the study.
        shots: number of demonstrations shown, or of training samples.
        metric: name in the table.
        estimate: mean over the samples with a score at every number of shots.
        change: difference from the fewest shots on the same samples; None for the fewest.
        p_holm: p value of the change, corrected over the numbers of shots; None without a change.
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
        """True if the change from the fewest shots is significant."""
        return self.p_holm is not None and self.p_holm < 0.05


def shot_studies(table: Table) -> dict[str, list[ShotRow]]:
    """Return the rows of each few-shot study by editor, over all its samples, then by task.

    Its arms differ only in the number of demonstrations.
    """
    found: dict[str, list[Arm]] = {}
    for arm in table.scores.arms:
        if arm.shots is not None:
            found.setdefault(arm.label.replace(f"+{arm.shots}shot", ""), []).append(arm)
    scores, studies = table.scores, {}
    for name, arms in found.items():
        if len(arms) < 2:
            continue
        arms.sort(key=lambda arm: arm.shots or 0)
        members = np.flatnonzero(np.logical_and.reduce([scores.covered(arm) for arm in arms]))
        rows: list[ShotRow] = []
        for task in ("", *sorted({scores.samples[i].task for i in members})):
            chosen = np.array([i for i in members if task in ("", scores.samples[i].task)])
            for measure in (measure for measure in table.measures if measure.name in MAIN):
                levels = {arm.shots or 0: scores.values(arm, measure.stored) for arm in arms}
                rows += level_rows(scores, name, task, measure, levels, chosen)
        studies[name] = rows
    return studies


def level_rows(
    scores: Scores, name: str, task: str, measure: Measure, levels: Mapping[int, Floats], chosen: np.ndarray
) -> list[ShotRow]:
    """Return one metric's mean at each number of examples, over the samples scored at all of them; [] if none.

    Args:
        scores: the scores of the run.
        name, task, measure: stored in the rows.
        levels: number of examples -> one value per sample of `scores`, NaN where unscored; fewest first.
        chosen: indices of the samples.
    """
    clusters = [scores.samples[i].cluster for i in chosen]
    strata = [scores.samples[i].organ for i in chosen]
    paired = _on_common_samples({str(level): array[chosen] for level, array in levels.items()})
    if not paired:
        return []
    fewest = next(iter(paired))
    changes = {pair.first: pair for pair in against(measure, paired, fewest, clusters, strata)}
    plan = ClusteredMeans(clusters, strata)
    return [
        ShotRow(
            name,
            task,
            int(level),
            measure.name,
            plan.mean(array, low=measure.low, high=measure.high),
            changes[level].estimate if level in changes else None,
            changes[level].p_holm if level in changes else None,
        )
        for level, array in paired.items()
    ]


def _on_common_samples(values: Mapping[K, Floats]) -> dict[K, Floats]:
    """Return the arrays that have any score, NaN on the samples that one of them has no score of."""
    known = {key: array for key, array in values.items() if np.isfinite(array).any()}
    if not known:
        return {}
    common = np.logical_and.reduce([np.isfinite(array) for array in known.values()])
    return {key: np.where(common, array, np.nan) for key, array in known.items()}


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The scores at one setting of swept parameters.

    Attributes:
        parameters: name -> value of each parameter.
        k: number of its first output.
        estimates: means over samples and seeds, by the metric's name in the table.
    """

    parameters: Mapping[str, float]
    k: int
    estimates: dict[str, Estimate]

    @property
    def setting(self) -> str:
        """The parameters as text, e.g. "guidance 5, image_guidance 1.5"."""
        return ", ".join(f"{name} {value:g}" for name, value in self.parameters.items())


def sweeps(table: Table) -> dict[str, list[SweepPoint]]:
    """Return the settings of every arm that has several, by the arm's label."""
    scores, found = table.scores, {}
    plan = ClusteredMeans(scores.clusters, [sample.organ for sample in scores.samples])
    for arm in scores.arms:
        numbers: dict[tuple[tuple[str, float], ...], list[int]] = {}
        for k, point in enumerate(arm.grid):
            numbers.setdefault(tuple(point.parameters.items()), []).append(k)
        if len(numbers) < 2:
            continue
        points = {key: SweepPoint(dict(key), ks[0], {}) for key, ks in sorted(numbers.items())}
        for measure in table.main:
            outputs = scores.outputs.get((arm.label, measure.stored))
            if outputs is None:
                continue
            common = _on_common_samples(
                {key: mean_of_known(outputs[:, ks], 1) for key, ks in numbers.items()}
            )
            for key, array in common.items():
                points[key].estimates[measure.name] = plan.mean(array, low=measure.low, high=measure.high)
        found[arm.label] = list(points.values())
    return found
