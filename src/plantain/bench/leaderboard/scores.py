"""All scores of one or several runs of a benchmark: one array per arm and metric, in one order of samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from plantain.bench.benchmark.medebench import ORGANS
from plantain.bench.generate.runfile import Arm, ArmKind, SampleFacts
from plantain.bench.leaderboard.measures import Measure
from plantain.bench.score.set_distances import Distance
from plantain.journal.cards import Standing, standing_of
from plantain.pixels.arrays import Floats
from plantain.rubrics import MEDEBENCH

Key = tuple[str, str]
"""(label of an arm, stored name of a metric)."""


@dataclass(slots=True)
class Scores:
    """The scores of one or several runs.

    Attributes:
        runs: names of the runs; benchmark: its name; seed: the first run's, by which example images are chosen.
        samples: all samples of the benchmark, by id; arrays follow this order.
        arms: models first, as recorded; then the baselines.
        outputs: scores as float64 (samples, outputs of the arm), NaN where unscored.
        missing: number of outputs without a score, by reason.
        distances: distances of sets of images.
        standings: the card of each judge, by its label, e.g. "offline/instruments/D".
        origins: index of the run of each arm, and the arm's label there.
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
    standings: dict[str, Standing] = field(default_factory=dict)
    origins: dict[str, tuple[int, str]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def metrics(self) -> list[str]:
        """The stored names of all metrics for which an arm has a score."""
        return sorted({metric for _, metric in self.outputs})

    @property
    def organs(self) -> list[str]:
        """The organs that occur: MedEBench's thirteen in the order of its Table 2, then any further ones by name."""
        present = {sample.organ for sample in self.samples}
        return [organ for organ in ORGANS if organ in present] + sorted(present - set(ORGANS))

    @property
    def clusters(self) -> list[str]:
        """The cluster of each sample, in the order of `samples`."""
        return [sample.cluster for sample in self.samples]

    @property
    def truths(self) -> tuple[int, int]:
        """(number of samples with a synthetic image after, number of samples with any image after)."""
        truths = [sample for sample in self.samples if sample.has_truth]
        return sum(sample.synthetic_truth for sample in truths), len(truths)

    def arm(self, label: str) -> Arm:
        """Return the arm with this label. Raise StopIteration if there is none."""
        return next(arm for arm in self.arms if arm.label == label)

    def covered(self, arm: Arm) -> npt.NDArray[np.bool_]:
        """Return bool (samples,), True for samples that the arm covers."""
        return np.array([arm.covers(sample.id) for sample in self.samples], bool)

    def values(self, arm: Arm, metric: str) -> Floats:
        """Return the score of each sample's first output, float64 (samples,); NaN where unscored."""
        found = self.outputs.get((arm.label, metric))
        return np.full(len(self.samples), np.nan) if found is None else found[:, 0]

    def standing(self, measure: Measure) -> Standing | None:
        """Return the card of the judge behind a measure; None for metrics."""
        who = measure.stored.partition("@")[2]
        if not who or who in self.standings:
            return self.standings.get(who)
        return standing_of((), who.rpartition("/")[0] or who, MEDEBENCH.name)

    def barred(self, measure: Measure) -> bool:
        """Return True if a measure comes from a judge not shown to be reliable, so that it must not rank models."""
        found = self.standing(measure)
        return found is not None and found.barred


def is_baseline(arm: Arm) -> bool:
    """Return True if an arm is a baseline, which follows no instruction."""
    return arm.kind is ArmKind.BASELINE


def is_given_region(arm: Arm) -> bool:
    """Return True if an arm's editor is given the region to edit; its label says so."""
    return arm.region and not is_baseline(arm)
