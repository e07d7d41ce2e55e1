"""Bringing an older journal forward: a copy of the file is kept beside it first."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from plantain.journal.disk.blobs import sync_folder
from plantain.journal.schema import VERSION, check_steps, migrate, version_of
from plantain.records import InputError

_KEPT = ".schema-"
"""Between the journal's name and the version of a kept copy: journal.sqlite.schema-3."""


def bring_forward(connection: sqlite3.Connection, path: Path) -> None:
    """Brings the journal at `path` to this version; what it was is kept in a file beside it, whole or not at all.

    A process killed at any moment leaves the journal as it was or as it will be; the next one begins again.

    Raises:
        OlderJournal, NewerJournal: it cannot be brought forward.
    """
    found = version_of(connection, path)
    check_steps(found, path)
    if found < VERSION:
        backup(path, path.with_name(f"{path.name}{_KEPT}{found}"))
    migrate(connection, path)


def forget_older(path: Path) -> None:
    """Removes the copies that were kept: they hold what a withdrawal takes out of the journal."""
    for kept in path.parent.glob(f"{path.name}{_KEPT}*"):
        kept.unlink()
    sync_folder(path.parent)


def backup(source: Path, to: Path) -> None:
    """Copies the database at `source` to the file `to`, whole or not at all. Raises InputError for itself."""
    if to.exists() and to.samefile(source):
        raise InputError(f"{to} is the journal itself; back it up to another file")
    temporary = to.with_name(to.name + ".new")
    temporary.unlink(missing_ok=True)
    with (
        contextlib.closing(sqlite3.connect(source)) as live,
        contextlib.closing(sqlite3.connect(temporary)) as copy,
    ):
        live.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(to)
    sync_folder(to.parent)
