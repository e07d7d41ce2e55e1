"""Check a benchmark before a model is measured on it; each problem names file and field."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.benchmark import read_benchmark, read_mask, resized_bicubic, resized_region
from plantain.bench.benchmark.samples import BenchmarkProblem, Reading, Sample
from plantain.metrics.pixelwise import masked_ssim, ssim
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.records import Licence
from plantain.records.messages import counted

ALIGNED = 0.9
"""SSIM of previous and changed image outside the region from which a pair counts as aligned pixel by pixel. Published
pairs of photographs reach 0.32 to 0.73; an edit of the same file stays above."""

SMALLEST_SIDE = 64
"""Shortest side in pixels below which metrics are unreliable."""


def check_benchmark(path: Path, progress: Callable[[int, int], None] | None = None) -> Reading:
    """Check a benchmark, including all pixels; return its samples and every problem, errors first.

    Args:
        path: the folder or its metadata file.
        progress: called with the numbers of finished and of all samples.

    Raises:
        plantain.records.InputError: the path has no benchmark, or its metadata has no known shape.
    """
    reading = read_benchmark(path)
    found = list(reading.problems)
    for index, sample in enumerate(reading.samples):
        found += _check_pixels(reading, sample)
        if not sample.detailed:
            missing = "no description of the change: a judge can only be given the prompt"
            found.append(BenchmarkProblem(reading.metadata, "detailed", missing, sample.id, warning=True))
        if progress:
            progress(index + 1, len(reading.samples))
    found += _check_sources(reading)
    found.sort(key=lambda problem: problem.warning)
    return replace(reading, problems=tuple(found))


def _check_pixels(reading: Reading, sample: Sample) -> list[BenchmarkProblem]:
    """Decode one sample's images and compare them."""
    found: list[BenchmarkProblem] = []

    def note(field: str, detail: str, path: Path | None = None, *, warning: bool = True) -> None:
        file = str((path or sample.previous).relative_to(reading.root))
        found.append(BenchmarkProblem(file, field, detail, sample.id, warning))

    def decoded(path: Path | None, field: str) -> Pixels | None:
        try:
            return None if path is None else decode_untrusted(path.read_bytes(), path.name)
        except BadImage as error:
            note(field, str(error).partition(": ")[2], path, warning=False)
            return None

    previous, changed = decoded(sample.previous, "previous"), decoded(sample.changed, "changed")
    if min(sample.size) < SMALLEST_SIDE:
        width, height = sample.size
        note("size", f"{width}x{height}; metrics are unreliable below {SMALLEST_SIDE}")
    if sample.changed is None:
        note("changed", "no real image after: editing accuracy against it cannot be measured")
    region = None
    if sample.roi is None:
        note("roi", "no region: context preservation cannot be measured")
    elif decoded(sample.roi, "roi") is not None:
        mask = read_mask(sample.roi.read_bytes(), sample.roi.name)
        region = resized_region(mask.region, sample.size)
        if mask.remark:
            note("pixels", f"mask: {mask.remark}", sample.roi, warning=not mask.broken)
    if previous is not None and changed is not None:
        changed = resized_bicubic(changed, sample.size)
        if np.array_equal(previous, changed):
            note("pixels", "the image after equals the image before", sample.changed, warning=False)
        elif sample.aligned is not False:
            score = _similarity(previous, changed, region)
            if score is not None and score < ALIGNED:
                note(
                    "pixels",
                    f"not aligned pixel by pixel (SSIM {score:.2f} outside the region, {ALIGNED:g} expected): PSNR, "
                    "SSIM and LPIPS against it reward an unchanged copy",
                    sample.changed,
                )
    return found


def _similarity(previous: Pixels, changed: Pixels, region: Mask | None) -> float | None:
    """Return the SSIM outside the region, of the whole image where nothing is outside, None for tiny images."""
    score = None if region is None else masked_ssim(previous, changed, region).value
    return ssim(previous, changed).value if score is None and min(previous.shape[:2]) >= 7 else score


def _check_sources(reading: Reading) -> Iterator[BenchmarkProblem]:
    """Yield warnings on shared sources, addresses and licences."""

    def note(field: str, detail: str) -> BenchmarkProblem:
        return BenchmarkProblem(reading.metadata, field, detail, warning=True)

    members: dict[str, list[str]] = defaultdict(list)
    for sample in reading.samples:
        members[sample.cluster].append(sample.id)
    for cluster, ids in members.items():
        if len(ids) > 1:
            shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
            detail = f"{counted(len(ids), 'sample')} share one source and count as one in intervals: {shown}"
            yield note(f"cluster {cluster}", detail)
    sourced = sum(bool(sample.source) for sample in reading.samples)
    if sourced:
        yield note(
            "url", f"{counted(sourced, 'sample')} with a source address; addresses are kept as hashes only"
        )
    unknown = sum(sample.image.licence is Licence.UNKNOWN for sample in reading.samples)
    if unknown:
        images = counted(unknown, "image has", "images have")
        yield note(
            "licence", f"{images} no stated licence: hosted models need their owner's recorded consent"
        )
