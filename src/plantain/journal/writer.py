"""The journal of a run, opened for writing: every method that returns has made its change durable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

from plantain.journal import sending, statements
from plantain.journal.batches import BatchLedger
from plantain.journal.blobs import BlobStore, check_room, raise_if_full, sync_folder
from plantain.journal.commit import Committer
from plantain.journal.connect import (
    JOURNAL_NAME,
    RunLock,
    check_filesystem,
    open_for_writing,
    refuse_foreign,
    remove_unfinished,
)
from plantain.journal.reader import JournalReader
from plantain.journal.rows import (
    BlobRef,
    CallResult,
    RecordedTask,
    RunHeader,
    StartedCall,
    StoredScore,
    StoredVerdict,
    create_tables,
)
from plantain.journal.sending import SentImage
from plantain.records import EditTask, InputError, SourceImage, Step, TaskState

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")

BATCH, RECORDED_BATCH, TASK_BATCH = 2000, 200, 50_000
"""Rows, recorded tasks (a dozen rows each) and tasks of a bulk insertion in one transaction, so that memory stays flat
and others get their turn. Ids of tasks are hashes all over the table: few large sorted batches write far less."""


class Journal:
    """The journal of a run, opened for writing by `create` or `open`; a run has one writer at a time.

    Methods are called from one or more event loops; each returns when its change would survive a power cut.
    Operations that wait at the same time are committed together. `put_blob` may be called from any thread.

    Attributes:
        run, header: the run's folder, and its name, seed and frozen settings.
        reader, blobs: the reader of committed rows, and the store of files.
        batches: the record of batch jobs and their requests.
    """

    def __init__(self, run: Path, lock: RunLock, connection: sqlite3.Connection) -> None:
        self.run = run
        self.reader = JournalReader.open(run)
        self.header: RunHeader = self.reader.header
        self._lock = lock
        self.blobs = BlobStore(run / "blobs")
        self._open_edits: set[int] = set()
        self._session = statements.start_session(connection, os.getpid(), socket.gethostname(), _now())
        self._committer = Committer(connection)

    @classmethod
    def create(cls, run: Path, header: RunHeader) -> Journal:
        """Make a new run in an empty or missing folder, and open it.

        Raises:
            InputError: the folder has a journal, or files that are not a run's.
            RunLocked: another process is making or writing it.
        """
        _make_folder(run)
        _refuse_other_files(run)
        check_filesystem(run)
        with _locked(run) as lock:
            if (run / JOURNAL_NAME).exists():
                raise InputError(f"{run} already contains a run; open it, or choose another folder")
            _create_database(run, header)
            return cls._opened(run, lock)

    @classmethod
    def open(cls, run: Path) -> Journal:
        """Open a run for writing, and remove unfinished files of killed processes.

        Raises:
            InputError: not a run, of another version, or on a network file system.
            RunLocked: another process writes to it; pid and host are in the message.
        """
        refuse_foreign(run)
        check_filesystem(run)
        with _locked(run) as lock:
            return cls._opened(run, lock)

    @classmethod
    def _opened(cls, run: Path, lock: RunLock) -> Journal:
        remove_unfinished(run.absolute().parent)
        with contextlib.ExitStack() as undo:
            connection = open_for_writing(run / JOURNAL_NAME)
            undo.callback(connection.close)
            if statements.was_killed(connection):
                BlobStore(run / "blobs").collect(connection)
            journal = cls(run, lock, connection)
            undo.pop_all()
            return journal

    @property
    def batches(self) -> BatchLedger:
        return BatchLedger(self._submit, self.reader)

    def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        """Store bytes under their SHA-256, durably; known bytes are not written again. Thread-safe.

        The reference becomes part of the journal with the call or image that names it. Raise DiskFull.
        """
        try:
            return self.blobs.put(data, media_type)[0]
        except OSError as error:
            raise_if_full(self.run, error, len(data))
            raise

    async def add_images(self, images: Iterable[tuple[SourceImage, BlobRef]]) -> int:
        """Add images, or replace the records of known ones, never their pixels; return how many were new.

        Raises:
            InputError: an id belongs to another image of this run.
        """
        return await self._in_batches(statements.add_images, images, BATCH)

    async def add_tasks(self, tasks: Iterable[EditTask]) -> int:
        """Add tasks as pending, streaming; known ids are skipped. Return how many were new."""
        return await self._in_batches(statements.add_tasks, tasks, TASK_BATCH)

    async def set_meta(self, key: str, value: str) -> None:
        """Store a value of the run, e.g. the digest of its plan, under a key that is not one of the header."""
        await self._submit(statements.execute, "INSERT OR REPLACE INTO meta VALUES (?, ?)", key, value)

    async def start_call(self, call: StartedCall) -> int:
        """Record durably that a call is about to be sent; return the id for `settle_call`.

        Raises:
            DiskFull: the free space may not suffice for the images of all open calls.
            ValueError: this try of the call was already started.
        """
        check_room(self.run, call.key.step, len(self._open_edits))
        call_id = await self._submit(statements.start_call, call, _now())
        if call.key.step is Step.EDIT:
            self._open_edits.add(call_id)
        return call_id

    async def settle_call(self, settlement: CallResult) -> None:
        """Record all results of an open call in one transaction. Raise ValueError if no such call is open."""
        try:
            await self._submit(statements.settle_call, settlement)
        finally:
            self._open_edits.discard(settlement.call_id)

    async def add_sent(self, images: Iterable[SentImage]) -> None:
        """Record images, durably, before they are sent to another machine."""
        at = _now()
        await self._submit(sending.add_sent, [replace(image, at=at) for image in images])

    async def settle_lost(self, usd: float) -> int:
        """Divide the billed US dollars evenly among the calls of unknown cost; return their number."""
        return await self._submit(statements.settle_lost, usd)

    async def close_task(self, task_id: str, state: TaskState, round: int, reason: str) -> None:
        """Close a task in a state other than pending; `round`: of success, or the last. ValueError: unknown task."""
        await self._submit(statements.close_task, task_id, state, round, reason)

    async def reopen_tasks(self, ids: Iterable[str]) -> int:
        """Restart closed tasks in a new generation, and mark their attempts superseded; return their number."""
        return await self._in_batches(statements.reopen_tasks, ids, BATCH)

    async def continue_tasks(self, ids: Iterable[str]) -> int:
        """Make stopped tasks pending again in their generation, so that finished calls are reused.

        The call that stopped each is tried again. Other tasks are skipped. Return the number of stopped tasks.
        """
        return await self._in_batches(statements.continue_tasks, ids, BATCH)

    async def extend_tasks(self, ids: Iterable[str]) -> int:
        """Make closed tasks pending again, keeping their rounds, for a plan that has grown; return their number."""
        return await self._in_batches(statements.extend_tasks, ids, BATCH)

    async def add_scores(self, scores: Iterable[StoredScore]) -> int:
        """Store scores; a metric computed again replaces its old value. Return how many were stored."""
        return await self._in_batches(statements.add_scores, scores, BATCH)

    async def correct(self, correction: StoredVerdict) -> None:
        """Store a human reader's verdict in addition to the others; no decision changes."""
        await self._submit(statements.put_correction, correction)

    async def make_decisive(self, judge: str, draw: int) -> int:
        """Close tasks again by a judge's verdicts of this draw; return the number of edits that a check rejects."""
        return await self._submit(statements.make_decisive, judge, draw)

    async def add_recorded(self, tasks: Iterable[RecordedTask]) -> int:
        """Store complete closed tasks of another run, without calls; skip known ids. Return the number of new ones."""
        return await self._in_batches(statements.add_recorded, tasks, RECORDED_BATCH)

    async def end_session(self, replayed: int) -> None:
        """Record that this process ends, and the number of answers that it reused."""
        sql = "UPDATE session SET ended_at = ?, replayed = ? WHERE id = ?"
        await self._submit(statements.execute, sql, _now(), replayed, self._session)

    async def close(self) -> None:
        """Commit submitted operations, close the database and release the run. Later calls do nothing."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self.reader.close()
        self._committer.close(self._farewell)
        self._lock.release()

    def _farewell(self, connection: sqlite3.Connection) -> None:
        ended = "UPDATE session SET ended_at = ? WHERE id = ? AND ended_at IS NULL"
        connection.execute(ended, (_now(), self._session))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _submit(
        self,
        operation: Callable[Concatenate[sqlite3.Connection, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        try:
            return await self._committer.submit(lambda connection: operation(connection, *arguments, **named))
        except sqlite3.OperationalError as error:
            raise_if_full(self.run, error)
            raise

    async def _in_batches(
        self, operation: Callable[[sqlite3.Connection, list[Item]], int], items: Iterable[Item], size: int
    ) -> int:
        total, source = 0, iter(items)
        while batch := list(islice(source, size)):
            total += await self._submit(operation, batch)
        return total


def _refuse_other_files(run: Path) -> None:
    """Raise InputError for a folder with any file that a new run does not have."""
    ours = ("lock", "blobs", JOURNAL_NAME)
    foreign = sorted(path.name for path in run.iterdir() if not path.name.startswith(ours))
    if foreign:
        raise InputError(f"{run} contains other files ({foreign[0]}); a run needs a folder of its own")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextlib.contextmanager
def _locked(run: Path) -> Iterator[RunLock]:
    """Take the run's lock; release it only if the body fails. A full disk is reported as such."""
    try:
        lock = RunLock(run)
        with contextlib.ExitStack() as undo:
            undo.callback(lock.release)
            yield lock
            undo.pop_all()
    except (OSError, sqlite3.OperationalError) as error:
        raise_if_full(run, error)
        raise


def _make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, durably."""
    missing = [level for level in (folder, *folder.parents) if not level.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for level in missing:
        sync_folder(level.parent)


def _create_database(run: Path, header: RunHeader) -> None:
    """Build the journal under another name and rename it: a file of this name is always complete."""
    path = run / JOURNAL_NAME
    temporary = path.with_name(path.name + ".new")
    for leftover in run.glob(temporary.name + "*"):
        leftover.unlink()
    with contextlib.closing(open_for_writing(temporary)) as connection:
        create_tables(connection)
        connection.execute("BEGIN IMMEDIATE")
        statements.write_header(connection, header)
        connection.execute("COMMIT")
    (run / "blobs").mkdir(exist_ok=True)
    temporary.replace(path)
    sync_folder(run)
