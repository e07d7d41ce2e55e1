"""Runs builds that are killed by SIGKILL right after their k-th durable event, each in a forked child.

Started as its own process: python crash_driver.py FOLDER FIRST LAST. Everything heavy is imported once, every edit is
drawn once, and no thread runs in the parent. Each k gets a folder with the run, the log of calls made before the kill
and after it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from pipeline.quick import CallLog, quick_method, quick_recipe
from plantain.pipeline.run import run_build


def run(catalogue: Path, folder: Path, log: Path, kill_at: int | None = None) -> None:
    def on_commit(events: int) -> None:
        if kill_at is not None and events >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    recipe = quick_recipe(catalogue, findings=("AMD",))
    asyncio.run(run_build(recipe, folder, method=quick_method(CallLog(log)), on_commit=on_commit))


def child(catalogue: Path, folder: Path, log: Path, kill_at: int | None = None) -> int:
    pid = os.fork()
    if pid == 0:
        run(catalogue, folder, log, kill_at)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    folder, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    catalogue = folder / "catalogue"
    run(catalogue, folder / "undisturbed", folder / "undisturbed.log")
    for k in range(first, last + 1):
        killed = folder / f"killed-{k}"
        first_end = child(catalogue, killed, folder / f"before-{k}.log", k)
        print(k, first_end, flush=True)
        sys.stdin.readline()  # the test looks at the wreck first
        assert child(catalogue, killed, folder / f"after-{k}.log") == 0
        print("resumed", flush=True)


main()
