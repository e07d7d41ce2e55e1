"""All scores of a benchmark run in memory: one array per arm and metric, in one order of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import orjson

from plantain.bench.benchmark.organs import ORGANS
from plantain.bench.generate.arms import Arm, ArmKind
from plantain.bench.generate.baselines import BASELINES
from plantain.bench.generate.runfile import BenchRun, SampleFacts
from plantain.bench.leaderboard.measures import Measure
from plantain.bench.score.judging import JUDGES
from plantain.bench.score.set_distances import SETS, Distance
from plantain.journal.cards import Standing, cards_of, standing_of
from plantain.journal.questions.benchmark import draw_scores, output_scores, outputs_made
from plantain.pixels.arrays import Floats
from plantain.rubrics import MEDEBENCH


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a run.

    Attributes:
        run, benchmark: names for a reader; seed: of the run, resampling starts from it.
        samples: all of the benchmark, by id; arrays follow this order.
        arms: models first, as recorded; then the baselines.
        outputs: for (arm label, stored metric) an array (samples, outputs of the arm), NaN where unscored.
        missing: for (arm label, stored metric) how many outputs of the rule have no score, by reason.
        distances: of sets.
        made: outputs that the rule names and that were made or failed to be, by arm; scored_counts: of those, how many
            have been scored or have a reason why not, by (arm, stored metric). Empty where nobody goes on scoring.
        draw_variances: for (arm label, stored metric) the variance between draws of each output, as `outputs`.
        standings: what each judge rests on, by its label, e.g. "offline/instruments/D".
    """

    run: str
    benchmark: str
    seed: int
    samples: tuple[SampleFacts, ...]
    arms: tuple[Arm, ...]
    outputs: Mapping[tuple[str, str], Floats]
    missing: Mapping[tuple[str, str], Counter[str]] = field(default_factory=dict)
    distances: tuple[Distance, ...] = ()
    made: Mapping[str, int] = field(default_factory=dict)
    scored_counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    draw_variances: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    standings: Mapping[str, Standing] = field(default_factory=dict)

    @property
    def metrics(self) -> list[str]:
        """Stored names of all metrics that any arm has a score of."""
        return sorted({metric for _, metric in self.outputs})

    @property
    def organs(self) -> list[str]:
        """The organs that occur: MedEBench's in the order of its Table 2, then others by name."""
        present = {sample.organ for sample in self.samples}
        return [organ for organ in ORGANS if organ in present] + sorted(present - set(ORGANS))

    @property
    def clusters(self) -> list[str]:
        return [sample.cluster for sample in self.samples]

    @property
    def truths(self) -> tuple[int, int]:
        """How many samples have an image after that is not real, and how many have any."""
        truths = [sample for sample in self.samples if sample.has_truth]
        return sum(sample.synthetic_truth for sample in truths), len(truths)

    def to_come(self, metric: str) -> tuple[int, int]:
        """How many outputs a scoring has not come to yet for a stored metric, and of how many.

        A metric that no baseline has is one of some arms only; elsewhere every arm counts.
        """
        everywhere = any(self.scored_counts.get((label, metric)) for label in BASELINES)
        labels = [label for label in self.made if everywhere or self.scored_counts.get((label, metric))]
        wanted = sum(self.made[label] for label in labels)
        return wanted - sum(self.scored_counts.get((label, metric), 0) for label in labels), wanted

    def arm(self, label: str) -> Arm:
        """Raises StopIteration where there is none."""
        return next(arm for arm in self.arms if arm.label == label)

    def covered(self, arm: Arm) -> npt.NDArray[np.bool_]:
        """Which samples the arm is to be measured on, (samples,)."""
        return np.array([arm.covers(sample.id) for sample in self.samples], bool)

    def values(self, arm: Arm, metric: str) -> Floats:
        """One value per sample by the arm's rule, (samples,); NaN where unscored."""
        return mean_of_known(self.each(arm, metric))

    def each(self, arm: Arm, metric: str) -> Floats:
        """The outputs that the arm's rule names, (samples, outputs); NaN where unscored."""
        found = self.outputs.get((arm.label, metric))
        if found is None:
            return np.full((len(self.samples), len(arm.scored)), np.nan)
        return found[:, list(arm.scored)]


def baseline(arm: Arm) -> bool:
    """Whether an arm edits nothing."""
    return arm.kind is ArmKind.BASELINE


def given_region(arm: Arm) -> bool:
    """Whether an arm's editor was told where to edit: no rival of those that find the place."""
    return arm.region and not baseline(arm)


def mean_of_known(outputs: Floats) -> Floats:
    """(samples, outputs) to (samples,): the mean of what is known of each; NaN where nothing is."""
    known = np.isfinite(outputs)
    count = known.sum(axis=1)
    total = np.where(known, outputs, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def in_table_order(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """Models as recorded, then the baselines."""
    rank = {label: i for i, label in enumerate(BASELINES)}
    everyone = list(arms)
    last = sorted((arm for arm in everyone if baseline(arm)), key=lambda arm: rank.get(arm.label, len(rank)))
    return tuple([arm for arm in everyone if not baseline(arm)] + last)


def read_scores(run: BenchRun) -> Scores:
    """All scores of a run's current generations, in one pass over the journal."""
    samples = tuple(run.samples.values())
    arms = in_table_order(run.arms.values())
    outputs, reasons, scored_counts = _arrays(run, samples, arms)
    distances = orjson.loads(run.reader.meta(SETS) or "[]")
    return Scores(
        run=run.reader.header.name,
        benchmark=run.header.name,
        seed=run.reader.header.seed,
        samples=samples,
        arms=arms,
        outputs=outputs,
        missing=reasons,
        distances=tuple(Distance(**row) for row in distances),
        made=_made(run, samples, arms),
        scored_counts=scored_counts,
        draw_variances=_draw_variances(run, samples, arms),
        standings=_standings(run),
    )


def _standings(run: BenchRun) -> dict[str, Standing]:
    """What the judges that have scored the run rest on, by their labels."""
    cards = cards_of(run.reader.run)
    stored: list[dict[str, str]] = orjson.loads(run.reader.meta(JUDGES) or "[]")
    found: dict[str, Standing] = {}
    for row in stored:
        name, label = row["label"].rpartition("/")[0], row["label"]
        one = standing_of(cards, name, MEDEBENCH.name, row["fingerprint"])
        if label not in found or one.card is not None:
            found[label] = one
    return found


def _made(run: BenchRun, samples: Sequence[SampleFacts], arms: Sequence[Arm]) -> Counter[str]:
    """The outputs that the arms' rules name and that the run has an attempt of: those that are scored."""
    known = {sample.id for sample in samples}
    scored = {arm.label: set(arm.scored) for arm in arms}
    return Counter(
        label
        for label, sample, k in outputs_made(run.reader)
        if sample in known and k in scored.get(label, ())
    )


def _draw_variances(
    run: BenchRun, samples: Sequence[SampleFacts], arms: Sequence[Arm]
) -> dict[tuple[str, str], Floats]:
    """Variances between the draws of a judge on [0, 1], by (arm, metric), NaN where there was one draw."""
    place = {sample.id: i for i, sample in enumerate(samples)}
    grids = {arm.label: len(arm.grid) for arm in arms}
    found: dict[tuple[str, str], Floats] = {}
    for label, sample, k, metric, scores in draw_scores(run.reader):
        if sample in place and 0 <= k < grids.get(label, 0) and len(scores) > 1:
            variances = found.setdefault((label, metric), np.full((len(samples), grids[label]), np.nan))
            variances[place[sample], k] = np.var(scores, ddof=1)
    return found


def _arrays(
    run: BenchRun, samples: Sequence[SampleFacts], arms: Sequence[Arm]
) -> tuple[dict[tuple[str, str], Floats], dict[tuple[str, str], Counter[str]], Counter[tuple[str, str]]]:
    """Values, reasons of those without one, and how many outputs have either, each by (arm, metric)."""
    place = {sample.id: i for i, sample in enumerate(samples)}
    grids = {arm.label: len(arm.grid) for arm in arms}
    scored = {arm.label: set(arm.scored) for arm in arms}
    outputs: dict[tuple[str, str], Floats] = {}
    reasons: dict[tuple[str, str], Counter[str]] = {}
    scored_counts: Counter[tuple[str, str]] = Counter()
    for stored in output_scores(run.reader):
        label, sample, k = stored.arm, stored.sample, stored.output
        metric, value, reason = stored.metric, stored.value, stored.reason
        if label not in grids or sample not in place or not 0 <= k < grids[label]:
            continue
        scored_counts[label, metric] += k in scored[label]
        if value is None:
            if k in scored[label]:
                reasons.setdefault((label, metric), Counter())[reason] += 1
            continue
        key = (label, metric)
        if key not in outputs:
            outputs[key] = np.full((len(samples), grids[label]), np.nan)
        outputs[key][place[sample], k] = value
    return outputs, reasons, scored_counts


def standing(scores: Scores, measure: Measure) -> Standing | None:
    """What the judge behind a measure rests on; None for what is measured and not judged."""
    who = measure.stored.partition("@")[2]
    if not who or who in scores.standings:
        return scores.standings.get(who)
    return standing_of((), who.rpartition("/")[0] or who, MEDEBENCH.name)


def barred(scores: Scores, measure: Measure) -> bool:
    """Whether a measure comes from a judge that has failed its gate: it marks no best and ranks nothing."""
    found = standing(scores, measure)
    return found is not None and found.barred
