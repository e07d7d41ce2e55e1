"""A program that ends just when it is to be ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import psutil

from plantain.models.process.program import Program
from plantain.models.process.settings import WorkerCommand


def test_a_program_that_has_just_ended_is_closed_without_an_error() -> None:
    async def ended_unseen() -> None:
        program = Program("process/brief", WorkerCommand(command=(sys.executable, "-c", "input()")))
        process = await program._running()
        os.kill(process.pid, signal.SIGKILL)
        while psutil.pid_exists(process.pid):
            time.sleep(0.01)  # noqa: ASYNC251  # not a turn for the loop: it has not heard of the end
        assert process.returncode is None
        await program.close(at_once=True)
        assert process.returncode == -signal.SIGKILL

    asyncio.run(ended_unseen())
