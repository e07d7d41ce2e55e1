"""`verify` finds what is missing, changed or miscounted."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from journal.examples import a_run, a_task, one_round
from plantain.journal import JournalReader, verify


@pytest.fixture
def run(tmp_path: Path) -> Path:
    async def make() -> None:
        async with await a_run(tmp_path) as journal:
            await one_round(journal, a_task(0).id)

    asyncio.run(make())
    return tmp_path


def problems(run: Path) -> tuple[str, ...]:
    with JournalReader.open(run) as reader:
        found = verify(reader)
    assert found.blobs == 2  # the prepared image and one edit
    assert found.ok == (not found.problems)
    return found.problems


def edited(run: Path) -> Path:
    with JournalReader.open(run) as reader:
        (attempt,) = reader.all_attempts()
        assert attempt.edited is not None
        return reader.blob_path(attempt.edited)


def test_whole_run(run: Path) -> None:
    assert problems(run) == ()


def test_missing_blob(run: Path) -> None:
    edited(run).unlink()
    (problem,) = problems(run)
    assert "missing" in problem


def test_changed_blob(run: Path) -> None:
    edited(run).write_bytes(b"x")
    (problem,) = problems(run)
    assert "does not hold the bytes" in problem


def test_miscounted_tasks(run: Path) -> None:
    with sqlite3.connect(run / "journal.sqlite") as connection:
        connection.execute("UPDATE tally SET n = n + 1 WHERE what = 'task.edit'")
    connection.close()
    assert any("counter task.edit" in problem for problem in problems(run))


def test_reference_to_a_blob_that_no_row_knows(run: Path) -> None:
    with sqlite3.connect(run / "journal.sqlite") as connection:
        connection.execute("UPDATE attempt SET mask = ?", ("f" * 64,))
    connection.close()
    assert any("missing blob" in problem for problem in problems(run))
