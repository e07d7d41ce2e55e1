"""The numbers of a leaderboard: means with intervals per organ, per task and overall, with coverage and bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from plantain.bench.generate.arms import Arm
from plantain.bench.leaderboard.comparison import differences, marks, places
from plantain.bench.leaderboard.measures import MAIN, Measure, judges, ordered
from plantain.bench.leaderboard.table_rows import Scores, barred, baseline, given_region, standing
from plantain.metrics.statistics.means import ClusteredMeans, Estimate
from plantain.metrics.statistics.paired import Difference
from plantain.pixels.arrays import Floats
from plantain.records import InputError

OVERALL = "overall"
REGION_SIZES = (0, 1, 5, 20, 100)
"""Ends of the classes of regions, in per cent of the image."""

MACRO = "overall (macro)"
"""The mean of the organs' means, where `OVERALL` is the mean of the samples."""


COMPARED = (*MAIN, "cp_reference")
"""Metrics whose models are compared organ by organ too; the others only over all samples."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """One number of a table.

    Attributes:
        model: label of the arm; baseline: it edits nothing.
        organ: a name, `OVERALL` or `MACRO`; task: "" unless the table goes by task.
        metric: name in the table.
        estimate: mean with its 95 % interval.
        samples: that the arm covers in this group.
        outputs: that its rule names on them, one a sample or several whose mean counts; scored: those with a score.
        worst, best: the mean if every unscored output counted as the worst, or the best, that the metric allows; None
            where the metric has no such end. Samples on which no arm at all was scored are left out of both.
        mark: "best" or "second" where the paired differences say so, else "".
        rank: the places that the model may have among the models, from and to, 1 the best; None where places are not
            told, see `places`.
        region: size of the regions that the samples have, "" unless the table goes by that.
        draws_sd: standard deviation between a judge's draws of one output, pooled; None without repeated draws.
        outputs_sd: standard deviation between an arm's outputs of one sample, pooled; None for one output a sample.
    """

    model: str
    baseline: bool
    organ: str
    task: str
    metric: str
    estimate: Estimate
    samples: int
    outputs: int
    scored: int
    worst: float | None
    best: float | None
    mark: str = ""
    rank: tuple[int, int] | None = None
    region: str = ""
    draws_sd: float | None = None
    outputs_sd: float | None = None

    @property
    def coverage(self) -> float:
        """The share of the outputs that has a score, in [0, 1]."""
        return self.scored / self.outputs if self.outputs else 0.0


@dataclass(frozen=True, slots=True)
class Table:
    """A leaderboard.

    Attributes:
        scores: what it was computed from.
        judge: whose scores EA, VQ and "CP judge" are; None where no judge scored anything.
        judges: all that scored something.
        measures: in the order of columns.
        cells: by (model, organ, metric); organs, then overall and macro.
        tasks: by (model, organ, task, metric), EA, CP and VQ only.
        regions: by (model, size of the region, metric), EA, CP and VQ only.
        differences: by metric, all pairs of models over all samples.
    """

    scores: Scores
    judge: str | None
    judges: tuple[str, ...]
    measures: tuple[Measure, ...]
    cells: Mapping[tuple[str, str, str], TableCell]
    tasks: Mapping[tuple[str, str, str, str], TableCell]
    differences: Mapping[str, tuple[Difference, ...]]
    regions: Mapping[tuple[str, str, str], TableCell] = field(default_factory=dict)

    def measure(self, name: str) -> Measure | None:
        """The measure of that name in this table, or None."""
        return next((measure for measure in self.measures if measure.name == name), None)

    @property
    def card_lines(self) -> tuple[str, ...]:
        """Of every judge with a column in this table, its card in a line, or that it has none."""
        found = (standing(self.scores, measure) for measure in self.measures)
        return tuple(dict.fromkeys(one.line for one in found if one is not None))

    @property
    def barred(self) -> frozenset[str]:
        """Names of the measures whose judge has failed its gate."""
        return frozenset(measure.name for measure in self.measures if barred(self.scores, measure))

    def cell(self, model: str, organ: str, metric: str) -> TableCell | None:
        """The cell of an arm, an organ and a metric, or None."""
        return self.cells.get((model, organ, metric))

    @property
    def main(self) -> list[Measure]:
        """EA, CP and VQ, as far as there are any; the published CP where there is no strict one."""
        found = {name: self.measure(name) for name in MAIN}
        found["CP"] = found["CP"] or self.measure("cp_reference")
        return [measure for measure in found.values() if measure is not None]

    @property
    def unfinished(self) -> str:
        """How far the scoring of EA, CP and VQ has come, e.g. "23 % of EA and VQ"; "" once nothing is to come."""
        open_ = {m.name: self.scores.to_come(m.stored) for m in self.main}
        open_ = {name: counts for name, counts in open_.items() if counts[0]}
        if not open_:
            return ""
        left, wanted = (sum(counts[i] for counts in open_.values()) for i in (0, 1))
        *others, last = open_
        names = f"{', '.join(others)} and {last}" if others else last
        return f"{math.floor(100 * (wanted - left) / wanted)} % of {names}"

    @property
    def general(self) -> list[Arm]:
        """Arms that stand for the whole benchmark: not those of a few-shot study, which see part of it.

        Models by their mean where they are `ranked`, else as recorded; then those that were told where; baselines last.
        """
        arms = [arm for arm in self.scores.arms if arm.shots is None]
        measure = self.ranked
        if measure is None:
            return sorted(arms, key=lambda arm: (baseline(arm), given_region(arm)))
        sign = -1.0 if measure.higher_is_better else 1.0
        means = {arm.label: self.cells[arm.label, OVERALL, measure.name].estimate.value for arm in arms}
        worst = -math.inf if measure.higher_is_better else math.inf

        def place(arm: Arm) -> tuple[bool, bool, float]:
            mean = means[arm.label]
            return (
                baseline(arm),
                given_region(arm),
                0.0 if baseline(arm) else sign * (worst if mean is None else mean),
            )

        return sorted(arms, key=place)

    @property
    def ranked(self) -> Measure | None:
        """The first main measure, if its models have places; None where the order of models says nothing."""
        first = self.main[0] if self.main else None
        cells = (
            []
            if first is None
            else [c for c in self.cells.values() if (c.organ, c.metric) == (OVERALL, first.name)]
        )
        return first if any(cell.rank for cell in cells) else None


def make_table(scores: Scores, judge: str | None = None) -> Table:
    """Computes everything that a leaderboard shows.

    Args:
        scores: of a run.
        judge: whose scores are EA, VQ and "CP judge", e.g. "offline/instruments/D"; a name without variant will do if
            it fits one only. None: the first of `judges`.

    Raises:
        InputError: no such judge in this run.
    """
    present = judges(scores.metrics)
    chosen = _choose(present, judge) if judge or present else None
    measures = ordered(scores.metrics, chosen)
    cells: dict[tuple[str, str, str], TableCell] = {}
    overall: dict[str, tuple[Difference, ...]] = {}
    covered = {arm.label: scores.covered(arm) for arm in scores.arms}
    for organ, chosen_samples in _groups(scores):
        group = _Group(scores, covered, chosen_samples, organ)
        for measure in measures:
            row, pairs = group.row(measure, compare=organ == OVERALL or measure.name in COMPARED)
            cells.update({(cell.model, cell.organ, cell.metric): cell for cell in row})
            if organ == OVERALL:
                overall[measure.name] = pairs
    table = Table(scores, chosen, tuple(present), tuple(measures), cells, {}, overall)
    tasks = {
        (cell.model, cell.organ, cell.task, cell.metric): cell
        for cell in _task_cells(scores, covered, table.main)
        if cell.samples
    }
    regions = {
        (cell.model, cell.region, cell.metric): cell
        for cell in _region_cells(scores, covered, table.main)
        if cell.samples
    }
    return replace(table, tasks=tasks, regions=regions)


def _choose(present: list[str], wanted: str | None) -> str:
    if wanted is None:
        return present[0]
    fits = [who for who in present if who == wanted] or [
        who for who in present if who.startswith(f"{wanted}/")
    ]
    if not fits:
        there = f"there are {', '.join(present)}" if present else "no judge has scored this run"
        raise InputError(f"--judge {wanted}: no scores of this judge; {there}")
    return fits[0]


def _groups(scores: Scores) -> Iterator[tuple[str, npt.NDArray[np.intp]]]:
    organs = np.array([sample.organ for sample in scores.samples])
    for organ in scores.organs:
        yield organ, np.flatnonzero(organs == organ)
    yield OVERALL, np.arange(organs.size)


def _task_cells(
    scores: Scores, covered: Mapping[str, npt.NDArray[np.bool_]], measures: list[Measure]
) -> Iterator[TableCell]:
    groups: dict[tuple[str, str], list[int]] = {}
    for i, sample in enumerate(scores.samples):
        groups.setdefault((sample.organ, sample.task), []).append(i)
    rank = {organ: i for i, organ in enumerate(scores.organs)}
    for organ, task in sorted(groups, key=lambda key: (rank[key[0]], key[1])):
        group = _Group(scores, covered, np.array(groups[organ, task]), organ, task)
        for measure in measures:
            yield from group.row(measure, compare=False)[0]


def region_size(share: float | None) -> str:
    """The class that a region falls into by its share of the image, e.g. "1 to 5 %"; "" without a region."""
    if share is None:
        return ""
    for low, high in pairwise(REGION_SIZES):
        if share < high / 100 or high == 100:
            return f"{low} to {high} %"
    return ""


def _region_cells(
    scores: Scores, covered: Mapping[str, npt.NDArray[np.bool_]], measures: list[Measure]
) -> Iterator[TableCell]:
    sizes = np.array([region_size(sample.roi_share) for sample in scores.samples])
    for low, high in pairwise(REGION_SIZES):
        chosen = np.flatnonzero(sizes == f"{low} to {high} %")
        if chosen.size:
            group = _Group(scores, covered, chosen, OVERALL)
            for measure in measures:
                cells = group.row(measure, compare=False)[0]
                yield from (replace(c, region=f"{low} to {high} %") for c in cells if c.organ == OVERALL)


class _Group:
    """Samples that one column is about, with one clustering for all models and metrics."""

    def __init__(
        self,
        scores: Scores,
        covered: Mapping[str, npt.NDArray[np.bool_]],
        chosen: npt.NDArray[np.intp],
        organ: str,
        task: str = "",
    ) -> None:
        self.scores, self.chosen, self.organ, self.task = scores, chosen, organ, task
        self.clusters = [scores.samples[i].cluster for i in chosen]
        self.strata = [scores.samples[i].organ for i in chosen] if organ == OVERALL else None
        self.plan = ClusteredMeans(self.clusters, self.strata)
        self.covered = {label: inside[chosen] for label, inside in covered.items()}

    def row(
        self, measure: Measure, *, compare: bool = True
    ) -> tuple[list[TableCell], tuple[Difference, ...]]:
        """The cells of one metric, one per arm (two overall: micro and macro), and the differences of its models."""
        values = {arm.label: self.scores.values(arm, measure.stored)[self.chosen] for arm in self.scores.arms}
        measurable = np.zeros(self.chosen.size, bool)
        for array in values.values():
            measurable |= np.isfinite(array)
        cells = [
            self._cell(measure, arm, values[arm.label], measurable, macro)
            for macro in ((False, True) if self.organ == OVERALL else (False,))
            for arm in self.scores.arms
        ]
        if not compare:
            return cells, ()
        pairs: tuple[Difference, ...] = ()
        marked: dict[str, str] = {}
        rank: dict[str, tuple[int, int]] = {}
        # Which model is ahead is not said while some of its outputs wait to be scored.
        waiting = self.scores.to_come(measure.stored)[0] or barred(self.scores, measure)
        for informed in (False, True):  # who is told where to edit is compared with others of the kind only
            general = {
                arm.label: values[arm.label]
                for arm in self.scores.arms
                if not baseline(arm) and arm.shots is None and given_region(arm) == informed
            }
            among = differences(measure, general, self.clusters, self.strata)
            pairs += among
            if waiting or all(pair.estimate.low is None for pair in among):
                continue
            means = {
                cell.model: cell.estimate.value
                for cell in cells
                if cell.model in general and cell.organ != MACRO
            }
            marked |= marks(measure, means, among)
            rank |= places(measure, means, among)
        return [
            cell
            if cell.organ == MACRO
            else replace(cell, mark=marked.get(cell.model, ""), rank=rank.get(cell.model))
            for cell in cells
        ], pairs

    def _cell(
        self, measure: Measure, arm: Arm, values: Floats, measurable: npt.NDArray[np.bool_], macro: bool
    ) -> TableCell:
        covered = self.covered[arm.label]
        outputs = self.scores.each(arm, measure.stored)[self.chosen]
        worst, best = _bounds(measure, outputs[covered & measurable])
        return TableCell(
            model=arm.label,
            baseline=baseline(arm),
            organ=MACRO if macro else self.organ,
            task=self.task,
            metric=measure.name,
            estimate=self.plan.mean(values, low=measure.low, high=measure.high, macro=macro),
            samples=int(covered.sum()),
            outputs=outputs[covered].size,
            scored=int(np.isfinite(outputs[covered]).sum()),
            worst=None if macro else worst,
            best=None if macro else best,
            draws_sd=self._draws_sd(measure, arm),
            outputs_sd=_pooled(_variances(outputs)),
        )

    def _draws_sd(self, measure: Measure, arm: Arm) -> float | None:
        variances = self.scores.draw_variances.get((arm.label, measure.stored))
        return None if variances is None else _pooled(variances[self.chosen][:, list(arm.scored)])


def _variances(outputs: Floats) -> Floats:
    """Of each sample with at least two scores, from (samples, outputs)."""
    repeated = outputs[np.isfinite(outputs).sum(axis=1) > 1]
    return np.asarray(np.nanvar(repeated, axis=1, ddof=1)) if repeated.size else np.empty(0)


def _pooled(variances: Floats) -> float | None:
    """The standard deviation that variances have in common; None without any."""
    known = variances[np.isfinite(variances)]
    return float(np.sqrt(known.mean())) if known.size else None


def _bounds(measure: Measure, values: Floats) -> tuple[float | None, float | None]:
    """The mean of (samples, outputs) with everything unscored at the worst, and at the best, that the metric allows."""
    if not values.size:
        return None, None
    ends = (measure.low, measure.high) if measure.higher_is_better else (measure.high, measure.low)
    if not np.isnan(values).any():
        return float(values.mean()), float(values.mean())
    worst, best = (
        None if end is None else float(np.where(np.isnan(values), end, values).mean()) for end in ends
    )
    return worst, best


def places_of_rank(cell: TableCell | None) -> str:
    """The places that a model may have, e.g. "2" or "1 to 3"; "" where none are told."""
    if cell is None or cell.rank is None:
        return ""
    first, last = cell.rank
    return str(first) if first == last else f"{first} to {last}"


def why_no_interval(table: Table, organ: str) -> list[str]:
    """What keeps numbers of the main metrics of an organ from having an interval, the commonest reason first."""
    cells = [table.cell(arm.label, organ, measure.name) for arm in table.general for measure in table.main]
    reasons = Counter(cell.estimate.reason for cell in cells if cell is not None and cell.estimate.reason)
    return [reason for reason, _ in reasons.most_common()]
