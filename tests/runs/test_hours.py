"""How long a run has worked, over processes that ended, were killed, or saw the clock jump."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plantain.journal import Journal, JournalReader, RunHeader
from plantain.journal.money import seconds_worked

KILLS = 200


class Clock:
    """What `time.monotonic` says in the journal; the day's clock goes back by an hour now and then."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def work_and_be_killed(run: Path, clock: Clock, seconds: float) -> None:
    """A process that idles and is killed: nothing is said at its end."""
    journal = Journal.open(run)
    begun = clock.now
    while clock.now < begun + seconds:
        clock.now = min(begun + seconds, clock.now + 0.45)
        await journal.set_meta(
            "any", str(clock.now)
        )  # the beat comes behind a commit, or by itself when idle
    journal.reader.close()
    journal._committer.close(lambda connection: None)
    journal._lock.release()


@pytest.mark.slow
def test_two_hundred_killed_processes_count_to_one_per_cent_and_a_second_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, rng = Clock(), random.Random(7)
    asyncio.run(Journal.create(tmp_path / "run", RunHeader("r", "r", 1, {}, "0")).close())
    monkeypatch.setattr("plantain.journal.writer.time.monotonic", clock)
    worked = 0.0
    for _ in range(KILLS):
        seconds = rng.uniform(0.0, 3.0)
        asyncio.run(work_and_be_killed(tmp_path / "run", clock, seconds))
        worked += seconds
    monkeypatch.undo()
    journal = Journal.open(tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        counted = seconds_worked(reader)
    asyncio.run(journal.close())
    print(f"{counted:.1f} s counted of {worked:.1f} s")
    assert worked - KILLS * 1.0 - 0.01 * worked <= counted <= worked * 1.01 + KILLS


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
        assert worked - 1.5 <= seconds_worked(reader) <= worked + 1.5
    asyncio.run(journal.close())
