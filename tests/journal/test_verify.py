"""`verify` finds missing and changed files."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sqlite3
from pathlib import Path

import pytest

from journal.examples import Do, a_run, a_task, one_round
from plantain.journal import Journal, JournalReader, verify
from plantain.journal.questions.status import not_closed


@pytest.fixture
def run(do: Do, journal: Journal, tmp_path: Path) -> Path:
    do(one_round(journal, a_task(0).id))
    do(journal.close())
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


def test_changed_and_missing_blob(run: Path) -> None:
    edited(run).write_bytes(b"x")
    (problem,) = problems(run)
    assert "does not contain the bytes" in problem
    edited(run).unlink()
    (problem,) = problems(run)
    assert "missing" in problem


def test_reference_to_a_blob_that_no_row_knows(run: Path) -> None:
    with sqlite3.connect(run / "journal.sqlite") as connection:
        connection.execute("UPDATE attempt SET mask = ?", ("f" * 64,))
    connection.close()
    assert any("missing blob" in problem for problem in problems(run))


def test_run_that_was_not_closed_and_whose_log_was_cut_is_named(tmp_path: Path) -> None:
    copy, cut, lost, kept = tmp_path / "copy", tmp_path / "cut", tmp_path / "lost", list[int]()

    async def work() -> None:
        async with await a_run(tmp_path / "run") as journal:
            kept.append((tmp_path / "run/journal.sqlite-wal").stat().st_size)
            await one_round(journal, a_task(0).id)
            shutil.copytree(tmp_path / "run", copy)  # as a kill leaves it
            assert not_closed(journal.reader) == "", "its process still runs"

    asyncio.run(work())
    with JournalReader.open(tmp_path / "run") as reader:
        assert not_closed(reader) == ""
    shutil.copytree(copy, cut)
    log = cut / "journal.sqlite-wal"
    log.write_bytes(log.read_bytes()[: kept[0]])
    shutil.copytree(cut, lost)
    (lost / "journal.sqlite-wal").unlink()  # with the row of the process
    for folder, unnamed, suspected in ((copy, 0, False), (cut, 1, True), (lost, 2, True)):
        (folder / "journal.sqlite-shm").unlink()
        forget_host(folder)
        with JournalReader.open(folder) as reader:
            line = not_closed(reader)
        assert "ended without closing the run" in line and f"{unnamed} stored image" in line
        assert ("log may have been cut" in line) is suspected


def forget_host(run: Path) -> None:
    """As if the process had run on another machine, where it cannot be looked up."""
    with sqlite3.connect(run / "journal.sqlite") as connection:
        connection.execute("UPDATE session SET host = 'elsewhere'")
    connection.close()
    (run / "lock").write_text((run / "lock").read_text().replace(socket.gethostname(), "elsewhere"))
