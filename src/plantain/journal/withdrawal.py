"""Taking images and everything that came of them out of a run for good, so that what is left is whole.

The rows go in one transaction, which also notes the blobs that nothing refers to any more. Then those files go, and
the database is written anew without what was deleted. A process killed in between leaves the note, and the next call
goes on from it. What the calls had cost stays in the run's account, and keyed hashes of the tasks keep them away.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson

from plantain.journal.disk.blobs import BlobStore, sync_folder
from plantain.journal.disk.connect import JOURNAL_NAME, open_for_writing, refuse_foreign, temporary_changes
from plantain.journal.disk.lock import RunLock
from plantain.journal.forward import bring_forward, forget_older
from plantain.records import InputError, Withdrawal

META = "withdrawn"
NOTE = "withdrawal"
"""Of a withdrawal that has still something to clear away."""

_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a withdrawal takes out of a run."""

    images: int = 0
    tasks: int = 0
    attempts: int = 0
    calls: int = 0
    blobs: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """What a withdrawal has still to clear away: files of blobs, and places that name its images and tasks."""

    blobs: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """What a run remembers of everything withdrawn from it; no id can be read from it.

    Attributes:
        salt: key of the marks.
        marks: keyed hashes of groups, images and tasks.
        releases: paths of releases that hold something of a group or image, by its mark.
        calls, cost_usd: what the calls that were removed had counted and cost, at the most they can have cost where
            that never became known.
        others: marks of runs that were merged into this one, by their key.
    """

    salt: str = ""
    marks: tuple[str, ...] = ()
    releases: dict[str, list[str]] = field(default_factory=dict)
    calls: int = 0
    cost_usd: float = 0.0
    others: dict[str, list[str]] = field(default_factory=dict)

    def mark(self, text: str) -> str:
        """The keyed hash that stands for a text."""
        return _mark(self.salt, text)

    def marks_of(self, text: str) -> list[str]:
        """The marks under which what this text names was withdrawn; empty where it was not."""
        known = {**self.others, **({self.salt: list(self.marks)} if self.salt else {})}
        return [mark for salt, marks in known.items() if (mark := _mark(salt, text)) in marks]

    def holds(self, text: str) -> bool:
        """Whether what this text names was withdrawn."""
        return bool(self.marks_of(text))


def _mark(salt: str, text: str) -> str:
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()[: 2 * _ID_BYTES]


def joined_accounts(accounts: Iterable[Account]) -> Account:
    """One account of runs that are merged: the marks stay under the keys that they were made with."""
    joined = Account()
    for account in accounts:
        own = {account.salt: list(account.marks)} if account.salt else {}
        joined = replace(
            joined,
            releases=joined.releases | account.releases,
            calls=joined.calls + account.calls,
            cost_usd=joined.cost_usd + account.cost_usd,
            others=joined.others | account.others | own,
        )
    return joined


def write_account(account: Account) -> str:
    """As it stands in a run's meta under `META`."""
    return orjson.dumps(asdict(account)).decode()


def account_of(connection: sqlite3.Connection) -> Account:
    """The run's account of withdrawals; an empty one where there was none."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (META,)).fetchone()
    if row is None:
        return Account()
    record = orjson.loads(row[0])
    return Account(**{**record, "marks": tuple(record["marks"])})


def extent_of(connection: sqlite3.Connection, image_ids: Collection[str]) -> Extent:
    """What withdrawing these images would take; changes nothing."""
    with temporary_changes(connection), _chosen(connection, image_ids):
        return _extent(connection)


@contextlib.contextmanager
def held_for_withdrawal(run: Path) -> Iterator[sqlite3.Connection]:
    """The run's database for its only writer; deleted rows are overwritten. Raises NotARun, RunLocked."""
    refuse_foreign(run)
    lock = RunLock(run)
    try:
        with contextlib.closing(open_for_writing(run / JOURNAL_NAME)) as connection:
            bring_forward(connection, run / JOURNAL_NAME)
            connection.execute("PRAGMA secure_delete = ON")
            yield connection
    finally:
        lock.release()


def take_out(
    connection: sqlite3.Connection,
    asked: Withdrawal,
    image_ids: Collection[str],
    releases: Iterable[str],
    groups: Collection[str] = (),
) -> Extent:
    """Removes the rows of these images in one transaction, and notes which blobs must go.

    Args:
        connection: of the run's only writer.
        asked: what a person named.
        image_ids: the images that this means here.
        releases: folders that hold something of them.
        groups: further groups of which no image is left.

    Raises:
        InputError: answers for them are still to come from a batch job.
    """
    account = account_of(connection)
    account = account if account.salt else replace(account, salt=os.urandom(32).hex())
    with _chosen(connection, image_ids):
        _refuse_waiting(connection)
        extent = _extent(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            account = _added(connection, account, asked, releases)
            _leave_note(connection, {*asked.groups, *groups})
            _delete(connection)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (META, write_account(account)))
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return extent


def finish(connection: sqlite3.Connection, run: Path, clear: Callable[[Note], None]) -> bool:
    """Removes what the note names and what deleted rows left behind; False where nothing was left to do.

    Args:
        connection: of the run's only writer.
        run: its folder.
        clear: clears what else in the folder names the images; may be called again with the same.

    Raises:
        InputError: another process reads the run, so that its log cannot be emptied yet.
    """
    note = _note(connection)
    if note is None:
        return False
    store = BlobStore(run / "blobs")
    folders = set()
    for sha256 in note.blobs:
        path = store.path(sha256)
        path.unlink(missing_ok=True)
        store.thumbnail(sha256).unlink(missing_ok=True)
        folders.add(path.parent)
    for folder in sorted(folders):
        if folder.is_dir():
            sync_folder(folder)
    clear(note)
    forget_older(run / JOURNAL_NAME)
    connection.execute("VACUUM")
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise InputError(
            f"{run}: another process is reading this run; run the same command again when it has ended"
        )
    connection.execute("DELETE FROM meta WHERE key = ?", (NOTE,))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return True


def _note(connection: sqlite3.Connection) -> Note | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (NOTE,)).fetchone()
    return (
        None
        if row is None
        else Note(**{name: tuple(values) for name, values in orjson.loads(row[0]).items()})
    )


@contextlib.contextmanager
def _chosen(connection: sqlite3.Connection, image_ids: Collection[str]) -> Iterator[None]:
    """Temporary tables of the images, their tasks, and the blobs that only they refer to."""
    connection.execute("PRAGMA temp_store = MEMORY")
    tables = ("gone_image", "gone_task", "gone_blob")
    for table in tables:
        connection.execute(f"CREATE TEMP TABLE {table}(id TEXT PRIMARY KEY) WITHOUT ROWID")
    try:
        connection.executemany("INSERT OR IGNORE INTO gone_image VALUES (?)", [(name,) for name in image_ids])
        connection.execute(
            "INSERT INTO gone_task SELECT id FROM task WHERE image_id IN (SELECT id FROM gone_image)"
        )
        connection.execute(
            "INSERT INTO gone_blob SELECT sha FROM ("
            "SELECT edited AS sha FROM attempt WHERE task IN (SELECT id FROM gone_task) "
            "UNION SELECT raw FROM attempt WHERE task IN (SELECT id FROM gone_task) "
            "UNION SELECT mask FROM attempt WHERE task IN (SELECT id FROM gone_task) "
            "UNION SELECT prepared FROM image WHERE id IN (SELECT id FROM gone_image)) WHERE sha IS NOT NULL"
        )
        connection.execute(
            "DELETE FROM gone_blob WHERE id IN ("
            "SELECT edited FROM attempt WHERE task NOT IN (SELECT id FROM gone_task) AND edited IS NOT NULL "
            "UNION SELECT raw FROM attempt WHERE task NOT IN (SELECT id FROM gone_task) AND raw IS NOT NULL "
            "UNION SELECT mask FROM attempt WHERE task NOT IN (SELECT id FROM gone_task) AND mask IS NOT NULL "
            "UNION SELECT prepared FROM image WHERE id NOT IN (SELECT id FROM gone_image))"
        )
        yield
    finally:
        for table in tables:
            connection.execute(f"DROP TABLE {table}")


def _extent(connection: sqlite3.Connection) -> Extent:
    def count(what: str) -> int:
        return int(connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0])

    size = connection.execute(
        "SELECT TOTAL(bytes) FROM blob WHERE sha256 IN (SELECT id FROM gone_blob)"
    ).fetchone()[0]
    of_tasks = "WHERE task IN (SELECT id FROM gone_task)"
    return Extent(
        images=count("image WHERE id IN (SELECT id FROM gone_image)"),
        tasks=count("gone_task"),
        attempts=count(f"attempt {of_tasks}"),
        calls=count(f"call {of_tasks}"),
        blobs=count("gone_blob"),
        bytes=int(size),
    )


def _refuse_waiting(connection: sqlite3.Connection) -> None:
    """Their answers would arrive for tasks that are gone, and the request files hold the pictures."""
    waiting = connection.execute(
        "SELECT count(DISTINCT j.key) FROM batch_job j JOIN batch_request r ON r.job = j.key "
        "JOIN call c ON c.id = r.call WHERE j.state <> 'closed' AND c.task IN (SELECT id FROM gone_task)"
    ).fetchone()[0]
    if waiting:
        raise InputError(
            f"{waiting} batch jobs still hold requests of these images: run `plantain build` until they have ended, or "
            "cancel them at the provider, then withdraw again"
        )


def _added(
    connection: sqlite3.Connection, account: Account, asked: Withdrawal, releases: Iterable[str]
) -> Account:
    """The account with this withdrawal in it."""
    calls, cost = connection.execute(
        "SELECT count(*), TOTAL(COALESCE(cost_usd, reserved_usd, 0)) FROM call "
        "WHERE task IN (SELECT id FROM gone_task)"
    ).fetchone()
    tasks = [task for (task,) in connection.execute("SELECT id FROM gone_task ORDER BY id")]
    named = [account.mark(text) for text in asked.marks().values()]
    return replace(
        account,
        marks=tuple(sorted({*account.marks, *named, *(account.mark(f"task {task}") for task in tasks)})),
        releases=account.releases
        | {mark: sorted({*account.releases.get(mark, []), *releases}) for mark in named},
        calls=account.calls + int(calls),
        cost_usd=account.cost_usd + float(cost),
    )


def _leave_note(connection: sqlite3.Connection, groups: Collection[str]) -> None:
    """Notes what must be cleared away, beside what an earlier withdrawal has left to clear."""
    before = _note(connection) or Note()

    def gone(table: str, known: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({*known, *(name for (name,) in connection.execute(f"SELECT id FROM {table}"))}))

    note = Note(
        gone("gone_blob", before.blobs),
        gone("gone_image", before.images),
        gone("gone_task", before.tasks),
        tuple(sorted({*before.groups, *groups})),
    )
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (NOTE, orjson.dumps(note).decode()))


def _delete(connection: sqlite3.Connection) -> None:
    """Rows in the order of their references; the counters follow by their triggers."""
    for table in ("score", "criterion", "verdict", "attempt"):
        connection.execute(f"DELETE FROM {table} WHERE task IN (SELECT id FROM gone_task)")
    connection.execute(
        "DELETE FROM batch_request WHERE call IN (SELECT id FROM call WHERE task IN (SELECT id FROM gone_task))"
    )
    connection.execute("DELETE FROM call WHERE task IN (SELECT id FROM gone_task)")
    connection.execute("DELETE FROM task WHERE id IN (SELECT id FROM gone_task)")
    # That something was sent, where and under which agreement, outlives what it was.
    connection.execute(
        "UPDATE sent SET image = '', picture = '', call = NULL WHERE image IN (SELECT id FROM gone_image)"
    )
    connection.execute("DELETE FROM image WHERE id IN (SELECT id FROM gone_image)")
    connection.execute("DELETE FROM blob WHERE sha256 IN (SELECT id FROM gone_blob)")


def meta_value(connection: sqlite3.Connection, key: str) -> str | None:
    """A value of the run's meta, while it is held for a withdrawal."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def replace_meta(connection: sqlite3.Connection, key: str, value: str | None) -> None:
    """Puts another value in its place; None takes it out."""
    if value is None:
        connection.execute("DELETE FROM meta WHERE key = ?", (key,))
    else:
        connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
