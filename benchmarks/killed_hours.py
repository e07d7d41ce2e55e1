"""Real processes that write to runs and are killed with -9: what `limits.max_hours` counts, beside a clock outside.

Promised: within 1 % and one second a kill. (`tests/runs/test_hours.py` does the same in simulated time.)

Run: python benchmarks/killed_hours.py [--kills 200] [--runs 4]
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plantain.journal import JournalReader
from plantain.journal.money import seconds_worked

PROCESS = """
import asyncio, pathlib, random, sys
from plantain.journal import Journal, RunHeader

async def work(run):
    journal = Journal.open(run) if run.exists() else Journal.create(run, RunHeader("r", "r", 1, {}, "0"))
    print("open", flush=True)
    while True:
        await asyncio.sleep(random.uniform(0.0, 0.6))
        await journal.set_meta("any", str(random.random()))

asyncio.run(work(pathlib.Path(sys.argv[1])))
"""


def kill_again_and_again(run: Path, kills: int, seed: int) -> tuple[float, float]:
    """Seconds by the clock outside, from a journal's opening to the kill, and seconds as counted in the run."""
    rng, worked = random.Random(seed), 0.0
    for _ in range(kills):
        with subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(run)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == "open\n"
            begun = time.monotonic()
            time.sleep(rng.uniform(0.0, 4.0))
            process.kill()
            process.wait()
            worked += time.monotonic() - begun
    with JournalReader.open(run) as reader:
        return worked, seconds_worked(reader)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--runs", type=int, default=4, help="at the same time")
    options = parser.parse_args()
    each = options.kills // options.runs
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(options.runs) as pool:
        folders = [Path(made) / f"run-{number}" for number in range(options.runs)]
        told = list(pool.map(kill_again_and_again, folders, [each] * options.runs, range(options.runs)))
    good = True
    for worked, counted in told:
        within = abs(counted - worked) <= 0.01 * worked + each
        good &= within
        print(
            f"{each} kills: {worked:.1f} s worked, {counted:.1f} s counted, {(counted - worked) / each:+.2f} s a kill "
            f"({'within' if within else 'OUTSIDE'} 1 % and 1 s a kill)"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
