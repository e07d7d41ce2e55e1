"""The gallery of a leaderboard: samples drawn by seed, every arm's output beside them, the region as an outline."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arms import Arm
from plantain.bench.generate.baselines import GROUND_TRUTH
from plantain.bench.generate.plan import content_of
from plantain.bench.generate.runfile import BenchRun, SampleFacts
from plantain.bench.leaderboard.sweeps import Sweep
from plantain.bench.leaderboard.table_rows import Scores, baseline
from plantain.bench.leaderboard.tables import Table
from plantain.bench.score.text_kept import TextKept
from plantain.journal.questions.benchmark import output_edit
from plantain.pages.thumbnails import data_uri
from plantain.pixels.arrays import Mask
from plantain.pixels.decode import decode

SIDE = 384
"""Longest side of a picture in pixels: small on the page, this size when it is enlarged."""

BYTES = 28_000
"""Of one picture at most."""

PAGE_BYTES = 9_000_000
"""Of all pictures of a page together, about."""


ROW = 7
"""Pictures side by side at most."""


@dataclass(frozen=True, slots=True)
class GalleryPicture:
    """One output of an arm on a sample; without image, `reason` says why. `values`: (metric, number) as printed."""

    label: str
    baseline: bool
    image: str | None
    reason: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SampleStory:
    """One sample: images before and after as data URIs, the region as an SVG path in pixels, all arms' outputs.

    The arm `ground-truth` is the image after itself: where there is one, its scores are `truth_values`, and its picture
    is not shown twice. `synthetic` says whether the image before, and the one after, is not real.
    """

    facts: SampleFacts
    size: tuple[int, int]
    previous: str
    truth: str | None
    truth_values: tuple[tuple[str, str], ...]
    synthetic: tuple[bool, bool]
    outline: str
    outputs: tuple[GalleryPicture, ...]

    @property
    def across(self) -> int:
        """Pictures in a row where there is room: rows as even as can be, so that no picture stands alone."""
        pictures = 2 + len(self.outputs)
        return -(-pictures // -(-pictures // ROW))


@dataclass(frozen=True, slots=True)
class GridStory:
    """The pictures of a sweep on one sample, by (row, column)."""

    sweep: Sweep
    facts: SampleFacts
    size: tuple[int, int]
    previous: str
    outline: str
    outputs: dict[tuple[int, int], GalleryPicture]


def choose(scores: Scores, size: int) -> list[SampleFacts]:
    """Up to `size` samples, as evenly over the organs as their numbers allow, drawn by the smallest hash of run seed
    and id, so that neither order nor looks decide; sorted by organ and id."""
    queues = {
        organ: sorted((s for s in scores.samples if s.organ == organ), key=lambda s: _rank(scores.seed, s.id))
        for organ in scores.organs
    }
    chosen: list[SampleFacts] = []
    depth = 0
    while len(chosen) < size and any(len(queue) > depth for queue in queues.values()):
        chosen.extend(queue[depth] for queue in queues.values() if len(queue) > depth)
        depth += 1
    rank = {organ: i for i, organ in enumerate(queues)}
    return sorted(chosen[:size], key=lambda s: (rank[s.organ], s.id))


def _rank(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}\x1f{name}".encode()).hexdigest()


def sample_stories(table: Table, run: BenchRun, benchmark: Benchmark, size: int) -> list[SampleStory]:
    """The stories of up to `size` samples, of those that the benchmark's folder has as the run had them."""
    there = still_there(table.scores, benchmark)
    chosen = choose(replace(table.scores, samples=there), size)
    arms = table.general
    limit = _limit(len(chosen) * (len(arms) + 2))
    stories = []
    for facts in chosen:
        sample = benchmark.sample(facts.id)
        truth = _truth(benchmark, sample, limit)
        covering = [arm for arm in arms if arm.covers(facts.id)]
        true_arms = [arm for arm in covering if arm.label == GROUND_TRUTH and truth is not None]
        stories.append(
            SampleStory(
                facts=facts,
                size=sample.size,
                previous=data_uri(benchmark.previous(sample), SIDE, limit, synthetic=sample.image.synthetic),
                truth=truth,
                truth_values=_values(table, facts, true_arms[0], 0) if true_arms else (),
                synthetic=(sample.image.synthetic, sample.synthetic_truth),
                outline=_outline_of(benchmark, sample),
                outputs=tuple(
                    _picture(table, run, (facts, sample), arm, 0, limit)
                    for arm in covering
                    if arm not in true_arms
                ),
            )
        )
    return stories


def sweep_stories(
    table: Table, run: BenchRun, benchmark: Benchmark, found: Iterable[Sweep]
) -> list[GridStory]:
    """Each sweep on one sample that its arm covers, drawn by seed."""
    stories = []
    there = still_there(table.scores, benchmark)
    for sweep in found:
        covered = [s for s in there if sweep.arm.covers(s.id)]
        if not covered:
            continue
        facts = min(covered, key=lambda s: _rank(table.scores.seed, s.id))
        sample = benchmark.sample(facts.id)
        limit = _limit(2 * len(sweep.points))
        outputs = {
            place: _picture(table, run, (facts, sample), sweep.arm, point.k, limit)
            for place, point in sweep.points.items()
        }
        previous = data_uri(benchmark.previous(sample), SIDE, limit, synthetic=sample.image.synthetic)
        stories.append(
            GridStory(sweep, facts, sample.size, previous, _outline_of(benchmark, sample), outputs)
        )
    return stories


def still_there(scores: Scores, benchmark: Benchmark) -> tuple[SampleFacts, ...]:
    """The samples whose texts and files are still those that the run was made from."""
    found = {sample.id: sample for sample in benchmark.samples}
    return tuple(
        facts
        for facts in scores.samples
        if facts.id in found and content_of(benchmark, found[facts.id]) == facts.content
    )


def _limit(pictures: int) -> int:
    return max(6_000, min(BYTES, PAGE_BYTES // max(1, pictures)))


def _truth(benchmark: Benchmark, sample: Sample, limit: int) -> str | None:
    if sample.changed is None:
        return None
    return data_uri(benchmark.changed(sample), SIDE, limit, synthetic=sample.synthetic_truth)


def _picture(
    table: Table, run: BenchRun, about: tuple[SampleFacts, Sample], arm: Arm, k: int, limit: int
) -> GalleryPicture:
    facts, sample = about
    edited, reason = _edited(run, facts.id, arm.label, k)
    image = None
    if edited is not None:
        pixels = decode(run.reader.read_blob(edited))
        image = data_uri(pixels, SIDE, limit, synthetic=_synthetic(arm, sample))
    return GalleryPicture(arm.label, baseline(arm), image, reason, _values(table, facts, arm, k))


def _synthetic(arm: Arm, sample: Sample) -> bool:
    """Whether an output is synthetic: a model's always is, a baseline's where what it was made of is."""
    if not baseline(arm):
        return True
    return sample.synthetic_truth if arm.label == GROUND_TRUTH else sample.image.synthetic


def _values(table: Table, facts: SampleFacts, arm: Arm, k: int) -> tuple[tuple[str, str], ...]:
    """The scores of one output as printed."""
    place = table.scores.samples.index(facts)
    values = []
    for measure in table.main:
        found = table.scores.outputs.get((arm.label, measure.stored))
        value = found[place, k] if found is not None else np.nan
        values.append((measure.name, f"{value:z.2f}" if np.isfinite(value) else "–"))
    texts = table.scores.outputs.get((arm.label, TextKept.name))
    if texts is not None and texts[place, k] == 0.0:
        values.append(("text", "drawn or changed"))
    return tuple(values)


def _edited(run: BenchRun, sample_id: str, label: str, k: int) -> tuple[str | None, str]:
    """Hash of an output's picture, or why there is none."""
    edit = output_edit(run.reader, label, sample_id, k)
    if edit is None:
        return None, "no output yet"
    picture, outcome, reason = edit
    if picture is None:
        return None, f"{(outcome or 'no output yet').replace('_', ' ')}{': ' + reason if reason else ''}"
    if not run.reader.has_blob(picture):
        return None, "picture not in this copy of the run"
    return picture, ""


def _outline_of(benchmark: Benchmark, sample: Sample) -> str:
    return "" if sample.roi is None else outline(benchmark.roi(sample))


def outline(region: Mask) -> str:
    """The border of a region as an SVG path in pixel coordinates.

    Example:
        >>> import numpy as np
        >>> mask = np.zeros((8, 8), bool)
        >>> mask[2:5, 1:4] = True
        >>> outline(mask)
        'M1 2L1 4L3 4L3 2Z'
    """
    tolerance = max(region.shape) / 1000
    contours, _ = cv2.findContours(region.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    parts = []
    for contour in contours:
        points = cv2.approxPolyDP(contour, tolerance, True).reshape(-1, 2)
        if len(points) > 2:
            parts.append("M" + "L".join(f"{x} {y}" for x, y in points) + "Z")
    return "".join(sorted(parts))
