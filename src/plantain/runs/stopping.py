"""Who may stop a run: Ctrl-C by default; for a Python caller the cancellation of what it awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class StopSwitch:
    """Stops a run gently from code, as the first Ctrl-C does: calls in flight finish and are recorded."""

    def __init__(self) -> None:
        self.asked = False
        self._stops: list[Callable[[], None]] = []

    def ask(self) -> None:
        """No new call from now on; a run that begins later stops at once. From the run's own event loop."""
        self.asked = True
        for stop in self._stops:
            stop()

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """Within the block `ask` calls `stop`."""
        self._stops.append(stop)
        if self.asked:
            stop()
        try:
            yield
        finally:
            self._stops.remove(stop)


switch_in_place: ContextVar[StopSwitch | None] = ContextVar("switch_in_place", default=None)
"""The switch of the run at hand; without one a run listens to signals."""


async def stoppable(work: Coroutine[Any, Any, T]) -> T:
    """Awaits a run that listens to no signals.

    Cancelled once, it stops the run gently and then raises CancelledError; cancelled again, it stops at once, and
    calls in flight stay open, as after a kill. The journal is whole either way.
    """
    switch = StopSwitch()
    before = switch_in_place.set(switch)
    try:
        task = asyncio.create_task(work)
    finally:
        switch_in_place.reset(before)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        switch.ask()
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                task.cancel()
        if not task.cancelled():
            task.exception()  # looked at: the caller hears of the cancellation only
        raise
