"""How long a run has worked, over processes that ended, were killed, or saw the clock jump."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from plantain.journal import Journal, JournalReader


def test_process_that_is_killed_while_nothing_happens_counts(tmp_path: Path) -> None:
    program = (
        "import asyncio, pathlib, sys, time\n"
        "from plantain.journal import Journal, RunHeader\n"
        "journal = Journal.create(pathlib.Path(sys.argv[1]), RunHeader('r', 'r', 1, {}, '0'))\n"
        "print('open', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        begun = time.monotonic()
        time.sleep(2.5)
        process.kill()
        worked = time.monotonic() - begun
    journal = Journal.open(tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        assert worked - 1.5 <= reader.seconds_worked() <= worked + 1.5
    asyncio.run(journal.close())
