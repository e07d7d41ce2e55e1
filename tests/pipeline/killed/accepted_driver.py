"""Runs a build that asks for accepted edits, killed by SIGKILL after each 12th durable event, and resumes each.

Started as its own process: python accepted_driver.py FOLDER. Prints each run's name and how its first process ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from pipeline.quick import CallLog, quick_method, quick_recipe
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build

ACCEPTED, STEP = 4, 12


def run(catalogue: Path, folder: Path, kill_at: int | None = None) -> int:
    """Build; return the number of durable events."""
    seen = 0

    def on_commit(events: int) -> None:
        nonlocal seen
        seen = events
        if kill_at is not None and events >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    recipe = quick_recipe(catalogue, findings=("AMD",)).model_dump()
    recipe["data"] |= {"accepted_per_finding": ACCEPTED}
    method = quick_method(CallLog(None), max_rounds=1)
    asyncio.run(run_build(Recipe.model_validate(recipe), folder, method=method, on_commit=on_commit))
    return seen


def child(catalogue: Path, folder: Path, kill_at: int | None = None) -> int:
    pid = os.fork()
    if pid == 0:
        run(catalogue, folder, kill_at)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    folder = Path(sys.argv[1])
    catalogue = folder / "catalogue"
    events = run(catalogue, folder / "undisturbed")
    for k in range(STEP // 2, events - 2, STEP):
        end = child(catalogue, folder / f"killed-{k}", k)
        assert child(catalogue, folder / f"killed-{k}") == 0
        print(f"killed-{k}", end, flush=True)


main()
