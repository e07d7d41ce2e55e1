"""Work that leaves no trace, so that it may be repeated: a lost worker costs only the time to ask another one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar, cast

from plantain.engines.cluster import RayEngine
from plantain.engines.contract import WorkEngine
from plantain.records import InputError

P = ParamSpec("P")
T = TypeVar("T")

LOST_IN_A_ROW = 10
"""Workers that may be lost with one piece of work, as many as a call may lose."""


class NoWorkers(InputError):
    """No worker can do the work: a fault of the engine, not of its input file."""


async def repeated(
    engine: WorkEngine, role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return a module-level function's result on a worker of a role; repeat it if the worker was lost.

    Raises:
        NoWorkers: there will be no worker, or so many were lost with this piece of work that it must be the reason.
    """
    assert not kwargs, "a worker takes positional arguments"
    lost = ""
    for _ in range(LOST_IN_A_ROW):
        ran = await engine.run(role, function, args)
        if ran.broken:
            raise NoWorkers(ran.broken)
        if not ran.lost:
            return cast(T, ran.value)
        lost = ran.lost
    raise NoWorkers(
        f"{LOST_IN_A_ROW} workers in a row were lost with the same piece of work; the last: {lost}"
    )


class EngineThread:
    """An engine for the threads of a program without an event loop: its own loop runs in a thread.

    Attributes:
        room: workers that it is to have.
    """

    def __init__(self, engine: WorkEngine, loop: asyncio.AbstractEventLoop, room: int) -> None:
        self._engine, self._loop, self.room = engine, loop, room

    def run(self, role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same as `repeated`, blocking. Exceptions of the function are raised here."""
        asked = repeated(self._engine, role, function, *args, **kwargs)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()


@contextmanager
def engine_thread(engine: RayEngine) -> Iterator[EngineThread]:
    """Open an engine for the block. Raise InputError if the cluster cannot be reached or Ray is not installed."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="engine", daemon=True)
    thread.start()
    try:
        engine.open()
        yield EngineThread(engine, loop, engine.room)
    finally:
        asyncio.run_coroutine_threadsafe(engine.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
