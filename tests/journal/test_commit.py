"""Group commit: many operations, few transactions, and no operation that spoils another."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from plantain.journal.commit import Committer, WriterClosed
from plantain.journal.disk.connect import open_for_writing


class Watched:
    """A committer on a database with one table, and the sizes of the groups it committed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "some.sqlite"
        connection = open_for_writing(self.path)
        connection.execute("CREATE TABLE number(n INTEGER PRIMARY KEY, CHECK (n < 1000)) STRICT")
        self.groups: list[int] = []
        self.submitted: asyncio.Future[int]
        self.committer = Committer(connection, self.groups.append)

    def numbers(self) -> list[int]:
        with sqlite3.connect(self.path) as connection:
            return [row[0] for row in connection.execute("SELECT n FROM number ORDER BY n")]

    def close(self) -> None:
        self.committer.close(lambda connection: None)


def put(n: int):  # type: ignore[no-untyped-def]
    def operation(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO number VALUES (?)", (n,))
        return n * 10

    return operation


def test_operations_that_wait_together_share_transactions(tmp_path: Path) -> None:
    watched = Watched(tmp_path)

    async def work() -> list[int]:
        return await asyncio.gather(*(watched.committer.submit(put(n)) for n in range(200)))

    assert asyncio.run(work()) == [n * 10 for n in range(200)]
    watched.close()
    assert watched.numbers() == list(range(200))
    assert sum(watched.groups) == 200
    assert len(watched.groups) < 20  # the first alone, the rest while it was being synced


def test_failing_operation_fails_alone(tmp_path: Path) -> None:
    watched = Watched(tmp_path)

    def half_then_fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO number VALUES (500)")
        raise ValueError("changed my mind")

    async def work() -> list[int | BaseException | None]:
        submit = watched.committer.submit
        return await asyncio.gather(
            submit(put(1)), submit(put(1)), submit(half_then_fail), submit(put(2000)), submit(put(2)),
            return_exceptions=True,
        )  # fmt: skip

    first, twice, undone, too_large, last = asyncio.run(work())
    watched.close()
    assert (first, last) == (10, 20)
    assert isinstance(twice, sqlite3.IntegrityError)
    assert isinstance(undone, ValueError)
    assert isinstance(too_large, sqlite3.IntegrityError)
    assert watched.numbers() == [1, 2]


def test_what_a_cancelled_coroutine_asked_for_is_done(tmp_path: Path) -> None:
    watched = Watched(tmp_path)

    async def work() -> None:
        waiting = asyncio.create_task(watched.committer.submit(put(3)))
        await asyncio.sleep(0)
        waiting.cancel()
        await watched.committer.submit(put(4))
        assert waiting.cancelled()

    asyncio.run(work())
    watched.close()
    assert watched.numbers() == [3, 4]


def test_nobody_waits_for_a_thread_that_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the observer, which is ours, ends the thread; it must not hang the build."""
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: reported.append(arguments.exc_value))
    connection = open_for_writing(tmp_path / "some.sqlite")
    connection.execute("CREATE TABLE number(n INTEGER PRIMARY KEY) STRICT")

    def broken(events: int) -> None:
        raise RuntimeError("broken observer")

    committer = Committer(connection, broken)
    with pytest.raises(WriterClosed):
        asyncio.run(committer.submit(put(1)))
    with pytest.raises(WriterClosed):
        asyncio.run(committer.submit(put(2)))
    committer.close(lambda connection: None)
    assert [str(error) for error in reported] == ["broken observer"]


def test_waiter_whose_loop_is_gone_stops_nobody(tmp_path: Path) -> None:
    """A second Ctrl-C ends the loop while operations wait: they are done, and the next loop is served."""
    watched = Watched(tmp_path)

    async def hand_in_and_leave() -> None:
        watched.submitted = asyncio.ensure_future(watched.committer.submit(put(5)))
        await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(hand_in_and_leave())
    watched.submitted.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert asyncio.run(watched.committer.submit(put(6))) == 60
    watched.close()
    assert watched.numbers() == [5, 6]
