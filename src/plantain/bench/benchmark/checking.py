"""Checks a benchmark before a model is measured on it; each problem names file and field."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from plantain.bench.benchmark.benchmark import read_benchmark, resized_bicubic
from plantain.bench.benchmark.entries import Reading
from plantain.bench.benchmark.medebench import direction_of
from plantain.bench.benchmark.regions import StoredMask, read_mask, resized_region
from plantain.bench.benchmark.samples import BenchmarkProblem, Sample
from plantain.metrics.preservation import preservation
from plantain.metrics.ssim import ssim
from plantain.pixels.arrays import Field, Pixels
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.records import Direction, Licence
from plantain.records.counts import counted

ALIGNED = 0.9
"""SSIM of previous and changed image outside the region from which a pair counts as aligned pixel by pixel. Published
pairs of photographs reach 0.32 to 0.73; an edit of the same file stays above."""

SMALLEST = 64
"""Shortest side in pixels below which nothing sensible can be measured."""

ALIKE = 0.97
"""Correlation of thumbnails from which two pictures count as one."""

_THUMBNAIL = 24

_NAMING = re.compile(
    r"patient|facebook\.|instagram\.|linkedin\.|twitter\.|tiktok\.|/(?:mr|mrs|ms|miss)[-_ .]|testimonial",
    re.IGNORECASE,
)
"""Words in addresses that often stand beside a person's name. No list can be complete, so every address is hashed."""

_HALVES = re.compile(r"\b(?:left|right)(?:-hand)?\s+(?:image|picture|half|panel)s?\b", re.IGNORECASE)
"""What a describer writes that saw both images in one picture; published descriptions say it now and then."""


@dataclass(frozen=True, slots=True)
class CheckedBenchmark:
    """What a check found.

    Attributes:
        reading: metadata and samples.
        problems: errors first, then warnings, each in the order of the samples.
        similarity: by sample id, SSIM of previous and changed image outside the region (in all of it without one).
        roi_share: by sample id, the region's share of the frame.
    """

    reading: Reading
    problems: tuple[BenchmarkProblem, ...]
    similarity: dict[str, float]
    roi_share: dict[str, float]

    @property
    def errors(self) -> tuple[BenchmarkProblem, ...]:
        """What makes the benchmark unusable."""
        return tuple(problem for problem in self.problems if not problem.warning)

    @property
    def warnings(self) -> tuple[BenchmarkProblem, ...]:
        """What one should know of it."""
        return tuple(problem for problem in self.problems if problem.warning)


def check_benchmark(path: Path, progress: Callable[[int, int], None] | None = None) -> CheckedBenchmark:
    """Reads a benchmark with all its pixels and collects every problem.

    Args:
        path: the folder or its metadata file.
        progress: called with samples done and in all.

    Raises:
        plantain.records.InputError: there is no benchmark there, or its metadata is no JSON of a known shape.
    """
    reading = read_benchmark(path, keep_sources=True)
    found = list(reading.problems)
    thumbnails: dict[str, tuple[Field, Field | None]] = {}
    similarity: dict[str, float] = {}
    shares: dict[str, float] = {}
    for index, sample in enumerate(reading.samples):
        pixels = _Pixels(reading.root, sample)
        found += pixels.problems()
        if pixels.previous is not None:
            after = None if pixels.changed is None else _thumbnail(pixels.changed)
            thumbnails[sample.id] = (_thumbnail(pixels.previous), after)
        if pixels.similarity is not None:
            similarity[sample.id] = pixels.similarity
        if pixels.mask is not None:
            shares[sample.id] = float(pixels.mask.region.mean())
        found += _texts(reading, sample)
        if progress:
            progress(index + 1, len(reading.samples))
    found += _reversed_pairs(reading, thumbnails)
    found += _dependence(reading)
    found += _addresses(reading)
    found += _licences(reading)
    found += _strays(reading)
    found.sort(key=lambda problem: problem.warning)
    return CheckedBenchmark(reading, tuple(found), similarity, shares)


class _Pixels:
    """The pictures of one sample, as far as they can be decoded."""

    def __init__(self, root: Path, sample: Sample) -> None:
        self._root, self._sample = root, sample
        self._found: list[BenchmarkProblem] = []
        self.similarity: float | None = None
        self.previous = self._decoded(sample.previous, "previous")
        self.changed = None if sample.changed is None else self._decoded(sample.changed, "changed")
        self.mask = None if sample.roi is None else self._masked(sample.roi)

    def problems(self) -> list[BenchmarkProblem]:
        """What decoding showed, and what the pixels say."""
        sample = self._sample
        if min(sample.size) < SMALLEST:
            self._note(
                "size", f"{sample.size[0]}x{sample.size[1]}; nothing is measured well below {SMALLEST}", True
            )
        if sample.changed is None:
            self._note("changed", "no real image after: editing accuracy against it cannot be measured", True)
        if sample.roi is None:
            self._note("roi", "no region: context preservation cannot be measured", True)
        if self.mask is not None and self.mask.remark:
            broken = self.mask.kind in ("empty", "full")
            self._note("pixels", f"mask ({self.mask.kind}): {self.mask.remark}", not broken, sample.roi)
        if self.previous is not None and self.changed is not None:
            self._compared(self.previous, resized_bicubic(self.changed, sample.size))
        return self._found

    def _compared(self, previous: Pixels, changed: Pixels) -> None:
        sample = self._sample
        if np.array_equal(previous, changed):
            self._note(
                "pixels", "the image after is the image before: there is nothing to do", False, sample.changed
            )
            self.similarity = 1.0
            return
        score = None
        if self.mask is not None:
            score = preservation(previous, changed, resized_region(self.mask.region, sample.size)).score.value
        if score is None and min(sample.size) >= 7:
            score = ssim(previous, changed).value
        self.similarity = score
        if score is not None and score < ALIGNED and sample.aligned is not False:
            self._note(
                "pixels",
                f"not aligned pixel by pixel (SSIM {score:.2f} outside the region, {ALIGNED:g} expected): PSNR, SSIM "
                "and LPIPS against it reward an unchanged copy",
                True,
                sample.changed,
            )

    def _decoded(self, path: Path, field: str) -> Pixels | None:
        try:
            return decode_untrusted(path.read_bytes(), path.name)
        except BadImage as error:
            self._note(field, str(error).partition(": ")[2], False, path)
            return None

    def _masked(self, path: Path) -> StoredMask | None:
        try:
            return read_mask(path.read_bytes(), path.name)
        except BadImage as error:
            self._note("roi", str(error).partition(": ")[2], False, path)
            return None

    def _note(self, field: str, detail: str, warning: bool, path: Path | None = None) -> None:
        file = str((path or self._sample.previous).relative_to(self._root))
        self._found.append(BenchmarkProblem(file, field, detail, self._sample.id, warning))


def _texts(reading: Reading, sample: Sample) -> Iterator[BenchmarkProblem]:
    def note(field: str, detail: str) -> BenchmarkProblem:
        return BenchmarkProblem(reading.metadata, field, detail, sample.id, warning=True)

    asked, named = direction_of(sample.prompt), direction_of(sample.task)
    if {asked, named} == {Direction.ADD, Direction.REMOVE}:
        yield note(
            "task",
            f"the task {named.value}s (“{sample.task}”), the prompt {asked.value}s (“{sample.prompt}”)",
        )
    if not sample.detailed:
        yield note("detailed", "no description of the change: a judge can only be given the prompt")
    if _HALVES.search(sample.detailed):
        yield note(
            "detailed",
            "speaks of a left or right image, which nobody who is shown the images apart can follow",
        )
    if sample.rephrased and _plain(sample.rephrased) == _plain(sample.prompt):
        yield note("rephrased", "the paraphrase is the prompt")


def _reversed_pairs(
    reading: Reading, thumbnails: dict[str, tuple[Field, Field | None]]
) -> Iterator[BenchmarkProblem]:
    """Pairs that are each other backwards, and previous images that are nearly one though no cluster says so."""
    samples = [sample for sample in reading.samples if sample.id in thumbnails]
    if len(samples) < 2:
        return
    before = np.stack([thumbnails[sample.id][0] for sample in samples])
    nothing = np.zeros_like(before[0])
    after = np.stack([nothing if (t := thumbnails[sample.id][1]) is None else t for sample in samples])
    crossed = before @ after.T
    for first, second in zip(*np.nonzero(np.triu((crossed > ALIKE) & (crossed.T > ALIKE), 1)), strict=True):
        one, other = samples[first], samples[second]
        if crossed[first, first] > ALIKE or crossed[second, second] > ALIKE:
            continue  # Their own pictures are as alike as that, so this tells nothing.
        apart = "" if one.cluster == other.cluster else "; their clusters differ, give both the same"
        yield BenchmarkProblem(
            reading.metadata,
            "previous",
            f"the pair is that of sample {other.id} reversed{apart}",
            one.id,
            warning=True,
        )
    for first, second in zip(*np.nonzero(np.triu(before @ before.T > 0.999, 1)), strict=True):
        one, other = samples[first], samples[second]
        if one.cluster != other.cluster:
            detail = f"nearly the image of sample {other.id}, but their clusters differ: intervals will be too narrow"
            yield BenchmarkProblem(reading.metadata, "cluster", detail, one.id, warning=True)


def _dependence(reading: Reading) -> Iterator[BenchmarkProblem]:
    members: dict[str, list[str]] = defaultdict(list)
    for sample in reading.samples:
        members[sample.cluster].append(sample.id)
    for cluster, ids in members.items():
        if len(ids) > 1:
            shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
            detail = (
                f"{counted(len(ids), 'sample')} share one source and are drawn together in intervals: {shown}"
            )
            yield BenchmarkProblem(reading.metadata, f"cluster {cluster}", detail, warning=True)


def _addresses(reading: Reading) -> Iterator[BenchmarkProblem]:
    sourced = [sample for sample in reading.samples if sample.source]
    if not sourced:
        return
    naming = [sample.id for sample in sourced if _NAMING.search(sample.source)]
    detail = f"{counted(len(sourced), 'sample')} with the place that they come from; addresses are kept as hashes only"
    if naming:
        shown = ", ".join(naming[:8]) + (" …" if naming[8:] else "")
        detail += f"; {len(naming)} hold words that often stand beside a person's name (samples {shown})"
    yield BenchmarkProblem(reading.metadata, "url", detail, warning=True)


def _licences(reading: Reading) -> Iterator[BenchmarkProblem]:
    unknown = sum(sample.image.licence is Licence.UNKNOWN for sample in reading.samples)
    if unknown:
        detail = (
            f"{counted(unknown, 'image has', 'images have')} no stated licence: hosted models need their "
            f"owner's recorded consent"
        )
        yield BenchmarkProblem(reading.metadata, "licence", detail, warning=True)


def _strays(reading: Reading) -> Iterator[BenchmarkProblem]:
    """Files in the folders that no sample names."""
    named = {path for s in reading.samples for path in (s.previous, s.changed, s.roi) if path is not None}
    named_in = {problem.file for problem in reading.problems}
    counts: Counter[str] = Counter()
    for folder in sorted({path.parent for path in named}):
        if folder == reading.root:
            continue
        for path in folder.iterdir():
            known = path in named or str(path.relative_to(reading.root)) in named_in
            counts[str(folder.relative_to(reading.root))] += path.is_file() and not known
    for name, count in counts.items():
        if count:
            yield BenchmarkProblem(name, "files", f"{count} that no usable sample names", warning=True)


def _thumbnail(pixels: Pixels) -> Field:
    """Unit vector of a small colour picture around its mean, float32."""
    small = cv2.resize(pixels, (_THUMBNAIL, _THUMBNAIL), interpolation=cv2.INTER_AREA).astype(np.float32)
    vector = (small - small.mean()).ravel()
    length = float(np.linalg.norm(vector))
    return vector / length if length > 1e-3 else np.zeros_like(vector)


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()
