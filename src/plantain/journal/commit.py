"""Group commit: one thread owns the writing connection, and commits all waiting operations in one transaction."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

LARGEST_GROUP = 512
"""Operations in one transaction at most, so that a commit stays short."""

_FAULTS = (sqlite3.Error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that a bad argument raises inside an operation; only that operation fails."""


class WriterClosed(RuntimeError):
    """Raised if an operation is submitted to a journal that is closed, or whose writer thread has died."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """An operation, and the future of the coroutine that waits for it to be durable."""

    operation: Callable[[sqlite3.Connection], Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None

    def resolve(self) -> None:
        if self.future.done():  # its coroutine was cancelled; the operation is durable all the same
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Committer:
    """A thread that runs operations on one connection, in order of submission, and commits them in groups.

    An operation that fails is undone alone; the others of its group are committed. A commit that fails undoes and fails
    its whole group. Neither stops the thread.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take the connection over: from now on it is the thread's."""
        self._connection = connection
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._closed = False
        self._farewell: Callable[[sqlite3.Connection], None] | None = None
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="plantain-journal", daemon=True)
        self._thread.start()

    async def submit(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run `operation` in the next transaction; return its result once durable. Raise WriterClosed after `close`."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(operation, future)
        with self._closing:
            if self._closed:
                raise WriterClosed("the journal is closed")
            self._queue.put(waiting)
        return await future

    def close(self, farewell: Callable[[sqlite3.Connection], None]) -> None:
        """Finish submitted operations, run `farewell`, close the connection. Blocks; later calls do nothing."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._farewell = farewell
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        group: list[_Waiting] = []
        open_ended = True
        try:
            while open_ended:
                group, open_ended = self._next_group()
                if group:
                    self._commit(group)
                    _resolve(group)
                    group = []
            if self._farewell is not None:
                # A full disk must not keep us from closing.
                with contextlib.suppress(sqlite3.OperationalError):
                    self._farewell(self._connection)
        finally:
            # Also after a fault of our own: no coroutine may wait forever for a thread that has ended.
            self._abandon(group)
            self._connection.close()

    def _next_group(self) -> tuple[list[_Waiting], bool]:
        """Wait for operations; return all that wait, and False when the end was among them (it is always the last)."""
        group: list[_Waiting] = []
        waiting = self._queue.get()
        while waiting is not None:
            group.append(waiting)
            if len(group) == LARGEST_GROUP:
                return group, True
            try:
                waiting = self._queue.get_nowait()
            except Empty:
                return group, True
        return group, False

    def _commit(self, group: list[_Waiting]) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for waiting in group:
                connection.execute("SAVEPOINT operation")
                try:
                    waiting.result = waiting.operation(connection)
                except _FAULTS as error:
                    if not connection.in_transaction:
                        raise  # SQLite has already undone the whole group (full disk, I/O error)
                    waiting.error = error
                    connection.execute("ROLLBACK TO operation")
                connection.execute("RELEASE operation")
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            for waiting in group:
                waiting.error = waiting.error or error

    def _abandon(self, group: list[_Waiting]) -> None:
        with self._closing:
            self._closed = True
            while not self._queue.empty():
                waiting = self._queue.get()
                if waiting is not None:
                    group.append(waiting)
        for waiting in group:
            waiting.error = WriterClosed("the journal's writer thread has stopped")
        _resolve(group)


def _resolve(group: list[_Waiting]) -> None:
    """Wake the waiting coroutines, one hop into each event loop instead of one for each of them."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
    for waiting in group:
        by_loop.setdefault(waiting.future.get_loop(), []).append(waiting)
    for loop, members in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_resolve_here, members)


def _resolve_here(group: list[_Waiting]) -> None:
    for waiting in group:
        waiting.resolve()
