"""The gallery of a leaderboard: samples drawn by seed, every arm's outputs, the region as an outline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.editors import GROUND_TRUTH
from plantain.bench.generate.runfile import Arm, BenchRun, SampleFacts
from plantain.bench.leaderboard.scores import is_baseline
from plantain.bench.leaderboard.studies import SweepPoint
from plantain.bench.leaderboard.tables import Table
from plantain.journal.questions.benchmark import output_edit
from plantain.pages.thumbnails import data_uri, outline
from plantain.pages.wording import DASH
from plantain.pixels.decode import decode
from plantain.privacy.text import TextKept
from plantain.records import derive_seed

SIDE = 384
"""Longest side of an image in pixels: small on the page, this size when it is enlarged."""

BYTES = 28_000
"""Most bytes of one image."""

Values = tuple[tuple[str, str], ...]
"""(metric, number) as printed."""


@dataclass(frozen=True, slots=True)
class GalleryOutput:
    """One output of an arm on a sample.

    Attributes:
        label: name of the arm, or of a sweep's setting.
        baseline: True for a baseline of plantain.
        image: a data URI; None without an image.
        reason: why the image is missing; "" with an image.
        values: (measure, formatted score) of each main measure.
    """

    label: str
    baseline: bool
    image: str | None
    reason: str
    values: Values


@dataclass(frozen=True, slots=True)
class SampleStory:
    """One sample with its images and all arms' outputs.

    Attributes:
        facts: the sample.
        size: (width, height) of its image in pixels.
        previous, truth: the images before and after as data URIs; `truth` is None without an image after.
        synthetic: (True if the image before is synthetic, True if the image after is).
        outline: the region as an SVG path in pixels; "" without a region.
        outputs: output 0 of each arm except `ground-truth`; of a sweep, one output per setting.
    """

    facts: SampleFacts
    size: tuple[int, int]
    previous: str
    truth: str | None
    synthetic: tuple[bool, bool]
    outline: str
    outputs: tuple[GalleryOutput, ...]


def draw_samples(
    samples: Sequence[SampleFacts], organs: Iterable[str], seed: int, size: int
) -> list[SampleFacts]:
    """Choose up to `size` samples at random by seed, as evenly over the organs as possible, sorted by organ and id."""
    queues = [
        sorted((s for s in samples if s.organ == o), key=lambda s: derive_seed(seed, s.id)) for o in organs
    ]
    rounds = range(max(map(len, queues), default=0))
    drawn = [queue[depth] for depth in rounds for queue in queues if len(queue) > depth][:size]
    place = {organ: i for i, organ in enumerate(dict.fromkeys(s.organ for queue in queues for s in queue))}
    return sorted(drawn, key=lambda s: (place[s.organ], s.id))


class Gallery:
    """The example images of a leaderboard: samples, outputs and sweeps.

    Args:
        table: the table of the runs.
        runs: the opened runs, in the order of `table.scores.runs`.
        benchmark: the benchmark with the samples' images; samples that changed since the first run are skipped.
    """

    def __init__(self, table: Table, runs: Sequence[BenchRun], benchmark: Benchmark) -> None:
        self._table, self._runs, self._benchmark = table, runs, benchmark
        self._place = {sample.id: i for i, sample in enumerate(table.scores.samples)}
        known = {sample.id: sample for sample in benchmark.samples}
        self.samples = [
            facts
            for facts in table.scores.samples
            if facts.id in known and benchmark.content_of(known[facts.id]) == facts.content
        ]

    def stories(self, size: int) -> list[SampleStory]:
        """Return up to `size` samples, chosen by the run's seed, with the first output of every arm."""
        scores, arms = self._table.scores, self._table.general
        drawn = draw_samples(self.samples, scores.organs, scores.seed, size)
        return [
            self._story(facts, [(arm.label, arm, 0) for arm in arms if arm.covers(facts.id)])
            for facts in drawn
        ]

    def sweep(self, label: str, points: Sequence[SweepPoint]) -> SampleStory | None:
        """Return one sample of a swept arm, chosen by the run's seed, with an output per setting; None without one."""
        arm = self._table.scores.arm(label)
        covered = [facts for facts in self.samples if arm.covers(facts.id)]
        if not covered:
            return None
        facts = min(covered, key=lambda one: derive_seed(self._table.scores.seed, one.id))
        return self._story(facts, [(one.setting, arm, one.k) for one in points])

    def _story(self, facts: SampleFacts, outputs: Sequence[tuple[str, Arm, int]]) -> SampleStory:
        """Return a sample with outputs, each (label below it, arm, number of the output)."""
        sample, benchmark = self._benchmark.sample(facts.id), self._benchmark
        truth: str | None = None
        if sample.changed is not None:
            truth = data_uri(benchmark.changed(sample), SIDE, BYTES, synthetic=sample.synthetic_truth)
            outputs = [one for one in outputs if one[1].label != GROUND_TRUTH]
        return SampleStory(
            facts=facts,
            size=sample.size,
            previous=data_uri(benchmark.previous(sample), SIDE, BYTES, synthetic=sample.image.synthetic),
            truth=truth,
            synthetic=(sample.image.synthetic, sample.synthetic_truth),
            outline="" if sample.roi is None else outline(benchmark.roi(sample)),
            outputs=tuple(self._output(sample, label, arm, k) for label, arm, k in outputs),
        )

    def _output(self, sample: Sample, label: str, arm: Arm, k: int) -> GalleryOutput:
        number, origin = self._table.scores.origins[arm.label]
        reader, image = self._runs[number].reader, None
        edited, outcome, reason = output_edit(reader, origin, sample.id, k) or (None, "", "")
        if edited is None:
            reason = f"{(outcome or 'no output yet').replace('_', ' ')}{': ' + reason if reason else ''}"
        elif not reader.has_blob(edited):
            reason = "image not in this copy of the run"
        else:
            # A model's output is always synthetic, a baseline's where its input is.
            synthetic = sample.image.synthetic if is_baseline(arm) else True
            image = data_uri(decode(reader.read_blob(edited)), SIDE, BYTES, synthetic=synthetic)
        return GalleryOutput(label, is_baseline(arm), image, reason, self._values(sample.id, arm, k))

    def _values(self, sample_id: str, arm: Arm, k: int) -> Values:
        outputs, place = self._table.scores.outputs, self._place[sample_id]
        values = []
        for measure in self._table.main:
            found = outputs.get((arm.label, measure.stored))
            value = found[place, k] if found is not None else np.nan
            values.append((measure.name, score_text(value)))
        texts = outputs.get((arm.label, TextKept.name))
        if texts is not None and texts[place, k] == 0.0:
            values.append(("text", "drawn or changed"))
        return tuple(values)


def score_text(value: float) -> str:
    """Return a score as text with two decimals; a dash for NaN."""
    return f"{value:z.2f}" if np.isfinite(value) else DASH
