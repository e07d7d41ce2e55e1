"""A benchmark made of the held-out pairs of a training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.benchmark.samples import SYNTHETIC_TRUTH, Sample, plain_image
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import InputError


class HeldOutPair(Protocol):
    """A pair of any package."""

    @property
    def id(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def cluster(self) -> str: ...
    @property
    def instruction(self) -> str: ...
    @property
    def before(self) -> Pixels: ...
    @property
    def after(self) -> Pixels: ...
    @property
    def region(self) -> Mask | None: ...


def write_held_out(pairs: Iterable[HeldOutPair], out: Path, name: str, digest: str) -> Benchmark:
    """Make a benchmark of pairs, or open the one that was made of the same data before.

    Its ground truths are edits that a judge let pass, as their notes say.

    Args:
        pairs: read one at a time.
        out: its folder.
        name: of the benchmark.
        digest: of the pairs' source and choice; a folder made of other ones is refused.

    Raises:
        InputError: the folder has other contents.
    """
    named = f"{name} {hashlib.sha256(digest.encode()).hexdigest()[:12]}"
    if (out / "benchmark.json").is_file():
        benchmark = Benchmark.load(out)
        if benchmark.name != named:
            raise InputError(f"{out}: holds the held-out pairs of another training; use another --to folder")
        return benchmark
    with BenchmarkWriter(out, named) as writer:
        for pair in pairs:
            height, width = pair.before.shape[:2]
            sample = Sample(
                id=pair.id,
                organ=pair.task,
                task=pair.task,
                prompt=pair.instruction,
                cluster=pair.cluster,
                image=plain_image(pair.id, (width, height), name),
                previous=Path(),
                size=(width, height),
                aligned=True,
                notes=(f"{SYNTHETIC_TRUTH}: the image after is an edit that a judge let pass",),
            )
            writer.add(sample, pair.before, pair.after, pair.region)
    return Benchmark.load(out)
