"""Sending a run's tasks through a coroutine, several at once, until they are done or something stops the run."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from plantain.calls import Interrupted, LimitReached, ModelClient, RunHalted
from plantain.journal import BadBlob, DiskFull, JournalReader
from plantain.runs.money.spending import seconds_left
from plantain.runs.settings.terms import Limits
from plantain.runs.stopping import switch_in_place

T = TypeVar("T")


@dataclass(slots=True)
class WorkerPool:
    """Those who carry tasks through, and what stopped them.

    Attributes:
        client: through which the tasks' calls go.
        halted: why no new call is made; None while nothing has stopped the run.
        faulty: something is wrong, rather than used up.
        on_waiting: told why nothing goes on: a model answers nobody, or only answers in batch jobs are still to come.
    """

    client: ModelClient
    halted: str | None = None
    faulty: bool = False
    on_waiting: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self.client.on_waiting = self.on_waiting

    async def all(
        self, tasks: Iterable[T], carry: Callable[[T], Awaitable[None]], concurrency: int, limit: int | None
    ) -> None:
        """Carries each task, at most `limit` of them, `concurrency` at once; returns when done or stopped."""
        pending = self._until_stopped(tasks, limit)
        try:
            await together(self._walk(pending, carry) for _ in range(concurrency))
        finally:
            self.client.admission.rest()

    def _until_stopped(self, tasks: Iterable[T], limit: int | None) -> Iterator[T]:
        for taken, task in enumerate(tasks):
            if taken == limit or self.client.stop_requested:
                return
            yield task

    async def _walk(self, pending: Iterator[T], carry: Callable[[T], Awaitable[None]]) -> None:
        for task in pending:
            try:
                await carry(task)
            except Interrupted:
                return
            except LimitReached as reached:
                self.halt(str(reached), faulty=False, wait_for_jobs=True)
                return
            except (RunHalted, BadBlob) as fault:
                self.halt(str(fault), faulty=True)
                return
            except DiskFull as full:
                self.halt(str(full), faulty=False)
                return

    def halt(self, why: str, *, faulty: bool, wait_for_jobs: bool = False) -> None:
        """No new call from now on; tasks that need one stay pending."""
        first = self.halted is None
        self.halted, self.faulty = why, faulty
        if first and wait_for_jobs and self.on_waiting is not None and self.client.unhurried:
            self.on_waiting(why)
        self.client.request_stop(wait_for_jobs=wait_for_jobs)


async def together(walkers: Iterable[Coroutine[None, None, None]]) -> None:
    """Awaits them all. What the first that fails raises ends the others and is raised here, as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for walker in walkers:
                group.create_task(walker)
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None


@asynccontextmanager
async def time_cap(limits: Limits, reader: JournalReader, pool: WorkerPool) -> AsyncIterator[None]:
    """Halts the pool when the run's hours are used up."""
    seconds = seconds_left(limits, reader)
    if seconds is None:
        yield
        return
    why = f"limits.max_hours = {limits.max_hours:g}: used up; raise limits.max_hours to go on"
    timer = asyncio.get_running_loop().call_later(max(0.0, seconds), partial(pool.halt, why, faulty=False))
    if seconds <= 0:
        pool.halt(why, faulty=False)
    try:
        yield
    finally:
        timer.cancel()


@asynccontextmanager
async def interruptible(client: ModelClient, on_stopping: Callable[[], None]) -> AsyncIterator[None]:
    """First Ctrl-C (or TERM): finish what is in flight. Second: stop at once; the journal is whole at any instant.

    Where a Python caller holds a `StopSwitch`, that alone stops the run, and no signal handler is installed.
    """
    switch = switch_in_place.get()
    if switch is not None:
        with switch.stopping(client.request_stop):
            yield
        return
    loop = asyncio.get_running_loop()
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            os._exit(3)
        asked = True
        client.request_stop()
        on_stopping()

    signals = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in signals:
            loop.add_signal_handler(number, stop)
    except (RuntimeError, ValueError):  # not in the main thread: whoever runs us handles signals
        yield
        return
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
