"""Remove images and everything derived from them from a run permanently; the run stays consistent.

The rows are deleted in one transaction. Then every file that no row names is deleted, whatever wrote it, and the
database is rewritten without the deleted rows. A process killed in between leaves the note, and
the next call continues from it. The cost of the calls stays in the run's account, and keyed hashes of the tasks keep
them from being planned again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.journal.blobs import BlobStore
from plantain.journal.connect import held, temporary_changes
from plantain.journal.reader import (
    IS_LOST,
    REMEMBERED,
    WITHDRAWN,
    Account,
    account_of,
    assumed_usd,
    meta_value,
    money_by_step,
)
from plantain.journal.rows import from_json, to_json
from plantain.records import InputError, Withdrawal

NOTE = "withdrawal"
"""Meta key of a withdrawal that has still something to clear away."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Numbers of rows and files that a withdrawal removes from a run; `bytes` is the size of the files (blobs)."""

    images: int = 0
    tasks: int = 0
    attempts: int = 0
    calls: int = 0
    blobs: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """The images, tasks and groups of an unfinished withdrawal, whose files must still be removed."""

    images: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def replace_meta(connection: sqlite3.Connection, key: str, value: str | None) -> None:
    """Replace a value of the run's meta; None removes it."""
    if value is None:
        connection.execute("DELETE FROM meta WHERE key = ?", (key,))
    else:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def extent_of(connection: sqlite3.Connection, image_ids: Collection[str]) -> Extent:
    """Count the rows, blobs and bytes that withdrawing these images would remove, without changing the run."""
    with temporary_changes(connection), _chosen(connection, image_ids):
        return _extent(connection)


@contextlib.contextmanager
def held_for_withdrawal(run: Path) -> Iterator[sqlite3.Connection]:
    """Lock a run and open its database so that deleted rows are overwritten. Raise InputError or RunLocked."""
    with held(run) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        yield connection


def take_out(
    connection: sqlite3.Connection,
    asked: Withdrawal,
    image_ids: Collection[str],
    releases: Iterable[str],
    groups: Collection[str] = (),
) -> Extent:
    """Remove the rows of these images in one transaction; return the extent. Call `finish` afterwards.

    Args:
        asked: names given by the user; `image_ids` are the matching images of this run.
        releases: folders of releases that contain the images or their edits.
        groups: further groups of which no image is left.

    Raises:
        InputError: a batch job has not answered calls about them yet.
    """
    account = account_of(connection)
    account = account if account.salt else replace(account, salt=os.urandom(32).hex())
    with _chosen(connection, image_ids):
        _refuse_waiting(connection)
        extent = _extent(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            _keep_assumed(connection)
            account = _added(connection, account, asked, releases)
            _leave_note(connection, {*asked.groups, *groups})
            _delete(connection)
            replace_meta(connection, WITHDRAWN, to_json(account))
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return extent


def finish(connection: sqlite3.Connection, run: Path, clear: Callable[[Note], None]) -> bool:
    """Complete a withdrawal: remove the files of the images in its note, then the note; False without a note.

    `clear` removes other files in the run's folder that name the images; it may be called again with the same note.

    Raises:
        InputError: another process reads the run, so that its log cannot be emptied yet.
    """
    note = _note(connection)
    if note is None:
        return False
    BlobStore(run / "blobs").collect(connection)
    clear(note)
    connection.execute("VACUUM")
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise InputError(
            f"{run}: another process is reading this run; run the same command again when it has ended"
        )
    replace_meta(connection, NOTE, None)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return True


def _note(connection: sqlite3.Connection) -> Note | None:
    text = meta_value(connection, NOTE)
    return None if text is None else from_json(Note, text)


_OF_TASKS = "task IN (SELECT id FROM gone_task)"
_IMAGE_COLUMNS = ("edited", "raw", "mask")


@contextlib.contextmanager
def _chosen(connection: sqlite3.Connection, image_ids: Collection[str]) -> Iterator[None]:
    """Temporary tables of the images, their tasks, and the blobs that nothing else refers to."""
    connection.execute("PRAGMA temp_store = MEMORY")
    tables = ("gone_image", "gone_task", "gone_blob")
    for table in tables:
        connection.execute(f"CREATE TEMP TABLE {table}(id TEXT PRIMARY KEY) WITHOUT ROWID")

    of_attempts = (
        f"SELECT {column} FROM attempt WHERE task NOT IN (SELECT id FROM gone_task) AND {column} IS NOT NULL"
        for column in _IMAGE_COLUMNS
    )
    of_images = "SELECT prepared FROM image WHERE id NOT IN (SELECT id FROM gone_image)"
    stay = " UNION ".join((*of_attempts, of_images))
    try:
        connection.executemany("INSERT OR IGNORE INTO gone_image VALUES (?)", [(name,) for name in image_ids])
        connection.execute(
            "INSERT INTO gone_task SELECT id FROM task WHERE image_id IN (SELECT id FROM gone_image)"
        )
        connection.execute(f"INSERT INTO gone_blob SELECT sha256 FROM blob WHERE sha256 NOT IN ({stay})")
        yield
    finally:
        for table in tables:
            connection.execute(f"DROP TABLE {table}")


def _extent(connection: sqlite3.Connection) -> Extent:
    def count(what: str) -> int:
        return int(connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0])

    size = "SELECT TOTAL(bytes) FROM blob WHERE sha256 IN (SELECT id FROM gone_blob)"
    return Extent(
        images=count("image WHERE id IN (SELECT id FROM gone_image)"),
        tasks=count("gone_task"),
        attempts=count(f"attempt WHERE {_OF_TASKS}"),
        calls=count(f"call WHERE {_OF_TASKS}"),
        blobs=count("gone_blob"),
        bytes=int(connection.execute(size).fetchone()[0]),
    )


def _refuse_waiting(connection: sqlite3.Connection) -> None:
    """Their answers would arrive for tasks that are gone, and the request files contain the images."""
    waiting = connection.execute(
        "SELECT count(DISTINCT j.key) FROM batch_job j JOIN batch_request r ON r.job = j.key "
        f"JOIN call c ON c.id = r.call WHERE j.state <> 'closed' AND c.{_OF_TASKS}"
    ).fetchone()[0]
    if waiting:
        raise InputError(
            f"{waiting} batch jobs still hold requests of these images: resume the build until they have ended, or "
            "cancel them at the provider, then withdraw again"
        )


def _keep_assumed(connection: sqlite3.Connection) -> None:
    """Reserve the assumed cost of each call of unknown cost, in the writer's transaction.

    A withdrawal removes known costs by which the others are estimated: what those are charged must not rise.
    """
    connection.executemany(
        f"UPDATE call SET reserved_usd = ? WHERE model = ? AND step = ? AND {IS_LOST}",
        [
            (assumed_usd(money.latest[-REMEMBERED:], money.lost, money.lost_most) / money.lost, model, step)
            for (model, step), money in money_by_step(connection).items()
            if money.lost
        ],
    )


def _added(
    connection: sqlite3.Connection, account: Account, asked: Withdrawal, releases: Iterable[str]
) -> Account:
    """The account with this withdrawal in it."""
    (cost,) = connection.execute(f"SELECT TOTAL(cost_usd) FROM call WHERE {_OF_TASKS}").fetchone()
    for money in money_by_step(connection, _OF_TASKS).values():
        cost += assumed_usd(money.latest[-REMEMBERED:], money.lost, money.lost_most)
    tasks = [task for (task,) in connection.execute("SELECT id FROM gone_task ORDER BY id")]
    named = [account.mark(text) for text in asked.marks().values()]
    marks = {*account.marks.get(account.salt, ()), *named, *(account.mark(f"task {task}") for task in tasks)}
    return replace(
        account,
        marks=account.marks | {account.salt: sorted(marks)},
        releases=account.releases
        | {mark: sorted({*account.releases.get(mark, []), *releases}) for mark in named},
        cost_usd=account.cost_usd + float(cost),
    )


def _leave_note(connection: sqlite3.Connection, groups: Collection[str]) -> None:
    """Note the images, tasks and groups to clear, in addition to those of an unfinished withdrawal."""
    before = _note(connection) or Note()

    def gone(table: str, known: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({*known, *(name for (name,) in connection.execute(f"SELECT id FROM {table}"))}))

    images, tasks = gone("gone_image", before.images), gone("gone_task", before.tasks)
    note = Note(images, tasks, tuple(sorted({*before.groups, *groups})))
    replace_meta(connection, NOTE, to_json(note))


def _delete(connection: sqlite3.Connection) -> None:
    """Delete the rows in the order of their references."""
    connection.execute(f"DELETE FROM batch_request WHERE call IN (SELECT id FROM call WHERE {_OF_TASKS})")
    for table in ("score", "criterion", "verdict", "attempt", "call"):
        connection.execute(f"DELETE FROM {table} WHERE {_OF_TASKS}")
    connection.execute("DELETE FROM task WHERE id IN (SELECT id FROM gone_task)")
    # Rows about sent images stay, without the image: destination and agreement remain known.
    connection.execute(
        "UPDATE sent SET image = '', file = '', call = NULL WHERE image IN (SELECT id FROM gone_image)"
    )
    connection.execute("DELETE FROM image WHERE id IN (SELECT id FROM gone_image)")
    connection.execute("DELETE FROM blob WHERE sha256 IN (SELECT id FROM gone_blob)")
