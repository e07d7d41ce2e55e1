"""Pairs out of a benchmark: the image before, the instruction, the real image after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from plantain.pixels.arrays import Pixels
from plantain.records import InputError
from plantain.train.examples.pairs import ListedExample, TrainingPair


class PairedSample(Protocol):
    """What is needed of a sample."""

    @property
    def id(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def cluster(self) -> str: ...
    @property
    def prompt(self) -> str: ...
    @property
    def changed(self) -> Path | None: ...


S = TypeVar("S", bound=PairedSample)


class PairedBenchmark(Protocol[S]):
    """What is needed of a benchmark, whichever room reads it."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def samples(self) -> Sequence[S]: ...
    def sample(self, sample_id: str) -> S: ...
    def previous(self, sample: S) -> Pixels: ...
    def changed(self, sample: S) -> Pixels: ...


class BenchmarkPairs(Generic[S]):
    """The samples of a benchmark that have a real image after."""

    def __init__(self, benchmark: PairedBenchmark[S]) -> None:
        self._benchmark = benchmark
        self.name = benchmark.name
        self.digest = benchmark.digest

    def listed(self) -> list[ListedExample]:
        """Every such sample, by id."""
        found = [
            ListedExample(sample.id, sample.task, sample.cluster)
            for sample in self._benchmark.samples
            if sample.changed is not None
        ]
        if not found:
            raise InputError(f"{self.name}: no sample has an image after: nothing to learn from")
        return found

    def read(self, ids: Sequence[str]) -> Iterator[TrainingPair]:
        """The pairs of these ids, in the order given."""
        for sample_id in ids:
            sample = self._benchmark.sample(sample_id)
            yield TrainingPair(
                sample.id,
                sample.task,
                sample.cluster,
                sample.prompt,
                self._benchmark.previous(sample),
                self._benchmark.changed(sample),
            )
