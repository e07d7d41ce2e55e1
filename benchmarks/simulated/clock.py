"""An event loop whose clock jumps to the next timer: the real code runs through hours in seconds.

Work in threads (the journal's, an executor's) takes no simulated time: while any is under way, the clock waits.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing: instead of sleeping until the next timer, it moves the clock there."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.real = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        waits = timeout is None or timeout > 0
        ready = super().select((0.02 if self.real else 0) if waits else timeout)
        if self.real:
            return ready
        if not ready and timeout is None:
            raise RuntimeError("nothing will ever happen: every coroutine waits for another")
        if not ready and timeout:
            self.now += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop in simulated seconds, beginning at 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """The clock waits while a thread works."""
        self._jumping.real += 1
        try:
            yield
        finally:
            self._jumping.real -= 1

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """As always, with the clock standing still until the thread is done."""
        future = super().run_in_executor(executor, func, *args)
        self._jumping.real += 1

        def done(_: object) -> None:
            self._jumping.real -= 1

        future.add_done_callback(done)
        return future

    async def shutdown_default_executor(self, *args: Any, **named: Any) -> None:
        """As always; its threads end in real time."""
        with self.standing_still():
            await super().shutdown_default_executor(*args, **named)


def run_simulated(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
