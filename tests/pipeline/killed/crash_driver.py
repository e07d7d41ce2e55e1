"""Runs builds that are killed by SIGKILL right after their k-th durable event, each in a forked child.

Started as its own process: python crash_driver.py FOLDER FIRST LAST. Everything heavy is imported once and no
thread runs in the parent. Each k gets a folder with the run, the log of calls made before the kill and after it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from pipeline.quick import CallLog, quick_method, quick_recipe
from plantain.pipeline.run import run_build


def child(catalogue: Path, run: Path, log: Path, kill_at: int | None) -> int:
    recipe = quick_recipe(catalogue, findings=("AMD",))
    pid = os.fork()
    if pid == 0:

        def on_commit(events: int) -> None:
            if kill_at is not None and events >= kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(run_build(recipe, run, method=quick_method(CallLog(log)), on_commit=on_commit))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    folder, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    catalogue = folder / "catalogue"
    assert child(catalogue, folder / "undisturbed", folder / "undisturbed.log", None) == 0
    for k in range(first, last + 1):
        run = folder / f"killed-{k}"
        first_end = child(catalogue, run, folder / f"before-{k}.log", k)
        print(k, first_end, flush=True)
        sys.stdin.readline()  # the test looks at the wreck first
        assert child(catalogue, run, folder / f"after-{k}.log", None) == 0
        print("resumed", flush=True)


main()
