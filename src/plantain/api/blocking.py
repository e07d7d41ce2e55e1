"""Running a coroutine from plain code: in a script, in a thread, or while an event loop runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from plantain.runs.open_run import stoppable

T = TypeVar("T")


def finished(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run what `begin` returns to its end.

    If this thread already runs an event loop, as in a notebook, another thread does it. There the first interrupt stops
    the run gracefully, a second one at once; KeyboardInterrupt is raised when it has stopped.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    with ThreadPoolExecutor(1, "plantain-run") as pool:
        return _in_thread(begin, pool)


def _in_thread(begin: Callable[[], Coroutine[Any, Any, T]], pool: ThreadPoolExecutor) -> T:
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()

    async def work() -> T:
        task = asyncio.create_task(stoppable(begin()))
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    ended = pool.submit(asyncio.run, work())
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            return ended.result()
        except asyncio.CancelledError:
            if interrupt is None:
                raise
            raise interrupt from None
        except KeyboardInterrupt as again:
            interrupt = again
            loop, task = started.result()
            with contextlib.suppress(RuntimeError):  # it has just ended by itself
                loop.call_soon_threadsafe(task.cancel)
