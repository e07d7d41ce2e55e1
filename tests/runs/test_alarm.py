"""The command that is called when a run stops: nobody waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RING = """
import sys
from pathlib import Path
from plantain.runs.alarm import Alarm

Alarm(["sh", "-c", 'while [ -e "$0" ]; do sleep 0.05; done', sys.argv[1]], Path("run")).ring("why")
"""


def test_a_command_that_hangs_keeps_no_pipe_open(tmp_path: Path) -> None:
    """As in `plantain build ... 2>&1 | tee log`: whoever reads would wait for the command as long as for the run."""
    hanging = tmp_path / "hanging"
    hanging.touch()
    try:
        done = subprocess.run(
            [sys.executable, "-c", RING, str(hanging)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        hanging.unlink()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
