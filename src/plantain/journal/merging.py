"""Joining journals of disjoint parts of one plan: rows are copied, and only their serial numbers change."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from plantain.files.opening import sqlite_uri
from plantain.journal.connect import JOURNAL_NAME
from plantain.journal.rows import create_tables
from plantain.records import InputError

JOINED = "joined.runs"
"""Meta key of a merged run: the ids of its parts, as JSON."""

_BY_KEY = ("task", "attempt", "verdict", "criterion", "score", "batch_job")
"""Tables whose keys identify the content of a row; parts that share one are not disjoint."""

_JOIN = """
INSERT INTO main.blob SELECT * FROM part.blob WHERE true ON CONFLICT(sha256) DO UPDATE SET
  pixel_sha256 = COALESCE(blob.pixel_sha256, excluded.pixel_sha256);
INSERT OR IGNORE INTO main.image SELECT * FROM part.image;
INSERT OR IGNORE INTO main.destination(model, address, reach, agreement)
  SELECT model, address, reach, agreement FROM part.destination ORDER BY id;
"""
_SENT = """
INSERT INTO main.sent SELECT s.id + :sent, s.file, s.image, d.id, s.call + :call, s.at FROM part.sent s
  JOIN part.destination p ON p.id = s.destination
  JOIN main.destination d USING (model, address, reach, agreement)
"""


def begin_joined(path: Path) -> sqlite3.Connection:
    """Make an empty journal at `path`, to be filled by `join`; return its connection, which cannot roll back."""
    connection = sqlite3.connect(sqlite_uri(path, "mode=rwc"), uri=True, isolation_level=None)
    # Nothing reads it before it is complete, and an incomplete one is made again: nothing is ever rolled back.
    connection.execute("PRAGMA main.journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -131072")
    create_tables(connection)
    return connection


def join(joined: sqlite3.Connection, part: Path) -> None:
    """Add all rows of a part except its meta values. After an error, discard `joined`.

    Raises:
        InputError: `joined` has one of the part's tasks, or another image with the id of one of its images.
    """
    joined.execute("ATTACH ? AS part", (sqlite_uri(part / JOURNAL_NAME, "mode=ro"),))
    _refuse_shared(joined, part)
    joined.execute("BEGIN")
    first = {table: _last(joined, table) for table in ("session", "call", "sent")}
    for table in ("session", "call"):
        names = ", ".join(_columns(joined, table))
        joined.execute(
            f"INSERT INTO main.{table}(id, {names}) SELECT id + ?, {names} FROM part.{table} ORDER BY id",
            (first[table],),
        )
    for statement in _JOIN.split(";")[:-1]:
        joined.execute(statement)
    for table in _BY_KEY:
        joined.execute(f"INSERT INTO main.{table} SELECT * FROM part.{table}")
    joined.execute(
        "INSERT INTO main.batch_request SELECT key, call + ?, job FROM part.batch_request", (first["call"],)
    )
    joined.execute(_SENT, first)
    joined.execute("COMMIT")
    joined.execute("DETACH part")


def put_meta(joined: sqlite3.Connection, values: dict[str, str]) -> None:
    """Store the header and all other meta values of the joined run."""
    joined.executemany("INSERT INTO meta VALUES (?, ?)", sorted(values.items()))


def meta_of(part: sqlite3.Connection) -> dict[str, str]:
    """Return all meta values of a part except the version of its tables."""
    rows = part.execute("SELECT key, value FROM meta WHERE key <> 'schema_version'")
    return {str(key): str(value) for key, value in rows}


def open_jobs(part: sqlite3.Connection) -> int:
    """Return the number of a part's batch jobs that have not been answered."""
    return int(part.execute("SELECT count(*) FROM batch_job WHERE state <> 'closed'").fetchone()[0])


def answered_by(part: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return (model requested, model that answered) for a part, in order of their first used answers."""
    rows = part.execute(
        "SELECT model, served_model FROM call WHERE final = 1 AND outcome = 'ok' AND served_model <> '' "
        "GROUP BY model, served_model ORDER BY min(id)"
    )
    return [(str(model), str(served)) for model, served in rows]


def blobs_of(part: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield (SHA-256, media type) of every blob of a part, sorted by SHA-256."""
    yield from part.execute("SELECT sha256, media_type FROM blob ORDER BY sha256")


def images_of(part: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield (id, group) of every image of a part or its tasks; the group is "" if unknown."""
    yield from part.execute(
        "SELECT id, COALESCE(json_extract(record, '$.group'), '') FROM image "
        "UNION ALL SELECT DISTINCT image_id, '' FROM task WHERE image_id NOT IN (SELECT id FROM image)"
    )


def _refuse_shared(joined: sqlite3.Connection, part: Path) -> None:
    task = joined.execute(
        "SELECT id FROM part.task WHERE id IN (SELECT id FROM main.task) LIMIT 1"
    ).fetchone()
    if task is not None:
        raise InputError(f"{part}: task {task[0]} is in another part too")
    image = joined.execute(
        "SELECT 1 FROM part.image p JOIN main.image m ON m.id = p.id AND m.prepared <> p.prepared LIMIT 1"
    ).fetchone()
    if image is not None:
        raise InputError(f"{part}: an image has different bytes in another part, under the same id")


def _columns(joined: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in joined.execute(f"PRAGMA main.table_info({table})") if row[1] != "id"]


def _last(joined: sqlite3.Connection, table: str) -> int:
    return int(joined.execute(f"SELECT COALESCE(max(id), 0) FROM main.{table}").fetchone()[0])
