"""Opening the journal's database: durable for the writer, undemanding for readers."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from plantain.files.opening import check_received
from plantain.files.redaction import redacted
from plantain.journal.errors import NotARun
from plantain.journal.schema import VERSION, check_steps, migrate, refuse_newer, version_of

JOURNAL_NAME = "journal.sqlite"
_BUSY_SECONDS = 30.0

Value = str | bytes | int | float | None


class _Redacting(sqlite3.Connection):
    """The writer's connection: no text passes it that holds a key. This is the one place before the disk."""

    def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
        return super().execute(sql, _without_keys(parameters))

    def executemany(self, sql: str, parameters: Iterable[object], /) -> sqlite3.Cursor:
        return super().executemany(sql, map(_without_keys, parameters))


def _without_keys(parameters: object) -> dict[str, Value] | list[Value]:
    if isinstance(parameters, dict):
        return {
            name: redacted(value) if isinstance(value, str) else value for name, value in parameters.items()
        }
    assert isinstance(parameters, Sequence)
    return [redacted(value) if isinstance(value, str) else value for value in parameters]


class _Connection(sqlite3.Connection):
    """A connection whose end can be waited for: the built-in class takes no weak references."""


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The writer's connection: WAL, every commit synced, foreign keys held, no implicit transactions."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=_Redacting
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS only; elsewhere a sync is a sync
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -32768")
    connection.execute(
        "PRAGMA wal_autocheckpoint = 4000"
    )  # 16 MB: hot pages are written back once, not often
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


def refuse_foreign(run: Path) -> None:
    """Raises NotARun or NewerJournal before anything in the folder is touched."""
    path = run / JOURNAL_NAME
    if not path.is_file():
        raise NotARun(_no_run(run))
    check_received(run, levels=2)
    with contextlib.closing(_connect_read_only(path)) as connection:
        refuse_newer(version_of(connection, path), path)


def _no_run(run: Path) -> str:
    """Why a folder is no run, and which one was probably meant: the demo keeps its own one folder deeper."""
    inner = next(iter(sorted(run.glob(f"*/{JOURNAL_NAME}"))), None) if run.is_dir() else None
    hint = f"; did you mean {inner.parent}?" if inner is not None else ""
    return f"{run} is not a run: it holds no {JOURNAL_NAME}{hint}"


def open_for_reading(run: Path) -> sqlite3.Connection:
    """A read-only connection to a run's journal, live or copied; to a copy brought forward where it is an older one.

    Raises:
        NotARun, NewerJournal, OlderJournal: as their names say.
    """
    path = run / JOURNAL_NAME
    if not path.is_file():
        raise NotARun(_no_run(run))
    check_received(run, levels=2)
    connection = _connect_read_only(path)
    try:
        found = version_of(connection, path)
        check_steps(found, path)
        if found < VERSION:
            connection = _brought_forward(connection, path)
        connection.execute("PRAGMA query_only = ON")
    except (ValueError, sqlite3.Error):
        connection.close()
        raise
    return connection


def _connect_read_only(path: Path) -> sqlite3.Connection:
    log = path.with_name(path.name + "-wal")
    index = path.with_name(path.name + "-shm")
    if os.access(path.parent, os.W_OK) or index.exists():
        return _connect(path, "mode=ro")
    if not log.exists() or log.stat().st_size == 0:
        # SQLite cannot make its index file here and would refuse; nobody can write here either.
        return _connect(path, "mode=ro&immutable=1")
    # The copy of a run that was not closed: its last commits are in the log, which needs an index file.
    folder = tempfile.mkdtemp(prefix="plantain-")
    copy = Path(folder) / path.name
    shutil.copyfile(path, copy)
    shutil.copyfile(log, copy.with_name(log.name))
    return _until_closed(_connect(copy, "mode=ro"), folder)


def _brought_forward(older: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """A copy of this version; the run itself is brought forward by whoever writes to it next."""
    folder = tempfile.mkdtemp(prefix="plantain-")
    copy = _until_closed(_connect(Path(folder) / path.name, "mode=rwc"), folder)
    with contextlib.closing(older):
        older.backup(copy)
    migrate(copy, path)
    return copy


def _until_closed(connection: sqlite3.Connection, folder: str) -> sqlite3.Connection:
    weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?{mode}"
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
    )


@contextlib.contextmanager
def temporary_changes(connection: sqlite3.Connection) -> Iterator[None]:
    """Inside, a reader's connection may make tables and views of its own, which SQLite takes for changes too.

    It may be nested. The file stays as it is: it was opened read-only.
    """
    (held,) = connection.execute("PRAGMA query_only").fetchone()
    connection.execute("PRAGMA query_only = OFF")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA query_only = {held}")
