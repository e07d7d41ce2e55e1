"""Batch jobs in the journal: it records the job of each request, so that no process sends a request twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime

from plantain.journal.reader import JournalReader
from plantain.journal.rows import clean_text
from plantain.journal.statements import execute

current_call: ContextVar[int] = ContextVar("current_call")
"""Id of the journalled call that is being sent in this task, for a transport that keeps its request in a job."""


class LeftWithJob(Exception):
    """Raised when the run stops while a request's batch job continues: the call remains open in the journal.

    The message is the reason why the run must stop; empty if the user stopped it.
    """


@dataclass(frozen=True, slots=True)
class JobRow:
    """One batch job as journalled.

    Attributes:
        key: plantain's id, which is sent to the provider; `provider_id`: the provider's id, "" until it has one.
        path: the provider's format.
        state: "formed", "running", "ended" or "closed", as explained in the schema.
        reason: cause of missing answers or of waiting; "" without one.
    """

    key: str
    model: str
    path: str
    state: str
    provider_id: str = ""
    reason: str = ""


FOLDER = "batch"
"""Folder of a run with the files of its jobs."""

FILES_LEFT = "its files may still be at the provider"
"""Reason of a closed job whose files, which contain images, could not be deleted."""

_SERVED = "FROM batch_request r JOIN call c ON c.id = r.call WHERE c.state = 'started'"


class BatchLedger:
    """The journal's record of batch jobs; a change is durable when its method returns."""

    def __init__(self, submit: Callable[..., Awaitable[None]], reader: JournalReader) -> None:
        self._submit = submit
        self._reader = reader

    async def add_request(self, key: str, call: int) -> None:
        """Record a request that waits for a job, before it is sent."""
        sql = "INSERT INTO batch_request(key, call) VALUES (?, ?) ON CONFLICT(key) DO NOTHING"
        await self._submit(execute, sql, key, call)

    async def form(self, job: JobRow, requests: Sequence[str]) -> None:
        """Record a new job with these waiting requests, before it is created at the provider."""
        await self._submit(_form, job, requests)

    async def move(self, key: str, state: str, provider_id: str = "", reason: str = "") -> None:
        """Record a job's new state and reason; an empty `provider_id` keeps the known id."""
        await self._submit(_move, key, state, provider_id, reason)

    async def note(self, key: str, trouble: str) -> None:
        """Record the reason why a job waits; "" removes it."""
        await self._submit(execute, "UPDATE batch_job SET reason = ? WHERE key = ?", clean_text(trouble), key)

    async def forget(self, key: str) -> None:
        """Remove a job that was never created at the provider; its requests wait for another job."""
        await self._submit(_forget, key)

    def jobs(self, *, closed: bool = False) -> list[JobRow]:
        """Return the jobs that are not closed, sorted by key; with `closed`, all jobs."""
        where = "" if closed else " WHERE state <> 'closed'"
        query = f"SELECT key, model, path, state, provider_id, reason FROM batch_job{where} ORDER BY key"
        return [JobRow(*row) for row in self._reader.connection.execute(query)]

    def files_left(self) -> list[JobRow]:
        """Return the closed jobs whose files could not be deleted at the provider."""
        return [job for job in self.jobs(closed=True) if job.state == "closed" and job.reason == FILES_LEFT]

    def requests(self, job: str, *, settled: bool = False) -> list[str]:
        """Return the keys of a job's requests whose calls are still open; with `settled`, of all its requests."""
        served = "FROM batch_request r WHERE true" if settled else _SERVED
        query = f"SELECT r.key {served} AND r.job = ? ORDER BY r.key"
        return [key for (key,) in self._reader.connection.execute(query, (job,))]

    def settled_jobs(self) -> list[str]:
        """Return the keys of ended jobs whose answers are all settled."""
        query = (
            "SELECT key FROM batch_job WHERE state = 'ended' AND NOT EXISTS "
            f"(SELECT 1 {_SERVED} AND r.job = batch_job.key)"
        )
        return [key for (key,) in self._reader.connection.execute(query)]

    def never_sent(self) -> list[int]:
        """Return the ids of open calls whose requests are not in a job, as after a kill before sending."""
        query = (
            f"SELECT DISTINCT c.id {_SERVED} AND NOT EXISTS "
            "(SELECT 1 FROM batch_request o WHERE o.call = c.id AND o.job IS NOT NULL)"
        )
        return [call for (call,) in self._reader.connection.execute(query)]

    def continuing(self) -> set[int]:
        """Return the ids of open calls whose requests are in a job."""
        query = f"SELECT DISTINCT c.id {_SERVED} AND r.job IS NOT NULL"
        return {call for (call,) in self._reader.connection.execute(query)}


def files_left_of(reader: JournalReader, image_ids: Collection[str]) -> list[str]:
    """Return the provider's ids of closed jobs whose files contain these images and could not be deleted."""
    rows = reader.connection.execute(
        "SELECT DISTINCT j.provider_id, t.image_id FROM batch_job j JOIN batch_request r ON r.job = j.key "
        "JOIN call c ON c.id = r.call JOIN task t ON t.id = c.task WHERE j.state = 'closed' AND j.reason = ?",
        (FILES_LEFT,),
    )
    return sorted({name for name, image in rows if image in image_ids})


def jobs_waiting(reader: JournalReader) -> list[dict[str, str | int]]:
    """Return, for each job without all answers, its id, key, model, state, formed_at, trouble and open requests."""
    rows = reader.connection.execute(
        "SELECT j.provider_id, j.key, j.model, j.state, j.formed_at, j.reason, count(c.id) FROM batch_job j "
        "JOIN batch_request r ON r.job = j.key JOIN call c ON c.id = r.call WHERE j.state <> 'closed' "
        "AND c.state = 'started' GROUP BY j.key ORDER BY j.formed_at, j.key"
    )
    names = ("id", "key", "model", "state", "formed_at", "trouble", "requests")
    return [dict(zip(names, row, strict=True)) for row in rows]


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


def _forget(connection: sqlite3.Connection, key: str) -> None:
    connection.execute("UPDATE batch_request SET job = NULL WHERE job = ?", (key,))
    connection.execute("DELETE FROM batch_job WHERE key = ?", (key,))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
