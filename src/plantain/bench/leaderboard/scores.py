"""All scores of one or several runs of a benchmark: one array per arm and metric, in one order of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import orjson

from plantain.bench.benchmark.medebench import ORGANS
from plantain.bench.generate.arms import Arm, ArmKind
from plantain.bench.generate.editors import BASELINES
from plantain.bench.generate.runfile import BenchRun, SampleFacts
from plantain.bench.leaderboard.measures import Measure
from plantain.bench.score.judging import JUDGES
from plantain.bench.score.set_distances import Distance, stored_distances
from plantain.journal.cards import Standing, cards_of, standing_of
from plantain.journal.questions.benchmark import draw_scores, output_scores, outputs_made
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.rubrics import MEDEBENCH

Key = tuple[str, str]
"""(label of an arm, stored name of a metric)."""


@dataclass(slots=True)
class Scores:
    """The scores of one or several runs.

    Attributes:
        runs: names of the runs; benchmark: its name; seed: of the first run, images are drawn by it.
        samples: all of the benchmark, by id; arrays follow this order.
        arms: models first, as recorded; then the baselines.
        outputs: arrays (samples, outputs of the arm), NaN where unscored.
        missing: how many scored outputs have no score, by reason.
        distances: of sets.
        made: first outputs that were made or failed, by arm.
        scored_counts: of those, how many have a score or a reason.
        draw_variances: variance between a judge's draws of each output, as `outputs`.
        standings: the card of each judge, by its label, e.g. "offline/instruments/D".
        origins: of each arm, the index of its run and its label there.
        remarks: cautions about all numbers.
    """

    runs: tuple[str, ...]
    benchmark: str
    seed: int
    samples: tuple[SampleFacts, ...]
    arms: tuple[Arm, ...]
    outputs: dict[Key, Floats] = field(default_factory=dict)
    missing: dict[Key, Counter[str]] = field(default_factory=dict)
    distances: list[Distance] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)
    scored_counts: Counter[Key] = field(default_factory=Counter)
    draw_variances: dict[Key, Floats] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    origins: dict[str, tuple[int, str]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def metrics(self) -> list[str]:
        """Return the stored names of all metrics that any arm has a score of."""
        return sorted({metric for _, metric in self.outputs})

    @property
    def organs(self) -> list[str]:
        """Return the organs that occur: MedEBench's in the order of its Table 2, then others by name."""
        present = {sample.organ for sample in self.samples}
        return [organ for organ in ORGANS if organ in present] + sorted(present - set(ORGANS))

    @property
    def clusters(self) -> list[str]:
        return [sample.cluster for sample in self.samples]

    @property
    def truths(self) -> tuple[int, int]:
        """Return how many samples have a synthetic image after, and how many have any."""
        truths = [sample for sample in self.samples if sample.has_truth]
        return sum(sample.synthetic_truth for sample in truths), len(truths)

    @property
    def distance_names(self) -> list[str]:
        """Return the names of the distances of sets that any arm has a value of."""
        return sorted({distance.metric for distance in self.distances if distance.value is not None})

    def to_come(self, metric: str) -> tuple[int, int]:
        """Return how many outputs scoring has not reached for a stored metric, and of how many.

        A metric that no baseline has belongs to some arms only; otherwise every arm counts.
        """
        everywhere = any(self.scored_counts[label, metric] for label in BASELINES)
        labels = [label for label in self.made if everywhere or self.scored_counts[label, metric]]
        wanted = sum(self.made[label] for label in labels)
        return wanted - sum(self.scored_counts[label, metric] for label in labels), wanted

    def arm(self, label: str) -> Arm:
        """Return the arm of that label. Raises StopIteration where there is none."""
        return next(arm for arm in self.arms if arm.label == label)

    def covered(self, arm: Arm) -> npt.NDArray[np.bool_]:
        """Return which samples the arm covers, (samples,)."""
        return np.array([arm.covers(sample.id) for sample in self.samples], bool)

    def values(self, arm: Arm, metric: str) -> Floats:
        """Return the value of each sample's first output, (samples,); NaN where unscored."""
        found = self.outputs.get((arm.label, metric))
        return np.full(len(self.samples), np.nan) if found is None else found[:, 0]

    def standing(self, measure: Measure) -> Standing | None:
        """Return the card of the judge behind a measure; None for metrics."""
        who = measure.stored.partition("@")[2]
        if not who or who in self.standings:
            return self.standings.get(who)
        return standing_of((), who.rpartition("/")[0] or who, MEDEBENCH.name)

    def barred(self, measure: Measure) -> bool:
        """Return True if the judge behind a measure failed its gate: it marks no best and ranks nothing."""
        found = self.standing(measure)
        return found is not None and found.barred


def is_baseline(arm: Arm) -> bool:
    """Return True for arms that edit nothing."""
    return arm.kind is ArmKind.BASELINE


def is_given_region(arm: Arm) -> bool:
    """Return True if the arm's editor receives the region: it is not ranked with those that find the place."""
    return arm.region and not is_baseline(arm)


def read_scores(*runs: BenchRun) -> Scores:
    """Read all scores of the current generations of runs, in one pass over each journal.

    Baselines come from the first run. A label that occurs in several runs gets its run's folder as a suffix.

    Raises:
        InputError: runs of different benchmarks, or scores of one judge by different prompts or versions.
    """
    first = runs[0]
    for run in runs[1:]:
        if run.header.digest != first.header.digest:
            raise InputError(
                f"{run.run}: is of benchmark {run.header.name} ({run.header.digest[:12]}), {first.run} of "
                f"{first.header.name} ({first.header.digest[:12]}): one table needs runs of the same benchmark"
            )
    labels = _unique_labels(runs)
    arms = [
        replace(run.arms[old], label=new)
        for run, own in zip(runs, labels, strict=True)
        for old, new in own.items()
    ]
    scores = Scores(
        runs=tuple(run.reader.header.name for run in runs),
        benchmark=first.header.name,
        seed=first.reader.header.seed,
        samples=tuple(first.samples.values()),
        arms=in_table_order(arms),
        standings=_standings(runs),
    )
    for number, (run, own) in enumerate(zip(runs, labels, strict=True)):
        scores.origins |= {new: (number, old) for old, new in own.items()}
        _add_scores(scores, run, own)
    return scores


def in_table_order(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """Return models as recorded, then the baselines."""
    rank = {label: i for i, label in enumerate(BASELINES)}
    return tuple(sorted(arms, key=lambda arm: rank.get(arm.label, len(rank)) if is_baseline(arm) else -1))


def _unique_labels(runs: Sequence[BenchRun]) -> list[dict[str, str]]:
    """Return for each run the labels of its arms in the table, by those in the run."""
    taken: set[str] = set()
    folders = [run.run.name for run in runs]
    labels: list[dict[str, str]] = []
    for run in runs:
        folder = run.run.name if folders.count(run.run.name) == 1 else str(run.run)
        own = {
            label: f"{label} ({folder})" if label in taken else label
            for label, arm in run.arms.items()
            if not (is_baseline(arm) and label in taken)
        }
        taken |= set(own.values())
        labels.append(own)
    return labels


def _add_scores(scores: Scores, run: BenchRun, labels: Mapping[str, str]) -> None:
    """Add a run's scores of the arms in `labels`."""
    place = {sample.id: i for i, sample in enumerate(scores.samples)}
    arms = {old: scores.arm(new) for old, new in labels.items()}

    def array_of(arrays: dict[Key, Floats], arm: Arm, metric: str) -> Floats:
        return arrays.setdefault((arm.label, metric), np.full((len(place), len(arm.grid)), np.nan))

    for label, sample, k in outputs_made(run.reader):
        if label in arms and k == 0:
            scores.made[arms[label].label] += sample in place
    for one in output_scores(run.reader):
        arm = arms.get(one.arm)
        if arm is None or one.sample not in place:
            continue
        key = arm.label, one.metric
        scores.scored_counts[key] += one.output == 0
        if one.value is not None:
            array_of(scores.outputs, arm, one.metric)[place[one.sample], one.output] = one.value
        elif one.output == 0:
            scores.missing.setdefault(key, Counter())[one.reason] += 1
    for label, sample, k, metric, draws in draw_scores(run.reader):
        if label in arms and sample in place and len(draws) > 1:
            variance = float(np.var(draws, ddof=1))
            array_of(scores.draw_variances, arms[label], metric)[place[sample], k] = variance
    for row in stored_distances(run.reader):
        if row.arm in labels:
            scores.distances.append(replace(row, arm=labels[row.arm]))


def _standings(runs: Sequence[BenchRun]) -> dict[str, Standing]:
    """Return the cards of the judges that scored the runs. Raises InputError if a judge differs between runs."""
    found: dict[str, Standing] = {}
    asked: dict[str, tuple[str, BenchRun]] = {}
    for run in runs:
        cards = cards_of(run.reader.run)
        stored: list[dict[str, str]] = orjson.loads(run.reader.meta(JUDGES) or "[]")
        for label, fingerprint in {row["label"]: row["fingerprint"] for row in stored}.items():
            before, other = asked.setdefault(label, (fingerprint, run))
            if before != fingerprint:
                raise InputError(
                    f"{run.run}: judge {label} scored it with other prompts or another version than {other.run}: "
                    "their scores cannot be compared; score one of them again"
                )
            one = standing_of(cards, label.rpartition("/")[0], MEDEBENCH.name, fingerprint)
            if label not in found or one.card is not None:
                found[label] = one
    return found
