"""One scored run and its submission for all tests of this room."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.discs import PLANTED, make_bench, make_run
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.bench.submission.packing import pack_run
from plantain.metrics.networks.encoders import Networks


@dataclass(frozen=True)
class Submitted:
    bench: Benchmark
    run: Path
    bundle: Path


@pytest.fixture(scope="session")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Submitted:
    folder = tmp_path_factory.mktemp("submitted")
    make_run(make_bench(folder / "bench"), folder / "run")
    bench = Benchmark.load(folder / "bench")
    wish = ScoreRequest(
        ("masked_ssim", "psnr"), (JudgeName("offline/instruments", "D"),), networks=Networks()
    )
    asyncio.run(score_run(folder / "run", bench, wish))
    pack_run(folder / "run", folder / "bundle", models={next(iter(PLANTED)): "knows the truth"})
    return Submitted(bench, folder / "run", folder / "bundle")
