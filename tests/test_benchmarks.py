"""Every benchmark works at its smallest size; its numbers have no meaning then. `fuzz` and `gpu` have own tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import skimage.data
from PIL import Image

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SMALLEST = {
    "admission": ("--no-loopback", "--kinds", "bucket", "--longest", "70"),
    "burned_in_text": ("--alarms", "."),
    "contact_sheet": ("--each", "1", "--finding", "Cataract", "--to", "sheets"),
    "export": ("--images", "4", "--rounds", "1", "--layout", "med-banana"),
    "faces": ("1",),
    "import_pairs": ("20", "--side", "64", "--originals", "2"),
    "import_time": (),
    "ingest": ("--images", "1"),
    "instrument_card": ("package", "--images", "1", "--findings-each", "1"),
    "interval_coverage": ("4", "rates"),
    "judge_gate": ("--seeds", "2", "--images", "30"),
    "metrics": ("64", "60"),
    "overhead": ("--tasks", "2", "--repeats", "1", "--short", "1"),
    "plan_costs": ("20",),
    "reader_studies": ("--studies", "4"),
    "restore_outside": ("--edits", "1", "--ways", "all"),
    "resume": ("--tasks", "60"),
    "sensitivity": ("--images", "52", "--only", "8 grey"),
    "throughput": ("--seconds", "0.05", "--side", "64"),
}


def test_no_benchmark_is_left_out() -> None:
    assert {path.stem for path in BENCHMARKS.glob("*.py")} == {*SMALLEST, "fuzz", "gpu", "run_all"}


STARTER = """
import json, os, runpy, sys
sys.path.insert(0, sys.argv[1])
import plantain.audit.clean, plantain.bench.generate.generate, plantain.offline.judge, plantain.pipeline.run
import plantain.release.export, skimage.data, skimage.metrics
for line in sys.stdin:
    folder, *words = json.loads(line)
    if (child := os.fork()) == 0:
        for number in (1, 2):
            os.dup2(os.open(f"{folder}/{number}.txt", os.O_WRONLY | os.O_CREAT), number)
        os.chdir(f"{folder}/here")
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def starter() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported the modules of most scripts and forks once for each: imports take longest."""
    command = [sys.executable, "-c", STARTER, str(BENCHMARKS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


@pytest.mark.parametrize("name", SMALLEST)
def test_benchmark_runs_at_its_smallest_size(
    name: str, starter: subprocess.Popen[str], tmp_path: Path
) -> None:
    (here := tmp_path / "here").mkdir()
    if name == "burned_in_text":
        pytest.importorskip("rapidocr")
        Image.fromarray(skimage.data.camera()[::2, ::2]).save(here / "camera.png")
    assert starter.stdin is not None and starter.stdout is not None
    words = [str(tmp_path), str(BENCHMARKS / f"{name}.py"), *SMALLEST[name]]
    print(json.dumps(words), file=starter.stdin, flush=True)
    code = int(starter.stdout.readline())
    printed, errors = ((tmp_path / f"{number}.txt").read_text() for number in (1, 2))
    assert code in (0, 1), errors  # 1: a target is missed
    assert "Traceback" not in errors, errors
    assert printed or any(here.iterdir())
