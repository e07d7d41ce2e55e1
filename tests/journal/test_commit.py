"""Group commit: many operations, few transactions, and no operation that spoils another."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from plantain.journal.commit import Committer
from plantain.journal.connect import open_for_writing


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
