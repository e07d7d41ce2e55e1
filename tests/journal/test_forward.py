"""A journal of the first edition comes forward: every row of it, backed up first, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from journal.test_schema import SCHEMA_3, bytes_of, set_version
from plantain.journal import DiskFull, Journal, JournalReader, NewerJournal
from plantain.journal.payload import dumps
from plantain.journal.questions.tables import table2
from plantain.journal.schema import APPLICATION_ID, VERSION
from plantain.journal.withdrawal import finish, held_for_withdrawal, take_out
from plantain.records import OutcomeKind, TaskState
from plantain.records.withdrawal import Withdrawal

KEPT = "journal.sqlite.schema-3"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A run as the first edition left it, killed while a call was open."""
    run = tmp_path / "run"
    (run / "blobs").mkdir(parents=True)
    connection = sqlite3.connect(run / "journal.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.executescript(SCHEMA_3)
    connection.close()
    return run


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def opened(run: Path) -> None:
    async def once() -> None:
        async with Journal.open(run):
            pass

    asyncio.run(once())


def reports(path: Path) -> dict[tuple[object, ...], dict[str, object]]:
    """What the first edition had stored of each verdict, from its own JSON."""
    told = rows(path, "SELECT task, generation, round, judge, draw, observations FROM verdict")
    return {row[:5]: orjson.loads(str(row[5])) for row in told}


def read(run: Path) -> dict[tuple[object, ...], dict[str, object]]:
    """The same out of the run as it is now."""
    with JournalReader.open(run) as reader:
        stored = [one for task in reader.tasks() for one in reader.verdicts(task.id)]
    return {
        (v.task_id, v.generation, v.round, v.verdict.judge, v.draw): orjson.loads(
            dumps(v.verdict.observations)
        )
        for v in stored
    }


def test_every_verdict_of_the_first_edition_reads_as_it_was_stored(old: Path) -> None:
    before = reports(old / "journal.sqlite")
    held = rows(
        old / "journal.sqlite", "SELECT * FROM score UNION ALL SELECT task, 0, 0, id, 0, '', raw FROM call"
    )
    assert len(before) == 6
    opened(old)
    assert read(old) == before
    for key, told in read(old).items():
        assert list(told["criteria"]) == list(before[key]["criteria"]), "criteria keep their order"  # type: ignore[call-overload]
    assert reports(old / KEPT) == before, "what it was is kept beside it"
    after = rows(
        old / "journal.sqlite", "SELECT * FROM score UNION ALL SELECT task, 0, 0, id, 0, '', raw FROM call"
    )
    assert after == held
    fresh = (old / KEPT).read_bytes()
    opened(old)
    assert (old / KEPT).read_bytes() == fresh, "a second opening has nothing to bring forward"


def test_tables_are_the_same_by_rows(old: Path) -> None:
    with JournalReader.open(old) as reader:
        table = table2(reader, {"instruction_compliance": 0.4, "realism": 0.2})
        states = reader.counts()
    # decisive verdicts of current generations: the success, the imported one of two criteria and the one of none
    compliance, realism = table.criteria
    assert (compliance.overall.successes, compliance.overall.n) == (1, 2)
    assert (realism.overall.successes, realism.overall.n) == (1, 2)
    assert realism.codes == (("hard_edge", 1),)
    assert (table.judged, states[TaskState.PENDING]) == (3, 3)


def test_reading_brings_a_copy_forward_and_leaves_the_run_alone(old: Path) -> None:
    before = bytes_of(old)
    with JournalReader.open(old) as reader:
        assert len(reader.open_calls()) == 1
        assert reader.outcomes()[OutcomeKind.OK] == 6
    left = {name: kept for name, kept in bytes_of(old).items() if not name.endswith(("-wal", "-shm"))}
    assert left == before


def kill_at(statement: str) -> Callable[[str], None]:
    def trace(sql: str) -> None:
        if sql.lstrip().startswith(statement):
            os.kill(os.getpid(), signal.SIGKILL)

    return trace


@pytest.mark.parametrize(
    "moment",
    [
        "BEGIN",
        "ALTER TABLE verdict",
        "INSERT INTO criterion SELECT",
        "DROP TABLE verdict_3",
        "UPDATE meta",
        "COMMIT",
    ],
)
def test_killed_while_it_comes_forward(old: Path, moment: str) -> None:
    before = reports(old / "journal.sqlite")
    pid = os.fork()
    if pid == 0:
        from plantain.journal import forward
        from plantain.journal.schema import migrate

        def killed(connection: sqlite3.Connection, path: Path) -> None:
            connection.set_trace_callback(kill_at(moment))
            migrate(connection, path)

        forward.migrate = killed  # type: ignore[assignment]
        opened(old)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert reports(old / KEPT) == before
    (version,) = rows(old / "journal.sqlite", "SELECT value FROM meta WHERE key = 'schema_version'")
    assert version == ("3",)
    opened(old)
    assert read(old) == before


def test_a_backup_that_cannot_be_made_leaves_the_journal_as_it_was(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, to: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("plantain.journal.forward.backup", refuse)
    with pytest.raises(DiskFull, match="disk is full"):
        opened(old)
    assert rows(old / "journal.sqlite", "SELECT value FROM meta WHERE key = 'schema_version'") == [("3",)]


def test_a_newer_journal_is_neither_copied_nor_touched(old: Path) -> None:
    set_version(old, str(VERSION + 1))
    with pytest.raises(NewerJournal):
        opened(old)
    assert not (old / KEPT).exists()


def test_a_withdrawal_takes_the_kept_copy_too(old: Path) -> None:
    opened(old)
    assert (old / KEPT).exists()
    with held_for_withdrawal(old) as connection:
        gone = take_out(connection, Withdrawal(groups=frozenset({"group"})), ["i0"], [])
        assert finish(connection, old, lambda note: None)
    assert gone.attempts == 4
    assert not (old / KEPT).exists()
    assert rows(old / "journal.sqlite", "SELECT count(*) FROM criterion") == [(0,)]
    shutil.rmtree(old)
