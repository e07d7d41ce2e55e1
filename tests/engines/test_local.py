"""This machine's worker processes leave signals to their parent, and their death is reported."""

from __future__ import annotations

import asyncio
import os
import signal

from plantain.engines.local import LocalEngine


def test_sigterm_to_the_group_loses_no_work_and_a_kill_is_reported() -> None:
    """`timeout` and Slurm send SIGTERM to every process of a group: workers, and the fork server they come from."""

    async def ended_by(number: int) -> tuple[int, int | None, str]:
        worker = (await engine.run("judge", os.getpid, ())).value
        server = (await engine.run("judge", os.getppid, ())).value
        assert worker is not None and server not in (None, os.getpid())
        if number == signal.SIGTERM:
            os.kill(server or 0, number)
        os.kill(worker, number)
        again = await engine.run("judge", os.getpid, ())
        while number == signal.SIGKILL and not again.lost:  # until the pool has noticed
            again = await engine.run("judge", os.getpid, ())
        return worker, again.value, again.lost

    engine = LocalEngine()
    engine._cores = 1
    try:
        worker, after, lost = asyncio.run(ended_by(signal.SIGTERM))
        assert (after, lost) == (worker, "")
        _, after, lost = asyncio.run(ended_by(signal.SIGKILL))
        assert after is None and "died" in lost
        assert asyncio.run(engine.run("judge", os.getpid, ())).value not in (None, worker)
    finally:
        engine.close()
