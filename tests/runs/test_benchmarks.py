"""Every benchmark of runs, calls and engines works at its smallest size; figures at that size say nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALLEST = {
    "admission": ("--no-loopback", "--kinds", "bucket"),
    "bursts": ("--images", "2"),
    "engine_overhead": ("--edits", "4", "--tasks", "6"),
    "head_ceiling": ("--workers", "1", "--seconds", "2"),
    "killed_hours": ("--kills", "1", "--runs", "1"),
    "resume": ("--tasks", "60"),
    "simulated_day": ("--days", "1"),
    "soak": ("--tasks", "6"),
}


@pytest.mark.parametrize("name", SMALLEST)
def test_benchmark_runs_at_its_smallest_size(name: str, tmp_path: Path) -> None:
    if name == "engine_overhead":
        pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), *SMALLEST[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr  # 1: a target is missed
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout
