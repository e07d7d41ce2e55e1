"""The journal of a run, opened for writing: every method that returns has made its change durable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from plantain.journal import money, payload, sending, statements, verdicts
from plantain.journal.batches import BatchLedger
from plantain.journal.commit import Committer
from plantain.journal.disk.blobs import BlobStore, sync_folder
from plantain.journal.disk.connect import JOURNAL_NAME, open_for_writing, refuse_foreign
from plantain.journal.disk.filesystem import check_filesystem
from plantain.journal.disk.lock import RunLock
from plantain.journal.disk.space import check_room, raise_if_full
from plantain.journal.errors import RunExists
from plantain.journal.forward import backup, bring_forward
from plantain.journal.reader import JournalReader
from plantain.journal.rows import (
    BlobRef,
    CallResult,
    JsonValue,
    RecordedTask,
    RunHeader,
    StartedCall,
    StoredScore,
    StoredVerdict,
)
from plantain.journal.schema import create_tables
from plantain.journal.sending import SentPicture
from plantain.records import EditTask, SourceImage, Step, TaskState

T = TypeVar("T")

BATCH = 2000
"""Rows of a bulk insertion in one transaction: memory stays flat and others get their turn."""

RECORDED_BATCH = 200
"""Recorded tasks in one transaction: each brings a dozen rows with it."""

TASK_BATCH = 50_000
"""Ids are hashes, so a batch touches pages all over the table: few large sorted ones write far less."""


class Journal:
    """The one writer of a run.

    Methods are called from one or more event loops; each returns when its change would survive a power cut.
    What waits at the same time is committed together. `put_blob` may be called from any thread.

    Attributes:
        run: the run's folder.
        header: what the run is.
        reader, blobs: read what has been committed, and store files.
        batches: jobs at providers and the requests in them.
        on_commit: called with the number of durable events so far (operations and new blobs, counted from
            this opening) after each commit or new blob, in the thread that made it. For observers such as a
            test that kills the process after its k-th durable event.
    """

    def __init__(self, run: Path, lock: RunLock, connection: sqlite3.Connection) -> None:
        self.run = run
        self.reader = JournalReader.open(run)
        self.header: RunHeader = self.reader.header
        self.on_commit: Callable[[int], None] | None = None
        self._lock = lock
        self.blobs = BlobStore(run / "blobs")
        self._events = 0
        self._counting = threading.Lock()
        self._open_edits: set[int] = set()
        self._session = statements.begin_session(connection, os.getpid(), socket.gethostname(), _now())
        self._begun = time.monotonic()
        self._committer = Committer(connection, self._count, self._keep_time)
        self.batches = BatchLedger(self._submit, self.reader)

    @classmethod
    def create(cls, run: Path, header: RunHeader) -> Journal:
        """Makes a new run in a folder that is not one yet, and opens it.

        Raises:
            RunExists: the folder already holds a journal, or files that are not a run's.
            RunLocked: another process is making or writing it.
        """
        _make_folder(run)
        _refuse_other_files(run)
        check_filesystem(run)
        with _locked(run) as lock:
            if (run / JOURNAL_NAME).exists():
                raise RunExists(f"{run} already holds a run; open it, or choose another folder")
            _create_database(run, header)
            return cls._opened(run, lock)

    @classmethod
    def open(cls, run: Path) -> Journal:
        """Opens a run for writing; brings an older journal forward.

        Raises:
            NotARun, NewerJournal: as their names say.
            RunLocked: another process writes to it; pid and host are in the message.
        """
        refuse_foreign(run)
        check_filesystem(run)
        with _locked(run) as lock:
            return cls._opened(run, lock)

    @classmethod
    def _opened(cls, run: Path, lock: RunLock) -> Journal:
        path = run / JOURNAL_NAME
        with contextlib.ExitStack() as undo:
            connection = open_for_writing(path)
            undo.callback(connection.close)
            bring_forward(connection, path)
            if statements.was_killed(connection):
                BlobStore(run / "blobs").sweep()
            journal = cls(run, lock, connection)
            undo.pop_all()
            return journal

    # --- blobs --------------------------------------------------------------------------------------

    def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        """Stores bytes under their SHA-256, durable on return. Any thread; nothing is written twice.

        The reference becomes part of the journal with the settlement or image that names it.

        Raises:
            DiskFull: with the size that the run still needs.
        """
        try:
            reference, is_new = self.blobs.put(data, media_type)
        except OSError as error:
            raise_if_full(self.run, error, len(data))
            raise
        if is_new:
            self._count(1)
        return reference

    # --- the plan -----------------------------------------------------------------------------------

    async def add_images(self, images: Iterable[tuple[SourceImage, BlobRef]]) -> int:
        """Adds images that the run does not have; returns how many were new.

        The record of an image that it has is replaced (consent can be given later), its picture never.

        Raises:
            InputError: an id stands for another picture in this run.
        """
        added = 0
        source = iter(images)
        while batch := list(islice(source, BATCH)):
            added += await self._submit(partial(statements.add_images, images=batch))
        return added

    async def add_tasks(self, tasks: Iterable[EditTask]) -> int:
        """Adds tasks as pending, streaming; ids that the run has are skipped. Returns how many were new."""
        added = 0
        source = iter(tasks)
        while batch := sorted(islice(source, TASK_BATCH), key=lambda task: task.id):
            added += await self._submit(partial(statements.add_tasks, tasks=batch))
        return added

    async def set_meta(self, key: str, value: str) -> None:
        """Stores a value of the run's own, e.g. the digest of its plan. The header's keys are refused."""
        if key in statements.HEADER_KEYS:
            raise ValueError(f"meta {key!r} belongs to the run's header, which does not change")
        await self._submit(partial(statements.set_meta, key=key, value=value))

    # --- calls --------------------------------------------------------------------------------------

    async def start_call(self, call: StartedCall) -> int:
        """Records that a try is about to be sent; returns its id.

        Raises:
            DiskFull: there is no room for what this and the other open calls may bring back.
            ValueError: this try was already started.
        """
        check_room(self.run, call.key.step, len(self._open_edits))
        call_id = await self._submit(partial(statements.start_call, call=call, now=_now()))
        if call.key.step is Step.EDIT:
            self._open_edits.add(call_id)
        return call_id

    async def settle_call(self, settlement: CallResult) -> None:
        """Records everything that a call brought, at once.

        Raises:
            ValueError: the call is unknown or already settled.
        """
        try:
            await self._submit(partial(statements.settle_call, settlement=settlement))
        finally:
            self._open_edits.discard(settlement.call_id)

    async def add_sent(self, pictures: Iterable[SentPicture]) -> None:
        """Records pictures about to be sent beyond this machine; durable before they go."""
        at = _now()
        rows = [replace(picture, at=at) for picture in pictures]
        await self._submit(partial(sending.add_sent, rows=rows))

    async def settle_lost(self, usd: float) -> int:
        """Record what the calls of unknown cost came to, evenly among them; return their number."""
        return await self._submit(partial(money.settle_lost, usd=usd))

    # --- tasks --------------------------------------------------------------------------------------

    async def close_task(self, task_id: str, state: TaskState, round: int, reason: str) -> None:
        """Closes a task: `round` is the round of success or the last one. Raises ValueError if unknown."""
        if state is TaskState.PENDING:
            raise ValueError("a task is closed with a state other than pending")
        await self._submit(
            partial(statements.close_task, task_id=task_id, state=state, round=round, reason=reason)
        )

    async def reopen_tasks(self, ids: Iterable[str]) -> int:
        """Opens a new generation of closed tasks and marks their attempts superseded; pending ones are left.

        Returns how many were reopened.
        """
        reopened = 0
        source = iter(ids)
        while batch := list(islice(source, BATCH)):
            reopened += await self._submit(partial(statements.reopen_tasks, ids=batch))
        return reopened

    async def continue_tasks(self, ids: Iterable[str], start: Step | None = None) -> list[str]:
        """Makes stopped tasks pending again in their generation, so that nothing that was paid for is asked again.

        The call that stopped each has more tries; with `start`, its round is made again from an earlier step. Other
        tasks are left. Returns the ids that were stopped.
        """
        continued: list[str] = []
        source = iter(ids)
        while batch := list(islice(source, BATCH)):
            continued += await self._submit(partial(statements.continue_tasks, ids=batch, start=start))
        return continued

    async def extend_tasks(self, ids: Iterable[str]) -> int:
        """Makes closed tasks pending again in the same generation, for plans that have grown: what they have counts.

        Returns how many were closed.
        """
        extended = 0
        source = iter(ids)
        while batch := list(islice(source, BATCH)):
            extended += await self._submit(partial(statements.extend_tasks, ids=batch))
        return extended

    async def repeat_verdict(self, task_id: str, generation: int, *, round: int, earlier: int) -> None:
        """Gives an attempt the verdicts and scores of an earlier one, whose picture and instruction it shares."""
        again = partial(verdicts.repeat_verdict, task_id=task_id, generation=generation)
        await self._submit(partial(again, round=round, earlier=earlier))

    async def add_scores(self, scores: Iterable[StoredScore]) -> int:
        """Stores scores; a metric computed again replaces its old value. Returns how many were stored."""
        stored, source = 0, iter(scores)
        while batch := list(islice(source, BATCH)):
            stored += await self._submit(partial(statements.add_scores, scores=batch))
        return stored

    async def correct(self, correction: StoredVerdict) -> None:
        """Keeps a person's verdict beside those that are there: nothing that was decided changes."""
        await self._submit(partial(verdicts.put_correction, correction=correction))

    async def make_decisive(self, judge: str, draw: int) -> int:
        """Lets one judge's verdicts decide wherever it gave one; returns of how many tasks. The older ones stay."""
        return await self._submit(partial(statements.make_decisive, judge=judge, draw=draw))

    async def add_recorded(self, tasks: Iterable[RecordedTask]) -> int:
        """Stores closed tasks that another run made, each whole, without calls; ids that the run has are skipped.

        Returns how many were new.
        """
        added, source = 0, iter(tasks)
        while batch := list(islice(source, RECORDED_BATCH)):
            added += await self._submit(partial(statements.add_recorded, tasks=batch))
        return added

    # --- the end ------------------------------------------------------------------------------------

    async def end_session(self, replayed: int, detail: Mapping[str, JsonValue]) -> None:
        """Records this process's telemetry: answers taken from the memo, peak memory, and `detail`."""
        text = payload.to_json(dict(detail))
        unit = 1e6 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
        ended = partial(statements.end_session, session=self._session, now=_now(), replayed=replayed)
        await self._submit(partial(ended, peak=peak, detail=text))

    async def backup(self, to: Path) -> None:
        """Copies the journal, live and consistent, to the file `to` by SQLite's own backup. No blobs."""
        try:
            await asyncio.to_thread(backup, self.run / JOURNAL_NAME, to)
        except (OSError, sqlite3.OperationalError) as error:
            raise_if_full(to.parent, error, (self.run / JOURNAL_NAME).stat().st_size)
            raise

    async def close(self) -> None:
        """Commits what was handed in, closes the database and gives the run free. Later calls do nothing."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self.reader.close()
        self._committer.close(self._farewell)
        self._lock.release()

    def _farewell(self, connection: sqlite3.Connection) -> None:
        self._keep_time(connection)
        statements.mark_ended(connection, self._session, _now())

    def _keep_time(self, connection: sqlite3.Connection) -> None:
        """Notes how long this process has worked, by a clock that nobody sets."""
        statements.keep_time(connection, self._session, time.monotonic() - self._begun)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- within -------------------------------------------------------------------------------------

    async def _submit(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self._committer.submit(operation)
        except sqlite3.OperationalError as error:
            raise_if_full(self.run, error)
            raise

    def _count(self, events: int) -> None:
        with self._counting:
            self._events += events
            observer = self.on_commit
            if observer is not None and events:
                observer(self._events)


def _refuse_other_files(run: Path) -> None:
    """A folder that holds anything but the beginning of a run is somebody's own."""
    ours = ("lock", "blobs", JOURNAL_NAME)
    foreign = sorted(path.name for path in run.iterdir() if not path.name.startswith(ours))
    if foreign:
        raise RunExists(f"{run} holds other files ({foreign[0]}); a run needs a folder of its own")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextlib.contextmanager
def _locked(run: Path) -> Iterator[RunLock]:
    """Takes the run's lock, and gives it back only if what follows fails; a full disk is told as such."""
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
    """Makes a folder and what is missing above it, durably."""
    missing = [level for level in (folder, *folder.parents) if not level.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for level in missing:
        sync_folder(level.parent)


def _create_database(run: Path, header: RunHeader) -> None:
    """Builds the journal under another name and renames it: a file of this name is always whole."""
    path = run / JOURNAL_NAME
    temporary = path.with_name(path.name + ".new")
    for leftover in run.glob(temporary.name + "*"):
        leftover.unlink()
    with contextlib.closing(open_for_writing(temporary)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        create_tables(connection)
        statements.write_header(connection, header)
        connection.execute("COMMIT")
    (run / "blobs").mkdir(exist_ok=True)
    temporary.replace(path)
    sync_folder(run)
