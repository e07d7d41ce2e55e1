"""What a benchmark is: samples, regions, reading and writing, checking, describing."""

from __future__ import annotations

import warnings


def __getattr__(name: str) -> object:
    """`Benchmark`, where the first edition had it."""
    if name != "Benchmark":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plantain.bench.benchmark.benchmark import Benchmark

    warnings.warn("Benchmark is imported from plantain", DeprecationWarning, stacklevel=2)
    return Benchmark
