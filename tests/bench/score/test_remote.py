"""Metrics on an engine's workers: the same scores as here, and here what no worker has."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from bench.discs import make_bench, make_run
from fakes.elsewhere import Elsewhere
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.score.pixel_metrics import by_sample, lacking, measure
from plantain.bench.score.remote import measure_on
from plantain.bench.score.suite import PIXEL_METRICS, open_metrics
from plantain.journal import StoredScore
from plantain.metrics.networks.encoders import Networks


def test_scores_are_those_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(make_bench(tmp_path / "bench"), tmp_path / "run")
    metrics, _ = open_metrics(set(PIXEL_METRICS), Networks())
    benchmark = Benchmark.load(tmp_path / "bench")
    monkeypatch.setattr(metrics[0], "version", "of another release")

    async def there(run: BenchRun, samples: list[Any]) -> list[tuple[list[StoredScore], list[Any]]]:
        engine = Elsewhere()
        try:
            return [await measure_on(engine, benchmark, name, work, run.read) for name, work in samples]
        finally:
            engine.close()

    def key(row: StoredScore) -> tuple[object, ...]:
        return row.task_id, row.round, row.metric

    with BenchRun.open(tmp_path / "run") as run:
        samples = [(name, lacking(run.reader, outputs, metrics)) for name, outputs in by_sample(run)]
        found = asyncio.run(there(run, samples))
        for (name, work), (rows, rest) in zip(samples, found, strict=True):
            here = measure(benchmark, name, work, run.read, Lock())
            remaining = measure(benchmark, name, rest, run.read, Lock())
            assert sorted([*rows, *remaining], key=key) == sorted(here, key=key)
            without = {lack.output.task_id for lack in work if lack.output.edited is None}
            assert {row.metric for row in remaining if row.task_id not in without} == {metrics[0].name}
