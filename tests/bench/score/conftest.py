"""One generated run for all tests of scoring: four baselines and four planted editors on three samples."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from bench.small_bench import made, planted, small_bench
from plantain.bench.benchmark.benchmark import Benchmark


@pytest.fixture(scope="session")
def discs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the benchmark `bench` and the run `run`, only read; the third sample has no description."""
    folder = tmp_path_factory.mktemp("discs")
    path = small_bench(folder / "bench", 3).root / "benchmark.json"
    data = orjson.loads(path.read_bytes())
    data["samples"][2]["detailed"] = ""
    path.write_bytes(orjson.dumps(data))
    benchmark = Benchmark.load(folder / "bench")
    made(benchmark, folder / "run", planted(benchmark, "planted/exact", "planted/half", "planted/repainted"))
    return folder


@pytest.fixture(scope="session")
def bench(discs: Path) -> Benchmark:
    return Benchmark.load(discs / "bench")


@pytest.fixture
def folder(discs: Path, tmp_path: Path) -> Path:
    """Return a copy to score."""
    shutil.copytree(discs, tmp_path / "copy")
    return tmp_path / "copy"
