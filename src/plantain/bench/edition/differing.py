"""What differs between two benchmarks, sample by sample, and which number of a version that moves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.samples import Sample

_FILES = ("previous", "changed", "roi")
_TEXTS = ("organ", "task", "prompt", "rephrased", "detailed", "key_concept", "finding", "cluster", "notes")


class VersionStep(Enum):
    """The number of a semantic version that a change moves."""

    NONE = "no"
    PATCH = "third"
    MINOR = "second"
    MAJOR = "first"

    @property
    def rank(self) -> int:
        return list(VersionStep).index(self)


@dataclass(frozen=True, slots=True)
class Differing:
    """What differs from one benchmark to another.

    Attributes:
        added, removed: ids of samples.
        changed: by id, the fields that differ; "previous", "changed" and "roi" are files, by their bytes.
        same: samples that are the same in both.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: dict[str, tuple[str, ...]]
    same: int

    @property
    def step(self) -> VersionStep:
        """First number: scores of the two cannot be compared sample by sample; second: there are more samples."""
        scored = any(set(fields) - {"notes"} for fields in self.changed.values())
        if self.removed or scored:
            return VersionStep.MAJOR
        if self.added:
            return VersionStep.MINOR
        return VersionStep.PATCH if self.changed else VersionStep.NONE


def differences(first: Benchmark, second: Benchmark) -> Differing:
    """Compares two benchmarks, by ids."""
    old, new = ({sample.id: sample for sample in bench.samples} for bench in (first, second))
    both = [name for name in old if name in new]
    changed = {
        name: fields for name in both if (fields := tuple(_fields(first, second, old[name], new[name])))
    }
    return Differing(
        tuple(name for name in new if name not in old),
        tuple(name for name in old if name not in new),
        changed,
        len(both) - len(changed),
    )


def _fields(first: Benchmark, second: Benchmark, one: Sample, other: Sample) -> list[str]:
    files = zip(_FILES, first.hashes[one.id], second.hashes[other.id], strict=True)
    changed = [name for name, before, after in files if before != after]
    changed += [name for name in _TEXTS if getattr(one, name) != getattr(other, name)]
    return changed + (["direction"] if one.direction is not other.direction else [])
