"""The benchmark's demo: the planted editors behave as described, and their order is found again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.demo import PLAN, Demo, bench_demo, demo_benchmark
from plantain.bench.leaderboard.tables import OVERALL
from plantain.records.messages import InputError
from plantain.report.page import make_report

FEW = (PLAN[0], PLAN[3], PLAN[8], PLAN[12])
"""Two edits of one organ, one of each other organ."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench-demo")


@pytest.fixture(scope="module")
def benchmark(folder: Path) -> Benchmark:
    return demo_benchmark(folder / "benchmark", FEW)


@pytest.fixture(scope="module")
def demo(folder: Path, benchmark: Benchmark, no_figures_in_this_file: None) -> Demo:
    return asyncio.run(bench_demo(folder, plan=FEW))


def mean(demo: Demo, model: str, metric: str) -> float:
    cell = demo.table.cell(model, OVERALL, metric)
    assert cell is not None
    assert cell.estimate.value is not None
    return cell.estimate.value


def test_every_edit_has_both_directions_and_an_exact_region(benchmark: Benchmark) -> None:
    assert len(benchmark) == 2 * len(FEW)
    for sample in benchmark.samples:
        before, after, region = benchmark.previous(sample), benchmark.changed(sample), benchmark.roi(sample)
        assert (before == after)[~region].all()
        assert (before != after)[region].any()
        twin_id = sample.id.removesuffix("add") + "remove"
        if sample.id.endswith("-add"):
            np.testing.assert_array_equal(after, benchmark.previous(benchmark.sample(twin_id)))
            assert "synthetic ground truth" in sample.notes[0]
            assert not sample.image.synthetic
        else:
            assert sample.image.synthetic  # the finding before was rendered


def test_partial_benchmark_of_a_killed_process_is_made_again(tmp_path: Path) -> None:
    left = tmp_path / "benchmark.part" / "previous"
    left.mkdir(parents=True)
    (left / "half.png").write_bytes(b"cut short")
    made = demo_benchmark(tmp_path / "benchmark", FEW[:1])
    assert len(made) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["benchmark"]
    assert demo_benchmark(tmp_path / "benchmark", FEW).digest == made.digest  # existing samples are reused


@pytest.mark.slow
def test_exact_edit_beats_copying_on_accuracy_and_repainting_on_preservation(demo: Demo) -> None:
    assert demo.stopped is None
    assert mean(demo, "copy-input", "CP (strict)") == 1.0
    assert mean(demo, "copy-input", "EA") == 0.0
    assert mean(demo, "planted/exact", "CP (strict)") == 1.0
    assert mean(demo, "planted/exact", "EA") > 0.99
    assert mean(demo, "planted/repainted", "CP (strict)") < mean(demo, "jpeg-75", "CP (strict)") - 0.05
    assert mean(demo, "planted/half", "EA") == pytest.approx(0.5, abs=0.05)
    real = demo.table.cell("offline/procedural", OVERALL, "EA")
    assert real is not None
    assert real.estimate.n > 0
    assert [(one.metric, one.found) for one in demo.recoveries] == [("EA", True), ("CP (strict)", True)]


@pytest.mark.slow
def test_demo_writes_a_page_and_reuses_outputs(demo: Demo, folder: Path) -> None:
    page = demo.report.read_text(encoding="utf-8")
    assert "exact &gt; half &gt; faint &gt; copy-input: found." in page
    again = asyncio.run(bench_demo(folder, plan=FEW))
    assert again.report.read_bytes() == demo.report.read_bytes()
    with pytest.raises(InputError, match="is a benchmark's run; its page: plantain bench table "):
        make_report(folder / "run")
