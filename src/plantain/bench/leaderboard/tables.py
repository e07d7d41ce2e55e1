"""The numbers of a leaderboard: means with intervals per organ, per task and overall, with coverage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from plantain.bench.generate.runfile import Arm
from plantain.bench.leaderboard.measures import (
    MAIN,
    Measure,
    against,
    differences,
    indistinct,
    judges,
    marks,
    ordered,
    ranks,
)
from plantain.bench.leaderboard.scores import Scores, is_baseline
from plantain.metrics.statistics.means import ClusteredMeans, Estimate
from plantain.metrics.statistics.paired import Difference
from plantain.records import InputError
from plantain.records.messages import suggest

OVERALL = "overall"
"""The mean of the samples of all organs, as in the paper's Table 2."""
UNEDITED, TRUTH = "copy-input", "ground-truth"


@dataclass(frozen=True, slots=True)
class TableCell:
    """One number of a table.

    Attributes:
        model: label of the arm; baseline: True if it is a baseline.
        organ: a name or `OVERALL`; task: "" unless the table goes by task.
        metric: name in the table.
        estimate: mean with its 95 % interval.
        samples: number of samples that the arm covers in this group.
        scored: number of these whose first output has a score.
        mark: "best" or "second" where the paired differences are significant, else "".
        rank: lowest and highest rank among the models, 1 the best; None where models are not ranked.
    """

    model: str
    baseline: bool
    organ: str
    task: str
    metric: str
    estimate: Estimate
    samples: int
    scored: int
    mark: str = ""
    rank: tuple[int, int] | None = None

    @property
    def coverage(self) -> float:
        """The share of the group's samples that have a score, in [0, 1]."""
        return self.scored / self.samples if self.samples else 0.0

    @property
    def rank_text(self) -> str:
        """The rank as text, e.g. "2" or "1 to 3"; "" without a rank."""
        if self.rank is None:
            return ""
        low, high = self.rank
        return str(low) if low == high else f"{low} to {high}"


@dataclass(slots=True)
class Table:
    """The numbers of a leaderboard.

    Attributes:
        scores: the scores that it was computed from.
        judge: the judge whose scores are EA, VQ and "CP judge"; None without scores of a judge.
        judges: labels of all judges with scores.
        measures: the measures in the order of columns.
        cells: cells by (model, organ, metric); organs, then overall.
        tasks: cells by (model, organ, task, metric): EA, CP, VQ and attention only.
        differences: differences of all pairs of models over all samples, by metric.
        reference: label of the arm that every other one is compared with; "" without one.
        against: (model, metric) -> the model minus the reference over all samples, corrected over the models.
        blind: judge -> one line, for judges that do not score the truth above the unedited input.
    """

    scores: Scores
    judge: str | None
    judges: tuple[str, ...]
    measures: tuple[Measure, ...]
    cells: dict[tuple[str, str, str], TableCell] = field(default_factory=dict)
    tasks: dict[tuple[str, str, str, str], TableCell] = field(default_factory=dict)
    differences: dict[str, tuple[Difference, ...]] = field(default_factory=dict)
    reference: str = ""
    against: dict[tuple[str, str], Difference] = field(default_factory=dict)
    blind: dict[str, str] = field(default_factory=dict)

    def measure(self, name: str) -> Measure | None:
        """Return the measure of that name in this table, or None."""
        return next((measure for measure in self.measures if measure.name == name), None)

    def cell(self, model: str, organ: str, metric: str) -> TableCell | None:
        """Return the cell of an arm, an organ and a metric of the table; None if it has none."""
        return self.cells.get((model, organ, metric))

    @property
    def card_lines(self) -> tuple[str, ...]:
        """One line on the reliability of every judge with a column in this table."""
        found = (self.scores.standing(measure) for measure in self.measures)
        return tuple(dict.fromkeys(one.line for one in found if one is not None))

    def warning(self, name: str) -> str:
        """Return a warning if the measure's judge does not score the truth above the unedited input; else ""."""
        found = self.measure(name)
        return "" if found is None else self.blind.get(found.stored.partition("@")[2], "")

    def ranks_by(self, measure: Measure) -> bool:
        """Return True if a measure may rank models: its judge is neither barred nor blind."""
        return not self.warning(measure.name) and not self.scores.barred(measure)

    @property
    def barred(self) -> frozenset[str]:
        """The names of the measures whose judge was not shown to be reliable."""
        return frozenset(measure.name for measure in self.measures if self.scores.barred(measure))

    @property
    def main(self) -> list[Measure]:
        """The main measures: EA, CP, CP (strict) and VQ if they exist, else ranks by human raters.

        "CP judge" replaces a missing CP; under the published protocol Accuracy_D and Quality_D replace EA and VQ.
        """
        published = next((end for end in ("_D", "_P") if self.measure(f"Accuracy{end}")), "")
        judged = [f"Accuracy{published}", f"Quality{published}"] if published else ["EA", "VQ"]
        names = [judged[0], *([name for name in MAIN[1:3] if self.measure(name)] or ["CP judge"]), judged[1]]
        found = [measure for name in names if (measure := self.measure(name)) is not None]
        return found or [measure for measure in self.measures if measure.stored.startswith("rank_")]

    @property
    def groups(self) -> dict[str, list[Arm]]:
        """The arms of the main table: "models" and "baselines"; no empty group.

        Models are ordered by mean if they are `ranked`, else as recorded. Arms of few-shot studies are left out.
        """
        measure = self.ranked

        def place(arm: Arm) -> float:
            if measure is None or is_baseline(arm):
                return 0.0
            mean = self.cells[arm.label, OVERALL, measure.name].estimate.value
            if mean is None:
                return math.inf
            return round(-mean if measure.higher_is_better else mean, 9)  # rounding does not change the order

        found: dict[str, list[Arm]] = {"models": [], "baselines": []}
        for arm in sorted((arm for arm in self.scores.arms if arm.shots is None), key=place):
            found["baselines" if is_baseline(arm) else "models"].append(arm)
        return {name: arms for name, arms in found.items() if arms}

    @property
    def general(self) -> list[Arm]:
        """All arms of `groups`, in order."""
        return [arm for arms in self.groups.values() for arm in arms]

    @property
    def ranked(self) -> Measure | None:
        """The measure by which models are ranked: the first main one if it has ranks, else None."""
        for measure in self.main[:1]:
            if any(cell.rank for (_, _, name), cell in self.cells.items() if name == measure.name):
                return measure
        return None

    def why_no_interval(self) -> list[str]:
        """Return the reasons why main metrics have no interval over all samples, the commonest reason first."""
        cells = [self.cell(arm.label, OVERALL, measure.name) for arm in self.general for measure in self.main]
        reasons = Counter(cell.estimate.reason for cell in cells if cell is not None and cell.estimate.reason)
        return [reason for reason, _ in reasons.most_common()]


def make_table(scores: Scores, judge: str | None = None, reference: str = UNEDITED) -> Table:
    """Compute everything that a leaderboard shows.

    Args:
        scores: the scores of one or several runs.
        judge: the judge whose scores are EA, VQ and "CP judge", e.g. "offline/instruments/D"; the variant may be
            omitted if only one exists. None: the first of `judges`.
        reference: label of the arm that the others are compared with.

    Raises:
        InputError: no such judge, or no such reference.
    """
    present = judges(scores.metrics)
    chosen = _chosen_judge(present, judge)
    table = Table(scores, chosen, tuple(present), tuple(ordered(scores.metrics, chosen)))
    labels = [arm.label for arm in scores.arms]
    if reference not in labels and reference != UNEDITED:
        raise InputError(f"--against {reference}: no such model; {suggest(reference, labels)}")
    table.reference = reference if reference in labels else ""
    _compare_with_controls(table)
    organs = np.array([sample.organ for sample in scores.samples])
    groups = {organ: np.flatnonzero(organs == organ) for organ in scores.organs}
    for organ, members in {**groups, OVERALL: np.arange(organs.size)}.items():
        group = _Group(scores, members, organ)
        for measure in table.measures:
            compared = organ == OVERALL or measure.name in MAIN
            cells, pairs = group.row(measure, compared=compared, ranked=table.ranks_by(measure))
            table.cells.update({(cell.model, cell.organ, cell.metric): cell for cell in cells})
            if organ == OVERALL:
                table.differences[measure.name] = pairs
    for organ, members in groups.items():
        tasks = np.array([scores.samples[i].task for i in members])
        for task in sorted(set(tasks.tolist())):
            group = _Group(scores, members[tasks == task], organ, task)
            listed = [*table.main, *(m for m in table.measures if m.name.startswith("attention_"))]
            for cell in (cell for measure in listed for cell in group.row(measure)[0] if cell.samples):
                table.tasks[cell.model, organ, task, cell.metric] = cell
    return table


def _chosen_judge(present: Sequence[str], wanted: str | None) -> str | None:
    if wanted is None:
        return present[0] if present else None
    fits = [who for who in present if who == wanted or who.startswith(f"{wanted}/")]
    if not fits:
        there = f"there are {', '.join(present)}" if present else "no judge has scored this run"
        raise InputError(f"--judge {wanted}: no scores of this judge; {there}")
    return wanted if wanted in fits else fits[0]


def _compare_with_controls(table: Table) -> None:
    """Set the differences from the reference, and the judges that see no difference between input and truth."""
    scores, clusters = table.scores, table.scores.clusters
    strata = [sample.organ for sample in scores.samples]
    arms = {arm.label: arm for arm in scores.arms}
    for measure in table.measures:
        values = {label: scores.values(arm, measure.stored) for label, arm in arms.items()}
        if table.reference:
            pairs = against(measure, values, table.reference, clusters, strata)
            table.against |= {(pair.first, measure.name): pair for pair in pairs}
        metric, _, judge = measure.stored.partition("@")
        if judge and metric.partition(":")[0] == "ea" and {UNEDITED, TRUTH} <= values.keys():
            ends = {label: values[label] for label in (TRUTH, UNEDITED)}
            pairs = differences(measure, ends, clusters, strata)
            if indistinct(pairs):
                table.blind[judge] = (
                    f"{judge} cannot tell an unedited image from the truth: the truth's EA minus that of the copied "
                    f"input is {pairs[0].estimate.value:z.2f}, within noise of 0; no ranks follow from its scores"
                )


class _Group:
    """The samples of one column, with one clustering for all models and metrics."""

    def __init__(self, scores: Scores, chosen: npt.NDArray[np.intp], organ: str, task: str = "") -> None:
        self.scores, self.chosen, self.organ, self.task = scores, chosen, organ, task
        self.clusters = [scores.samples[i].cluster for i in chosen]
        self.strata = [scores.samples[i].organ for i in chosen] if organ == OVERALL else None
        self.plan = ClusteredMeans(self.clusters, self.strata)
        self.covered = {arm.label: scores.covered(arm)[chosen] for arm in scores.arms}

    def row(
        self, measure: Measure, *, compared: bool = False, ranked: bool = False
    ) -> tuple[list[TableCell], tuple[Difference, ...]]:
        """Return the cells of one metric, one per arm, and if `compared` the differences of its models.

        With `ranked` the cells of compared models have marks and ranks.
        """
        arms = self.scores.arms
        values = {arm.label: self.scores.values(arm, measure.stored)[self.chosen] for arm in arms}
        means = {
            name: self.plan.mean(row, low=measure.low, high=measure.high) for name, row in values.items()
        }
        pairs: tuple[Difference, ...] = ()
        marked: dict[str, str] = {}
        rank: dict[str, tuple[int, int]] = {}
        if compared:
            models = {a.label: values[a.label] for a in arms if not is_baseline(a) and a.shots is None}
            pairs = differences(measure, models, self.clusters, self.strata)
            if ranked and any(pair.estimate.low is not None for pair in pairs):
                known = {label: means[label].value for label in models}
                marked, rank = marks(measure, known, pairs), ranks(measure, known, pairs)
        cells = [
            TableCell(
                model=arm.label,
                baseline=is_baseline(arm),
                organ=self.organ,
                task=self.task,
                metric=measure.name,
                estimate=means[arm.label],
                samples=int(self.covered[arm.label].sum()),
                scored=int(np.isfinite(values[arm.label][self.covered[arm.label]]).sum()),
                mark=marked.get(arm.label, ""),
                rank=rank.get(arm.label),
            )
            for arm in arms
        ]
        return cells, pairs
