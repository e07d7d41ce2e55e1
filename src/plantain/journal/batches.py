"""Batch jobs in the journal: which requests were sent in which job, so that no process ever sends one twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from plantain.journal.payload import clean_text
from plantain.journal.reader import JournalReader

T = TypeVar("T")

current_call: ContextVar[int] = ContextVar("current_call")
"""Id of the journalled call that is being sent in this task, for a transport that keeps its request in a job."""


class LeftWithJob(Exception):
    """The run stops, and the request stays in a job that goes on without it: its call remains open in the journal.

    Its text says why the run must stop; it is empty where somebody asked for that.
    """


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job.

    Attributes:
        key: our own name for it, which the provider is told.
        model, path: whom it asks, and by which of the provider's formats.
        state: formed, running, ended or closed.
        provider_id: the provider's name for it, "" while it has none.
        reason: why it ended without all of its answers, or what stands in its way now.
    """

    key: str
    model: str
    path: str
    state: str
    provider_id: str = ""
    reason: str = ""


_JOB = "SELECT key, model, path, state, provider_id, reason FROM batch_job"
_SETTLED = (
    "SELECT key FROM batch_job WHERE state = 'ended' AND NOT EXISTS (SELECT 1 FROM batch_request r "
    "JOIN call c ON c.id = r.call WHERE r.job = batch_job.key AND c.state = 'started')"
)
FILES_LEFT = "its files may still lie at the provider"
"""Why a closed job is not done with: they hold images, and could not be deleted."""

_NEVER_SENT = (
    "SELECT DISTINCT c.id FROM batch_request r JOIN call c ON c.id = r.call WHERE c.state = 'started' "
    "AND NOT EXISTS (SELECT 1 FROM batch_request o WHERE o.call = c.id AND o.job IS NOT NULL)"
)


class BatchLedger:
    """Reads and writes the journal's record of batch jobs; what a method has written is durable when it returns."""

    def __init__(
        self, submit: Callable[[Callable[[sqlite3.Connection], None]], Awaitable[None]], reader: JournalReader
    ) -> None:
        self._submit = submit
        self._reader = reader

    async def add_request(self, key: str, call: int) -> None:
        """A request waits to be put into a job; nothing has been sent."""
        await self._submit(partial(_add_request, key=key, call=call))

    async def form(self, job: JobRow, requests: Sequence[str]) -> None:
        """A job with these requests is about to be made at the provider; it is new, or a waiting one without a job."""
        await self._submit(partial(_form, job=job, requests=requests))

    async def move(self, key: str, state: str, provider_id: str = "", reason: str = "") -> None:
        """A job has come to another state; an empty id leaves the known one."""
        await self._submit(partial(_move, key=key, state=state, provider_id=provider_id, reason=reason))

    async def note(self, key: str, trouble: str) -> None:
        """What a job waits for, beside its end; "" when that is over."""
        await self._submit(partial(_note, key=key, trouble=trouble))

    async def forget(self, key: str) -> None:
        """Takes out a job that the provider never heard of; its requests wait for another."""
        await self._submit(partial(_forget, key=key))

    def jobs(self, *, closed: bool = False) -> list[JobRow]:
        """The jobs that may still be needed, in order of key; with `closed` all of them."""
        where = "" if closed else " WHERE state <> 'closed'"
        return [JobRow(*row) for row in self._reader.connection.execute(f"{_JOB}{where} ORDER BY key")]

    def files_left(self) -> list[JobRow]:
        """Closed jobs whose files could not be deleted at the provider."""
        return [job for job in self.jobs(closed=True) if job.state == "closed" and job.reason == FILES_LEFT]

    def requests(self, job: str) -> list[str]:
        """The keys of a job's requests whose calls are still open."""
        rows = self._reader.connection.execute(
            "SELECT r.key FROM batch_request r JOIN call c ON c.id = r.call WHERE r.job = ? AND c.state = 'started' "
            "ORDER BY r.key",
            (job,),
        )
        return [key for (key,) in rows]

    def settled_jobs(self) -> list[str]:
        """Ended jobs whose answers are all settled: nothing of them is needed any more."""
        return [key for (key,) in self._reader.connection.execute(_SETTLED)]

    def never_sent(self) -> list[int]:
        """Open calls whose requests wait in no job: a process was killed before it sent them."""
        return [call for (call,) in self._reader.connection.execute(_NEVER_SENT)]

    def continuing(self) -> set[int]:
        """Open calls that a job answers, or has answered."""
        rows = self._reader.connection.execute(
            "SELECT DISTINCT c.id FROM batch_request r JOIN call c ON c.id = r.call "
            "WHERE c.state = 'started' AND r.job IS NOT NULL"
        )
        return {call for (call,) in rows}


def files_left_of(reader: JournalReader, image_ids: Collection[str]) -> list[str]:
    """Names, as the provider has them, of closed jobs whose files hold these images and could not be deleted."""
    rows = reader.connection.execute(
        "SELECT DISTINCT j.provider_id, t.image_id FROM batch_job j JOIN batch_request r ON r.job = j.key "
        "JOIN call c ON c.id = r.call JOIN task t ON t.id = c.task WHERE j.state = 'closed' AND j.reason = ?",
        (FILES_LEFT,),
    )
    return sorted({name for name, image in rows if image in image_ids})


def jobs_waiting(reader: JournalReader) -> list[dict[str, str | int]]:
    """The jobs whose answers are still to come: their names, how they stand and how many requests wait in them."""
    rows = reader.connection.execute(
        "SELECT j.provider_id, j.key, j.model, j.state, j.formed_at, j.reason, count(c.id) FROM batch_job j "
        "JOIN batch_request r ON r.job = j.key JOIN call c ON c.id = r.call WHERE j.state <> 'closed' "
        "AND c.state = 'started' GROUP BY j.key ORDER BY j.formed_at, j.key"
    )
    names = ("id", "key", "model", "state", "formed_at", "trouble", "requests")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _add_request(connection: sqlite3.Connection, key: str, call: int) -> None:
    connection.execute(
        "INSERT INTO batch_request(key, call) VALUES (?, ?) ON CONFLICT(key) DO NOTHING", (key, call)
    )


def _form(connection: sqlite3.Connection, job: JobRow, requests: Sequence[str]) -> None:
    connection.execute(
        "INSERT INTO batch_job(key, model, path, state, formed_at) VALUES (?, ?, ?, 'formed', ?)",
        (job.key, job.model, job.path, _now()),
    )
    for request in requests:
        cursor = connection.execute(
            "UPDATE batch_request SET job = ? WHERE key = ? AND job IS NULL", (job.key, request)
        )
        if cursor.rowcount != 1:
            raise ValueError(f"request {request} is unknown, or already in a job")


def _move(connection: sqlite3.Connection, key: str, state: str, provider_id: str, reason: str) -> None:
    cursor = connection.execute(
        "UPDATE batch_job SET state = ?, provider_id = CASE ? WHEN '' THEN provider_id ELSE ? END, "
        "reason = ?, ended_at = CASE ? WHEN 'ended' THEN ? ELSE ended_at END "
        "WHERE key = ?",
        (state, provider_id, provider_id, clean_text(reason), state, _now(), key),
    )
    if cursor.rowcount != 1:
        raise ValueError(f"no batch job {key}")


def _note(connection: sqlite3.Connection, key: str, trouble: str) -> None:
    connection.execute("UPDATE batch_job SET reason = ? WHERE key = ?", (clean_text(trouble), key))


def _forget(connection: sqlite3.Connection, key: str) -> None:
    connection.execute("UPDATE batch_request SET job = NULL WHERE job = ?", (key,))
    connection.execute("DELETE FROM batch_job WHERE key = ?", (key,))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
