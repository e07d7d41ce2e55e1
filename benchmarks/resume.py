"""How fast a run goes on: from process start to the first new call, and the memory that it takes, at many tasks.

The peer is a process that does nothing but import numpy and pydantic; every figure is a whole process.
Targets: at most 1 s at 100,000 tasks, 3 s at 1,000,000; at most 300 MB resident.

Run: python benchmarks/resume.py [--tasks 100000 1000000]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from plantain.journal import Journal, RunHeader
from plantain.pixels.encode import encode_source
from plantain.records import TaskState
from simulated.pictures import edit_tasks, photograph, source_image

RESUME = """
import asyncio, resource, sys, time
from pathlib import Path
from plantain.pipeline.walk import Walk
from plantain.calls import Bounded, ModelClient
from plantain.findings import load_taxonomy
from plantain.journal import Journal
from plantain.pipeline.rounds import Method
from plantain.rubrics import MED_BANANA
from plantain.catalogue.store import Catalogue
import os

class First:
    name, fingerprint = "first/call", "1"
    async def write(self, request):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(time.time(), peak, flush=True)
        os._exit(0)

async def main(run):
    journal = Journal.open(run)
    first = First()
    method = Method(first, first, (first,), MED_BANANA, "all-pass", 0.7, 5, 1)
    catalogue = Catalogue.open(run.parent / "catalogue")
    walk = Walk(method, journal, catalogue, load_taxonomy(), WorkerPool(ModelClient(journal, Bounded(1))))
    await walk.all(1, None)

asyncio.run(main(Path(sys.argv[1])))
"""


async def make_run(run: Path, tasks: int) -> None:
    """A run of `tasks` tasks of which nine in ten are closed."""
    journal = Journal.create(run, RunHeader("bench", "bench", 1, {}, "0"))
    try:
        blob = journal.put_blob(encode_source(photograph()), "image/jpeg")
        await journal.add_images([(source_image(blob.sha256), blob)])
        await journal.add_tasks(edit_tasks(tasks))
        ids = [row.task.id for row in journal.reader.tasks()]
        for start in range(0, len(ids) * 9 // 10, 1000):
            chunk = ids[start : start + 1000]
            await asyncio.gather(*(journal.close_task(i, TaskState.SUCCESS, 1, "") for i in chunk))
    finally:
        await journal.close()


def seconds_to_first_call(run: Path) -> tuple[float, float]:
    begun = time.time()
    done = subprocess.run(
        [sys.executable, "-c", RESUME, str(run)], capture_output=True, text=True, check=True
    )
    at, peak = map(float, done.stdout.split())
    return at - begun, peak


def seconds_to_import_peer() -> float:
    begun = time.time()
    subprocess.run([sys.executable, "-c", "import numpy, pydantic"], check=True, env=os.environ)
    return time.time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[100_000, 1_000_000])
    args = parser.parse_args()
    peer = statistics.median(seconds_to_import_peer() for _ in range(5))
    print(f"peer, a process that imports numpy and pydantic: {peer:.2f} s")
    good = True
    for tasks in args.tasks:
        with tempfile.TemporaryDirectory(prefix="plantain-bench-") as name:
            from plantain.catalogue.store import Catalogue

            Catalogue.create(Path(name) / "catalogue").close()
            run = Path(name) / "run"
            asyncio.run(make_run(run, tasks))
            measured = [seconds_to_first_call(run) for _ in range(5)]
        seconds = statistics.median(s for s, _ in measured)
        peak = max(p for _, p in measured)
        allowed = 1.0 if tasks <= 100_000 else 3.0
        good &= seconds <= allowed and peak <= 300
        print(
            f"plantain, {tasks:>9,} tasks, nine in ten closed: first new call after {seconds:.2f} s "
            f"({seconds / peer:.1f}x the peer; target {allowed:g} s), peak {peak:.0f} MB (target 300 MB)"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
