"""Every benchmark works at its smallest size; figures at that size say nothing. `fuzz` and `gpu` have own tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import skimage.data
from PIL import Image

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SMALLEST = {
    "admission": ("--no-loopback", "--kinds", "bucket"),
    "burned_in_text": ("--alarms", "."),
    "contact_sheet": ("--each", "1", "--finding", "Cataract", "--to", "sheets"),
    "export": ("--images", "4", "--rounds", "1", "--layout", "med-banana"),
    "faces": ("1",),
    "import_pairs": ("20", "--side", "64", "--originals", "2"),
    "import_time": (),
    "ingest": ("--images", "2"),
    "instrument_card": ("package", "--images", "3", "--findings-each", "1"),
    "interval_coverage": ("4", "rates"),
    "judge_gate": ("--seeds", "2", "--pictures", "30"),
    "metrics": (),
    "overhead": ("--tasks", "2", "--repeats", "1"),
    "plan_costs": (),
    "reader_studies": ("--studies", "4"),
    "restore_outside": ("--edits", "1"),
    "resume": ("--tasks", "60"),
    "sensitivity": ("--images", "52", "--only", "8 grey"),
    "throughput": ("--seconds", "0.05", "--batch", "1", "--side", "64"),
}


def test_no_benchmark_is_left_out() -> None:
    assert {path.stem for path in BENCHMARKS.glob("*.py")} == {*SMALLEST, "fuzz", "gpu", "run_all"}


@pytest.mark.parametrize("name", SMALLEST)
def test_benchmark_runs_at_its_smallest_size(name: str, tmp_path: Path) -> None:
    if name == "burned_in_text":
        pytest.importorskip("rapidocr")
        Image.fromarray(skimage.data.camera()[::2, ::2]).save(tmp_path / "camera.png")
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), *SMALLEST[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr  # 1: a target is missed
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout or any(tmp_path.iterdir())
