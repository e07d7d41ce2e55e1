"""An open run: processes its tasks concurrently until they are done or something stops it; keeps images in memory."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeVar

from plantain.calls import Interrupted, LimitReached, ModelClient, RunHalted, TaskCalls
from plantain.journal import BadBlob, DiskFull, Journal, JournalReader
from plantain.records import TaskState
from plantain.roles import EncodedImage
from plantain.runs.progress import ProgressObserver, RunSummary
from plantain.runs.settings_file import Limits
from plantain.runs.terms import Terms, seconds_left, tasks_at_once

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end of a job's time, and the end of the terminal, e.g. of an ssh session: calls in flight finish."""


@dataclass(slots=True)
class OpenRun:
    """A run opened for model calls by `RunSetup.open`.

    Attributes:
        terms, journal, client, observer: those of the run.
        in_jobs: True if some calls are sent in batch jobs.
        summary: results of this process; complete when the run is closed.
        pending: returns True if tasks are left; called when the run ends.
        halted: why no new call is made; None while nothing has stopped the run.
        faulty: True if halted by a fault, not by a limit.
    """

    terms: Terms
    journal: Journal
    client: ModelClient
    observer: ProgressObserver
    in_jobs: bool = False
    summary: RunSummary = field(default_factory=RunSummary)
    pending: Callable[[], bool] | None = None
    halted: str | None = None
    faulty: bool = False

    @property
    def stopping(self) -> bool:
        """True if a stop was requested: no new call is made."""
        return self.client.stop_requested

    def calls(self, task_id: str, generation: int) -> TaskCalls:
        """Return an object that makes the calls of a task: recorded answers are replayed, others requested."""
        recorded = self.journal.reader.calls(task_id, generation)
        return TaskCalls(self.client, task_id, generation, recorded)

    def planned(self, counts: dict[TaskState, int], pending: Callable[[], bool]) -> None:
        """Report the number of tasks by state before the first call; `pending` returns True if any is left."""
        self.pending = pending
        self.summary.planned = sum(counts.values())
        self.observer.planned(self.summary.planned, counts, self.client.admission.budget)
        if self.in_jobs:
            self.observer.jobs(lambda: self.client.admission.in_jobs)

    async def walk(
        self,
        tasks: Iterable[T],
        carry: Callable[[T], Awaitable[None]],
        *,
        limit: int | None = None,
        at_once: int | None = None,
    ) -> None:
        """Await `carry` for up to `limit` tasks, `at_once` in parallel; return when done or stopped."""
        pending = self._until_stopped(tasks, limit)
        await together(self._carry_all(pending, carry) for _ in range(at_once or tasks_at_once(self.terms)))

    async def close_task(self, task_id: str, state: TaskState, steps: int, reason: str = "") -> None:
        """Close a task in the journal after so many `steps` (rounds, or outputs), count it and report it."""
        await self.journal.close_task(task_id, state, steps, reason)
        self.summary.closed[state] += 1
        self.observer.closed(state, steps)

    def halt(self, why: str, *, faulty: bool = True, wait_for_jobs: bool = False) -> None:
        """Stop the run: no new call is made, `why` is the summary's reason, and unfinished tasks stay pending.

        `faulty` is False for a limit that was reached; with `wait_for_jobs`, batch jobs that were sent are awaited.
        """
        first = self.halted is None
        self.halted, self.faulty = why, faulty
        if first and wait_for_jobs and self.client.unhurried:
            self.observer.waiting(why)
        self.client.request_stop(wait_for_jobs=wait_for_jobs)

    def sum_up(self) -> None:
        """Set calls, cost and the reason to stop in the summary, at the end of the run."""
        done = self.summary
        done.made, done.replayed = self.client.made, self.client.replayed
        done.spent_usd = self.journal.reader.spent_usd()
        done.stopped, done.failed = self.halted, self.faulty
        unfinished = self.stopping if self.pending is None else self.pending()
        if done.stopped is None and unfinished:
            done.stopped = "interrupted" if self.stopping else "limit"

    def _until_stopped(self, tasks: Iterable[T], limit: int | None) -> Iterator[T]:
        for taken, task in enumerate(tasks):
            if taken == limit or self.stopping:
                return
            yield task

    async def _carry_all(self, pending: Iterator[T], carry: Callable[[T], Awaitable[None]]) -> None:
        for task in pending:
            try:
                await carry(task)
            except Interrupted:
                return
            except LimitReached as reached:
                self.halt(str(reached), faulty=False, wait_for_jobs=True)
                return
            except (RunHalted, BadBlob) as fault:
                self.halt(str(fault))
                return
            except DiskFull as full:
                self.halt(str(full), faulty=False)
                return


async def together(work: Iterable[Coroutine[None, None, None]]) -> None:
    """Run all coroutines concurrently. The first error cancels all other coroutines and is raised by itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None


# --- stopping a run -----------------------------------------------------------------------------


@asynccontextmanager
async def time_cap(limits: Limits, opened: OpenRun) -> AsyncIterator[None]:
    """Stop the run during the block when `limits.max_hours` are used up."""
    seconds = seconds_left(limits, opened.journal.reader)
    if seconds is None:
        yield
        return
    why = f"limits.max_hours = {limits.max_hours:g}: used up; raise limits.max_hours to resume"
    timer = asyncio.get_running_loop().call_later(max(0.0, seconds), partial(opened.halt, why, faulty=False))
    if seconds <= 0:
        opened.halt(why, faulty=False)
    try:
        yield
    finally:
        timer.cancel()


@asynccontextmanager
async def interruptible(client: ModelClient, on_stopping: Callable[[], None]) -> AsyncIterator[None]:
    """Finish calls in flight at the first SIGINT or SIGTERM, and stop at once at the second.

    If `cancellation` has an event, that stops the run instead, and no signal handler is installed.
    """
    if (cancelled := cancellation.get()) is not None:
        watching = asyncio.create_task(_stop_when(cancelled, client))
        try:
            yield
        finally:
            watching.cancel()
        return
    loop = asyncio.get_running_loop()
    terminals = [number for number in (0, 1, 2) if os.isatty(number)]
    asked = False

    def stop(number: int) -> None:
        nonlocal asked
        if asked and number != signal.SIGHUP:  # a closed terminal often sends it twice
            on_stopping()
            os._exit(3)
        if number == signal.SIGHUP:
            _leave(terminals)
        if not asked:
            asked = True
            client.request_stop()
            on_stopping()

    under_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    heard = [number for number in SIGNALS if number != signal.SIGHUP or not under_nohup]
    try:
        for number in heard:
            loop.add_signal_handler(number, stop, number)
    except (RuntimeError, ValueError):  # not in the main thread: our caller handles signals
        yield
        return
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _leave(terminals: Iterable[int]) -> None:
    """Replace a closed terminal by the null device: writing to it would fail and end calls in flight."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in terminals:
        os.dup2(nowhere, number)
    os.close(nowhere)


cancellation: ContextVar[asyncio.Event | None] = ContextVar("cancellation", default=None)
"""An event of the caller, set to stop the present run; a run without one listens to signals."""


async def _stop_when(cancelled: asyncio.Event, client: ModelClient) -> None:
    await cancelled.wait()
    client.request_stop()


IN_MEMORY = 200
"""Images in memory: about those of a hundred tasks in flight. Tasks that wait for a batch job keep none."""


class ImageCache:
    """A thread-safe memory cache of a run's images.

    Attributes:
        read: returns an image's bytes by hash, from memory or verified from disk; BadBlob if missing or damaged.
    """

    def __init__(self, reader: JournalReader) -> None:
        self.read = lru_cache(IN_MEMORY)(reader.read_blob)

    def image(self, sha256: str) -> EncodedImage:
        """Return the image of a hash; its bytes are read when they are needed."""
        return CachedImage(self, sha256)


class CachedImage(EncodedImage):
    """A stored JPEG whose bytes are read at each access, so that a waiting request does not keep them."""

    __slots__ = ("_cache", "_sha256")
    _cache: ImageCache
    _sha256: str

    def __init__(self, cache: ImageCache, sha256: str) -> None:
        for name, value in (("media_type", "image/jpeg"), ("_cache", cache), ("_sha256", sha256)):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> bytes:
        """The JPEG's bytes. Raise BadBlob if missing or damaged."""
        return self._cache.read(self._sha256)

    def __reduce__(self) -> tuple[type[EncodedImage], tuple[bytes, str]]:
        """Pickle the bytes, without the cache."""
        return EncodedImage, (self.data, self.media_type)
