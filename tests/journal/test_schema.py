"""The tables, their version, and what happens to journals of another one."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from pathlib import Path

import pytest

from journal.examples import HEADER, a_run
from plantain.journal import Journal, JournalReader, NewerJournal, NotARun, OlderJournal
from plantain.journal.disk.connect import open_for_writing
from plantain.journal.schema import VERSION, migrate, version_of

SCHEMA_3 = Path(__file__).with_name("schema_3.sql").read_text()
"""A journal that the first edition wrote, as SQL: a success, a superseded panel of two in whose second generation a
call is open, and an imported task with a verdict of two criteria and one of none. Its evidence holds a NUL."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A closed run with three pending tasks."""

    async def make() -> None:
        async with await a_run(tmp_path / "run"):
            pass

    asyncio.run(make())
    return tmp_path / "run"


def set_version(run: Path, version: str) -> None:
    with sqlite3.connect(run / "journal.sqlite") as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))
    connection.close()


def bytes_of(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_no_column_can_hold_an_image(run: Path) -> None:
    with JournalReader.open(run) as reader:
        tables = reader.connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        ).fetchall()
        kinds = {
            column[2]
            for name, _ in tables
            for column in reader.connection.execute(f"PRAGMA table_info({name})")
        }
    assert kinds == {"TEXT", "INTEGER", "REAL"}  # STRICT refuses bytes in each of them
    assert all("STRICT" in sql for _, sql in tables)


def test_newer_journal_is_refused_and_left_alone(run: Path) -> None:
    set_version(run, str(VERSION + 1))
    before = bytes_of(run)
    with pytest.raises(NewerJournal, match=f"version {VERSION + 1}.*up to {VERSION}"):
        Journal.open(run)
    with pytest.raises(NewerJournal):
        JournalReader.open(run)
    after = bytes_of(run)
    assert {name: after[name] for name in before} == before
    # A look at a WAL database leaves SQLite's own index and an empty log; nothing else was made.
    assert {Path(name).name for name in after.keys() - before.keys()} <= {
        "journal.sqlite-shm",
        "journal.sqlite-wal",
    }


def test_older_journal_is_not_misread(run: Path) -> None:
    set_version(run, "0")
    for opening in (JournalReader.open, Journal.open):
        with pytest.raises(OlderJournal, match="cannot bring it forward"):  # no step from 0 was ever shipped
            opening(run)
    assert not list(run.glob("*.schema-*"))


def test_migration_runs_every_step_to_the_known_version(run: Path) -> None:
    steps = {
        VERSION: "ALTER TABLE task ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;",
        VERSION
        + 1: "UPDATE task SET priority = 3; CREATE TRIGGER t AFTER INSERT ON task BEGIN SELECT 1; END;",
    }
    path = run / "journal.sqlite"
    connection = open_for_writing(path)
    assert migrate(connection, path, steps, VERSION + 2) == VERSION
    assert connection.execute("SELECT DISTINCT priority FROM task").fetchall() == [(3,)]
    assert version_of(connection, path) == VERSION + 2
    assert migrate(connection, path, steps, VERSION + 2) == VERSION + 2  # again: nothing to do
    connection.close()


def test_failed_migration_changes_nothing(run: Path) -> None:
    steps = {VERSION: "UPDATE task SET reason = 'half done'; INSERT INTO nowhere VALUES (1);"}
    path = run / "journal.sqlite"
    connection = open_for_writing(path)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, path, steps, VERSION + 1)
    assert version_of(connection, path) == VERSION
    assert connection.execute("SELECT DISTINCT reason FROM task").fetchall() == [("",)]
    connection.close()


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to have a header" * 30])
def test_file_of_another_kind_is_not_a_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal.sqlite").write_bytes(content)
    for opening in (Journal.open, JournalReader.open):
        with pytest.raises(NotARun, match="not a journal"):
            opening(tmp_path)
    assert (tmp_path / "journal.sqlite").read_bytes() == content


def test_database_of_another_program_is_not_a_run(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.execute("CREATE TABLE meta(key TEXT, value TEXT)")
        connection.execute("INSERT INTO meta VALUES ('schema_version', '1')")
    connection.close()
    with pytest.raises(NotARun, match="not a journal of plantain"):
        Journal.open(tmp_path)


def test_folder_without_journal_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(NotARun, match="holds no journal"):
        Journal.open(tmp_path)
    with pytest.raises(NotARun, match="holds no journal"):
        JournalReader.open(tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


def test_header_is_as_created(run: Path) -> None:
    with JournalReader.open(run) as reader:
        assert reader.header == HEADER
        assert list(reader.header.frozen) == list(HEADER.frozen)


def test_first_version_comes_forward_with_its_blobs(run: Path) -> None:
    path = run / "journal.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    _as_in_version_3(connection)
    connection.execute("ALTER TABLE blob DROP COLUMN pixel_sha256")
    connection.execute("DROP TABLE batch_request")
    connection.execute("DROP TABLE batch_job")
    connection.execute("UPDATE meta SET value = '1' WHERE key = 'schema_version'")
    before = connection.execute("SELECT sha256, bytes, media_type FROM blob").fetchall()
    assert migrate(connection, path) == 1
    after = connection.execute("SELECT sha256, bytes, media_type, pixel_sha256 FROM blob").fetchall()
    assert after == [(*row, None) for row in before]
    connection.close()


def test_second_version_comes_forward_with_tables_for_batch_jobs(run: Path) -> None:
    path = run / "journal.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    fresh = _tables(connection)
    _as_in_version_3(connection)
    connection.execute("DROP TABLE batch_request")
    connection.execute("DROP TABLE batch_job")
    connection.execute("UPDATE meta SET value = '2' WHERE key = 'schema_version'")
    assert migrate(connection, path) == 2
    assert _tables(connection) == fresh
    connection.close()


def _as_in_version_3(connection: sqlite3.Connection) -> None:
    """The table of verdicts as it was; empty, as the run's is."""
    old = next(line for line in SCHEMA_3.split(";\n") if line.strip().startswith("CREATE TABLE verdict("))
    later = (
        "DROP TABLE sent",
        "DROP TABLE destination",
        "DROP INDEX image_prepared",
        "DROP TABLE session_time",
        "DROP INDEX call_lost",
    )
    for statement in (*later, "DROP TABLE criterion", "DROP TABLE verdict", old):
        connection.execute(statement)


def _tables(connection: sqlite3.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))


def test_errors_that_the_first_edition_held_money_for_are_free_and_timeouts_are_not(run: Path) -> None:
    path = run / "journal.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    _as_in_version_3(connection)
    connection.execute("UPDATE meta SET value = '3' WHERE key = 'schema_version'")
    task = connection.execute("SELECT id FROM task LIMIT 1").fetchone()[0]
    reasons = (
        "503 UNAVAILABLE: overloaded",
        "400: no",
        "504: late",
        "no answer within 5 s",
        "status 200 with HTML",
    )
    for tries, reason in enumerate(reasons, start=100):
        connection.execute(
            "INSERT INTO call(task, generation, round, step, draw, tries, model, request_hash, state, outcome, reason, "
            "reserved_usd, started_at) VALUES (?, 0, 1, 'edit', 0, ?, 'm/e', 'h', 'settled', 'transport', ?, 0.3, '')",
            (task, tries, reason),
        )
    migrate(connection, path)
    free = connection.execute(
        "SELECT reason FROM call WHERE cost_usd = 0 AND tries >= 100 ORDER BY id"
    ).fetchall()
    assert [reason for (reason,) in free] == list(reasons[:2])
    connection.close()
