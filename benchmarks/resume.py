"""Time and memory from the start of a process to its first new call, when a large run is resumed.

Nine in ten tasks are closed. Every figure is a whole process, the median of three; the peer is a process that imports
numpy and pydantic and does nothing.
Targets: at most 1 s at 100,000 tasks, 3 s at 1,000,000; at most 300 MB resident.

Run: python benchmarks/resume.py [--tasks 100000 1000000]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from plantain.journal import Journal
from plantain.pipeline.recipe import Method
from plantain.pipeline.run import run_build
from plantain.records import TaskState
from plantain.roles import Reply, WriteRequest
from plantain.rubrics import MED_BANANA
from simulated.million import Simulated, make_catalogue, recipe_for

REPEATS = 3


class First(Simulated):
    """Print the time and the peak memory (MiB) at the first call, and end the process."""

    async def write(self, request: WriteRequest) -> Reply[str]:
        print(time.time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)
        os._exit(0)


def build(folder: Path, limit: int | None) -> None:
    """Begin or resume the run in `folder`."""
    model = First([])
    method = Method(model, model, (model,), MED_BANANA, "all-pass", 0.7, 2, 0)
    recipe = recipe_for(folder / "catalogue")
    asyncio.run(run_build(recipe, folder / "run", method=method, limit=limit))


def make_run(folder: Path, tasks: int) -> None:
    """A planned run of which nine tasks in ten are closed."""
    make_catalogue(folder / "catalogue", tasks)
    build(folder, limit=0)
    asyncio.run(close_most(folder / "run"))


async def close_most(run: Path) -> None:
    """Close nine tasks in ten."""
    async with await asyncio.to_thread(Journal.open, run) as journal:
        ids = [row.task.id for row in journal.reader.tasks()]
        for start in range(0, len(ids) * 9 // 10, 1000):
            chunk = ids[start : min(start + 1000, len(ids) * 9 // 10)]
            await asyncio.gather(*(journal.close_task(i, TaskState.SUCCESS, 1, "") for i in chunk))


def seconds_of(command: Sequence[str]) -> tuple[float, str]:
    """Return the seconds that a process took, and its output."""
    started = time.monotonic()
    done = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True)
    return time.monotonic() - started, done.stdout


def measure(folder: Path) -> tuple[float, float]:
    """Return the seconds to the first call, and peak MiB."""
    started = time.time()
    _, printed = seconds_of([__file__, "--resume", str(folder)])
    at, peak = map(float, printed.split())
    return at - started, peak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.resume:
        build(args.resume, limit=None)
        return 1
    peer = statistics.median(seconds_of(["-c", "import numpy, pydantic"])[0] for _ in range(REPEATS))
    print(f"peer, a process that imports numpy and pydantic: {peer:.2f} s")
    good = True
    for tasks in args.tasks:
        with tempfile.TemporaryDirectory(prefix="plantain-bench-") as name:
            make_run(Path(name), tasks)
            measured = [measure(Path(name)) for _ in range(REPEATS)]
        seconds = statistics.median(s for s, _ in measured)
        peak = max(p for _, p in measured)
        allowed = 1.0 if tasks <= 100_000 else 3.0
        good &= seconds <= allowed and peak <= 300
        print(
            f"plantain, {tasks:>9,} tasks, nine in ten closed: first new call after {seconds:.2f} s "
            f"({seconds / peer:.1f}x the peer; target {allowed:g} s), peak {peak:.0f} MiB (target 300)"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
