"""An image's record as a row of the catalogue, one column per field, so that any tool can query it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path

from pydantic import TypeAdapter

from plantain.records import InputError, SourceImage

VERSION = 1

Value = str | int | float | None

COLUMNS = tuple(field.name for field in fields(SourceImage))
"""Columns of `image`, in the order of the record's fields; the first is the id."""

_RECORD = TypeAdapter(SourceImage)
_TYPES = {"frame": "INTEGER", "spacing_mm": "REAL", "text_checked": "INTEGER", "synthetic": "INTEGER"}
_MAY_BE_NULL = frozenset({"group", "spacing_mm", "consent"})


def _declare(column: str) -> str:
    null = "" if column in _MAY_BE_NULL else " NOT NULL"
    key = " PRIMARY KEY" if column == "id" else ""
    return f'"{column}" {_TYPES.get(column, "TEXT")}{null}{key}'


SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    f"CREATE TABLE IF NOT EXISTS image ({', '.join(map(_declare, COLUMNS))}) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS label (label TEXT NOT NULL, image_id TEXT NOT NULL REFERENCES image(id), "
    "PRIMARY KEY (label, image_id)) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS likeness (image_id TEXT PRIMARY KEY REFERENCES image(id), code BLOB NOT NULL) "
    "STRICT, WITHOUT ROWID",
    'CREATE TABLE IF NOT EXISTS own_group (image_id TEXT PRIMARY KEY REFERENCES image(id), "group" TEXT) '
    "STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS reading (prepared_sha256 TEXT PRIMARY KEY, reader TEXT NOT NULL, found TEXT NOT NULL) "
    "STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS quarantine (image_id TEXT PRIMARY KEY, source_sha256 TEXT NOT NULL, "
    "frame INTEGER NOT NULL, record TEXT NOT NULL, likeness BLOB, found TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS decision (image_id TEXT PRIMARY KEY, decision TEXT NOT NULL, boxes TEXT NOT NULL) "
    "STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS withdrawn (mark TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS image_modality ON image (modality, id)",
    "CREATE INDEX IF NOT EXISTS image_source ON image (source_sha256, frame)",
)


def to_row(image: SourceImage) -> tuple[Value, ...]:
    """Return the record as SQLite values; labels, geometry and consent as JSON text."""
    values: dict[str, Value] = {name: getattr(image, name) for name in COLUMNS}
    values["labels"] = _json(image.labels)
    values["geometry"] = _json(asdict(image.geometry))
    values["consent"] = None if image.consent is None else _json(asdict(image.consent))
    values["licence"] = image.licence.value
    values["text_checked"] = int(image.text_checked)
    values["synthetic"] = int(image.synthetic)
    return tuple(values.values())


def from_row(row: tuple[Value, ...]) -> SourceImage:
    """Return the record of a row, with every field checked."""
    values: dict[str, object] = dict(zip(COLUMNS, row, strict=True))
    for name in ("labels", "geometry", "consent"):
        if values[name] is not None:
            values[name] = json.loads(str(values[name]))
    return _RECORD.validate_python(values)


def fingerprint(row: tuple[Value, ...]) -> int:
    """Return a row's SHA-256 as an integer, for a sum over rows that does not depend on their order."""
    return int.from_bytes(hashlib.sha256(_json(row).encode()).digest(), "big")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction; roll back if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    done = False
    try:
        yield
        done = True
    finally:
        connection.execute("COMMIT" if done else "ROLLBACK")


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise InputError for a catalogue of another version."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    if row is None or row[0] != str(VERSION):
        found = "unknown" if row is None else row[0]
        raise InputError(f"{path}: catalogue version {found}; this plantain reads {VERSION}")
