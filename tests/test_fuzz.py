"""Two seconds of damaged files through every parser; `benchmarks/fuzz.py` runs as long as requested."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "fuzz.py"


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--minutes", "0.05", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, done.stderr[-2000:])
    assert done.returncode == 0, done.stdout
