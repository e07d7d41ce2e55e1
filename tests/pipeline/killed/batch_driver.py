"""Builds in batch jobs that are killed by SIGKILL, each in a forked child, so that everything is imported once.

Started as its own process: python batch_driver.py CATALOGUE RUN URL FORM. For every line on stdin, a number of durable
events, it starts a child that is killed after so many (0: never), and prints the child's pid and then how it ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import plantain.models.hosted.gemini.batch
import plantain.models.hosted.openai.batch  # noqa: F401
from pipeline.batched import recipe
from pipeline.wrecks import hear_events
from plantain.models.hosted.prompts import PromptLibrary
from plantain.pipeline.run import run_build


def main() -> None:
    catalogue, run, url, form = sys.argv[1:]
    made = recipe(Path(catalogue), url, form, rounds=2, limits={"budget_usd": 50.0})
    PromptLibrary()  # read once, by the parent
    for line in sys.stdin:
        kill_at = int(line)

        def die(events: int, kill_at: int = kill_at) -> None:
            if kill_at and events >= kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        pid = os.fork()
        if pid == 0:
            hear_events(die)
            summary = asyncio.run(run_build(made, Path(run)))
            os._exit(0 if summary.stopped is None else 1)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


main()
