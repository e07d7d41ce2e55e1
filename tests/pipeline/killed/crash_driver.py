"""Runs builds that are killed by SIGKILL right after their k-th durable event, each in a forked child.

Started as its own process: python crash_driver.py FOLDER ACCEPTED TURNS K..., where ACCEPTED is the number of accepted
edits that the builds ask for, or 0. Everything heavy is imported once, every edit is drawn once, and no thread runs in
the parent. Each k gets a folder with the run, and logs of calls before the kill and after it. An edit costs `EDIT_USD`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from pipeline.quick import CallLog, QuickEditor, quick_method, quick_recipe
from pipeline.wrecks import LIMITS, PRICED, hear_events
from plantain.pipeline.run import run_build
from plantain.records import Usage
from plantain.roles import EditedImage, EditRequest, Reply


class Billed(QuickEditor):
    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        reply = await super().edit(request)
        return replace(reply, usage=Usage(input_tokens=0, images=int(reply.outcome.ok)))


FOLDER, ACCEPTED, TURNS = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def run(folder: Path, log: Path, kill_at: int | None = None) -> None:
    def die(events: int) -> None:
        if kill_at is not None and events >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    data = {"accepted_per_finding": ACCEPTED} if ACCEPTED else {}
    catalogue, findings = FOLDER / "catalogue", ("AMD", "Cataract")[:TURNS]
    recipe = quick_recipe(catalogue, findings=findings, data=data, limits=LIMITS, parts=PRICED, turns=TURNS)
    method = quick_method(CallLog(log), max_rounds=1 if ACCEPTED else 3)
    method = replace(method, editor=Billed(CallLog(log)))
    hear_events(die)
    asyncio.run(run_build(recipe, folder, method=method))


def child(folder: Path, log: Path, kill_at: int | None = None) -> int:
    pid = os.fork()
    if pid == 0:
        run(folder, log, kill_at)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    run(FOLDER / "undisturbed", FOLDER / "undisturbed.log")
    for k in map(int, sys.argv[4:]):
        killed = FOLDER / f"killed-{k}"
        print(child(killed, FOLDER / f"before-{k}.log", k), flush=True)
        sys.stdin.readline()  # the test looks at the wreck first
        print(child(killed, FOLDER / f"after-{k}.log"), flush=True)


main()
