"""Reading a run, its account of money and withdrawals too: a read-only connection that works while a build runs."""

from __future__ import annotations

import hashlib
import hmac
import math
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Self

from plantain.journal.blobs import BlobStore
from plantain.journal.connect import open_for_reading
from plantain.journal.rows import (
    BadBlob,
    CallRow,
    RunHeader,
    SessionRow,
    StoredScore,
    StoredVerdict,
    TaskRow,
    dict_from_json,
    from_json,
    stored_verdict,
)
from plantain.records import (
    Attempt,
    CallKey,
    Direction,
    EditTask,
    InputError,
    Outcome,
    OutcomeKind,
    Score,
    SourceImage,
    Step,
    TaskKind,
    TaskState,
    Usage,
    Verdict,
)
from plantain.records.messages import command_line

PAGE = 1000
"""Rows fetched at a time: no listing holds a read transaction open, which would stall checkpoints."""

_TASK = "id, image_id, modality, finding, direction, kind, generation, state, round, reason"
_CALL = (
    "id, task, generation, round, step, draw, tries, model, request_hash, outcome, reason, retry_after, "
    "fatal, final, usage, reserved_usd, cost_usd, latency_s, started_at, answer, raw"
)
_VERDICT_KEY = "task, generation, round, judge, draw"
_ATTEMPT = (
    "task, generation, round, instruction, edit_outcome, edit_reason, edit_retry_after, edit_fatal, edited, "
    "raw, mask, support, judge_outcome, judge_reason, judge_retry_after, judge_fatal, superseded"
)

_NEXT = "SELECT min(started_at) FROM session n WHERE n.started_at > s.started_at"
_LAST_CALL = f"SELECT max(started_at) FROM call WHERE started_at > s.started_at AND started_at < ({_NEXT})"
_SECONDS = (
    f"SELECT 86400 * TOTAL(julianday(coalesce(ended_at, ({_LAST_CALL}), started_at)) - julianday(started_at)) "
    "FROM session s WHERE id < (SELECT max(id) FROM session)"
)

BLOBS_ABSENT = "blobs_absent"
"""Meta key of a run that was imported from a release: hashes are known whose bytes were never published."""


class JournalReader:
    """A reader of a run's journal. Every result is of one committed state; nothing is written, not even a lock."""

    def __init__(self, run: Path, connection: sqlite3.Connection) -> None:
        self.run = run
        self.connection = connection
        self.blobs = BlobStore(run / "blobs")
        self.header = self._header()

    @classmethod
    def open(cls, run: Path) -> JournalReader:
        """Open a run, also a copy in a read-only folder. Raise InputError if it is not a run of this version."""
        return cls(run, open_for_reading(run))

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meta(self, key: str) -> str | None:
        """Return a value that `Journal.set_meta` stored, or None."""
        return meta_value(self.connection, key)

    def _header(self) -> RunHeader:
        values = dict(self.connection.execute("SELECT key, value FROM meta").fetchall())
        frozen, seed = dict_from_json(values["frozen"]), int(values["seed"])
        return RunHeader(values["run_id"], values["name"], seed, frozen, values["code_version"])

    def sessions(self) -> list[SessionRow]:
        """Return every process that wrote to the run, oldest first."""
        rows = self.connection.execute(
            "SELECT id, pid, host, started_at, ended_at, replayed FROM session ORDER BY id"
        )
        return [SessionRow(*row) for row in rows]

    def counts(self, kind: TaskKind | None = None) -> dict[TaskState, int]:
        """Return the number of tasks by state, for every state; of one kind if given."""
        query = "SELECT state, count(*) FROM task WHERE ?1 IS NULL OR kind = ?1 GROUP BY state"
        rows = self.connection.execute(query, (kind and kind.value,))
        return dict.fromkeys(TaskState, 0) | {TaskState(state): n for state, n in rows}

    def outcomes(self) -> dict[OutcomeKind, int]:
        """Return the number of settled tries of calls by outcome, for outcomes that occur."""
        query = (
            "SELECT outcome, count(*) FROM call WHERE outcome IS NOT NULL GROUP BY outcome ORDER BY outcome"
        )
        return {OutcomeKind(outcome): n for outcome, n in self.connection.execute(query)}

    def attempt_count(self, superseded: bool = False) -> int:
        """Return the number of attempts of current generations, or of those that a retry has superseded."""
        query = "SELECT count(*) FROM attempt WHERE superseded = ?"
        return int(self.connection.execute(query, (superseded,)).fetchone()[0])

    def spent_usd(self) -> float:
        """Return the cost of all calls in US dollars; a call of unknown cost adds nothing.

        Calls that were withdrawn with their images are included; among these, one of unknown cost adds an assumed cost.
        """
        (known,) = self.connection.execute("SELECT TOTAL(cost_usd) FROM call").fetchone()
        return float(known) + account_of(self.connection).cost_usd

    def seconds_worked(self) -> float:
        """Return the seconds that all processes worked on the run, except the latest; a killed one to its last call."""
        return float(self.connection.execute(_SECONDS).fetchone()[0])

    def tasks(self, state: TaskState | None = None) -> Iterator[TaskRow]:
        """Yield tasks in the order of their ids, of one state if given.

        Tasks that change state meanwhile are returned as they were when their page was read.
        """
        where = "id > ?" if state is None else "state = ? AND id > ?"
        fixed = () if state is None else (state.value,)
        query = f"SELECT {_TASK} FROM task WHERE {where} ORDER BY id LIMIT ?"
        after_id = ""
        while rows := self.connection.execute(query, (*fixed, after_id, PAGE)).fetchall():
            for row in rows:
                yield _task_row(row)
            after_id = rows[-1][0]

    def task(self, prefix: str) -> TaskRow:
        """Return the task whose id is `prefix` or starts with it. Raise InputError if none or several do."""
        rows = self.connection.execute(
            f"SELECT {_TASK} FROM task WHERE id >= ? AND id < ? ORDER BY id LIMIT 4",
            (prefix, prefix + "\uffff"),
        ).fetchall()
        if len(rows) == 1 or (rows and rows[0][0] == prefix):
            return _task_row(rows[0])
        if not rows:
            raise InputError(
                f"{self.run}: no task's id starts with {prefix!r}; {command_line('show', self.run)} lists them"
            )
        several = ", ".join(row[0] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
        raise InputError(f"{self.run}: {prefix!r} could be any of {several}; give more digits")

    def image(self, image_id: str) -> SourceImage:
        """Return the record of an image by its id. Raise InputError if unknown."""
        row = self.connection.execute("SELECT record FROM image WHERE id = ?", (image_id,)).fetchone()
        if row is None:
            raise InputError(f"{self.run}: no image has the id {image_id!r}")
        return from_json(SourceImage, row[0])

    def images(self) -> Iterator[SourceImage]:
        """Yield all images in the order of their ids."""
        query = "SELECT id, record FROM image WHERE id > ? ORDER BY id LIMIT ?"
        after = ""
        while rows := self.connection.execute(query, (after, PAGE)).fetchall():
            for row in rows:
                yield from_json(SourceImage, row[1])
            after = rows[-1][0]

    def calls(self, task_id: str, generation: int | None = None) -> list[CallRow]:
        """Return every try of every call of a task, of one generation if given, in the order of their start."""
        where, values = _of_task(task_id, generation)
        rows = self.connection.execute(f"SELECT {_CALL} FROM call WHERE {where} ORDER BY id", values)
        return [_call_row(row) for row in rows]

    def open_calls(self) -> list[CallRow]:
        """Return tries that were started and never settled: in flight now, or when a process was killed."""
        rows = self.connection.execute(f"SELECT {_CALL} FROM call WHERE state = 'started' ORDER BY id")
        return [_call_row(row) for row in rows]

    def has_jobs(self) -> bool:
        """Return True if requests were ever sent in batch jobs, or wait for one."""
        asked = "SELECT EXISTS (SELECT 1 FROM batch_request) OR EXISTS (SELECT 1 FROM batch_job)"
        return bool(self.connection.execute(asked).fetchone()[0])

    def attempts(self, task_id: str, generation: int | None = None) -> list[Attempt]:
        """Return a task's attempts by generation and round, each with its decisive verdict."""
        where, values = _of_task(task_id, generation)
        rows = self.connection.execute(
            f"SELECT {_ATTEMPT} FROM attempt WHERE {where} ORDER BY generation, round", values
        ).fetchall()
        found = [stored for stored in self.verdicts(task_id, generation) if stored.decisive]
        decisive = {(stored.generation, stored.round): stored.verdict for stored in found}
        return [_attempt(row, decisive.get((row[1], row[2]))) for row in rows]

    def all_attempts(self, superseded: bool = False) -> Iterator[Attempt]:
        """Yield attempts of all tasks by task, generation and round; superseded ones on request."""
        only = "" if superseded else "AND superseded = 0 "
        query = (
            f"SELECT {_ATTEMPT} FROM attempt WHERE (task, generation, round) > (?, ?, ?) {only}"
            "ORDER BY task, generation, round LIMIT ?"
        )
        verdicts = "decisive = 1 AND (task, generation, round) >= (?, ?, ?) AND (task, generation, round) <= (?, ?, ?)"
        after: tuple[str, int, int] = ("", 0, 0)
        while rows := self.connection.execute(query, (*after, PAGE)).fetchall():
            found = read_verdicts(self.connection, verdicts, (*rows[0][:3], *rows[-1][:3]))
            decisive = {(stored.task_id, stored.generation, stored.round): stored.verdict for stored in found}
            for row in rows:
                yield _attempt(row, decisive.get(row[:3]))
            after = rows[-1][:3]

    def verdicts(self, task_id: str, generation: int | None = None) -> list[StoredVerdict]:
        """Return all verdicts on a task's attempts, a panel's members included."""
        return list(read_verdicts(self.connection, *_of_task(task_id, generation)))

    def scores(self, task_id: str, generation: int | None = None) -> list[StoredScore]:
        """Return the scores of a task's attempts in order of generation, round and metric; without `generation` all."""
        where, values = _of_task(task_id, generation)
        rows = self.connection.execute(
            "SELECT task, generation, round, metric, value, reason, detail FROM score "
            f"WHERE {where} ORDER BY generation, round, metric",
            values,
        )
        return [StoredScore(*(*row[:4], Score(row[4], row[5]), dict_from_json(row[6]))) for row in rows]

    def blob_path(self, sha256: str) -> Path:
        """Return the path of a blob, whether or not it exists."""
        return self.blobs.path(sha256)

    def has_blob(self, sha256: str) -> bool:
        """Return True if the run contains the blob's bytes; imported runs only have those in their release."""
        return bool(sha256) and self.blobs.holds(sha256)

    def read_blob(self, sha256: str) -> bytes:
        """Return a blob's bytes, verified by the hash. Raise BadBlob if missing or damaged."""
        try:
            return self.blobs.read(sha256)
        except BadBlob as error:
            if self.meta(BLOBS_ABSENT) is None or self.has_blob(sha256):
                raise
            raise BadBlob(
                f"{self.run}: image {sha256} was not in the release that this run was imported from: import the "
                "owner's originals, or a folder of the release that contains its edited images"
            ) from error


def read_verdicts(
    connection: sqlite3.Connection, where: str, values: Iterable[str | int]
) -> Iterator[StoredVerdict]:
    """Yield verdicts that match an SQL condition with bound `values`, by attempt; an attempt's decisive one last."""
    bound = tuple(values)
    rows = connection.execute(
        f"SELECT {_VERDICT_KEY}, decisive, opinion, reason, qualified_all_pass, qualified_weighted, score, "
        f"qualified, differences FROM verdict WHERE {where} ORDER BY generation, round, decisive, judge, draw",
        bound,
    ).fetchall()
    found = connection.execute(
        f"SELECT {_VERDICT_KEY}, kind, name, passed, value, confidence, codes, c.reason FROM verdict "
        f"CROSS JOIN criterion c USING ({_VERDICT_KEY}) WHERE {where} ORDER BY {_VERDICT_KEY}, kind, place",
        bound,
    )
    results = {key: [row[5:] for row in own] for key, own in groupby(found, key=lambda row: row[:5])}
    for row in rows:
        yield stored_verdict(row, results.get(row[:5], []))


def _of_task(task_id: str, generation: int | None) -> tuple[str, tuple[str | int, ...]]:
    if generation is None:
        return "task = ?", (task_id,)
    return "task = ? AND generation = ?", (task_id, generation)


def _task_row(row: tuple[str, str, str, str, str, str, int, str, int, str]) -> TaskRow:
    task = EditTask(row[0], row[1], row[2], row[3], Direction(row[4]), TaskKind(row[5]))
    return TaskRow(task, row[6], TaskState(row[7]), row[8], row[9])


def _outcome(kind: str | None, reason: str, retry_after: float | None, fatal: int) -> Outcome | None:
    return None if kind is None else Outcome(OutcomeKind(kind), reason, retry_after, bool(fatal))


def _call_row(row: sqlite3.Row) -> CallRow:
    key = CallKey(row[1], row[2], row[3], Step(row[4]), row[5])
    usage = from_json(Usage, row[14]) if row[14] != "{}" else Usage()
    return CallRow(*(row[0], key, *row[6:9], _outcome(*row[9:13]), bool(row[13]), usage, *row[15:]))


def _attempt(row: sqlite3.Row, verdict: Verdict | None) -> Attempt:
    edit, judge = _outcome(*row[4:8]), _outcome(*row[12:16])
    return Attempt(*(*row[:4], edit, *row[8:12], judge, verdict, bool(row[16])))


# --- the run's account: the cost of its calls, and its withdrawals ----------------------------------


UPPER, LEARNED = 0.95, 5
"""A call of unknown cost is assumed to have cost this quantile of its step's known costs, once there are as many of
them; until then the most that it can have cost."""

REMEMBERED = 200
"""Known costs that count: the latest ones, since prompts grow from round to round and prices change."""

LOOKED_AT = 2_000
"""Calls, the latest ones, from whose costs the cost of such calls is estimated."""

_IN_JOBS = "SELECT call FROM batch_request WHERE job IS NOT NULL"
IS_LOST = f"cost_usd IS NULL AND reserved_usd IS NOT NULL AND (state = 'settled' OR id NOT IN ({_IN_JOBS}))"
_LOST = f"SELECT model, step, count(*), TOTAL(reserved_usd) FROM call WHERE {IS_LOST} AND {{}} GROUP BY 1, 2"
_STILL_IN_JOBS = (
    "SELECT model, step, TOTAL(reserved_usd) FROM call WHERE state = 'started' AND reserved_usd IS NOT NULL "
    f"AND id IN ({_IN_JOBS}) GROUP BY 1, 2"
)
_LATEST = "SELECT model, step, cost_usd FROM call WHERE cost_usd > 0 ORDER BY id DESC LIMIT ?"


@dataclass(slots=True)
class StepMoney:
    """Costs of one step's calls to one model.

    Attributes:
        latest: US dollars of the latest calls that cost anything, oldest first.
        lost: number of calls of unknown cost: cut off, or open when a process was killed.
        lost_most: US dollars that were reserved for them.
        in_jobs_usd: US dollars reserved for calls that batch jobs will answer.
    """

    latest: list[float] = field(default_factory=list)
    lost: int = 0
    lost_most: float = 0.0
    in_jobs_usd: float = 0.0


def assumed_usd(latest: Collection[float], lost: int, most: float) -> float:
    """Estimate the US dollars of `lost` calls of unknown cost, from the latest costs of similar calls.

    It is `most`, the maximum for all of them, if there are fewer than `LEARNED` costs.
    """
    if not lost or len(latest) < LEARNED:
        return most
    known = sorted(latest)
    return min(most, lost * known[math.ceil(UPPER * len(known)) - 1])


def money_by_step(connection: sqlite3.Connection, lost: str = "TRUE") -> dict[tuple[str, Step], StepMoney]:
    """Return costs by (model, step), if any; `lost` is an SQL condition that selects calls of unknown cost."""
    found: dict[tuple[str, Step], StepMoney] = defaultdict(StepMoney)
    run = connection.execute
    for model, step, cost in run(_LATEST, (LOOKED_AT,)):
        found[model, Step(step)].latest.insert(0, cost)
    for model, step, calls, usd in run(_LOST.format(lost)):
        found[model, Step(step)].lost, found[model, Step(step)].lost_most = calls, usd
    for model, step, usd in run(_STILL_IN_JOBS):
        found[model, Step(step)].in_jobs_usd = usd
    return dict(found)


WITHDRAWN = "withdrawn"
"""Key of the run's meta: its `Account`, as JSON."""

_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Account:
    """A run's record of withdrawn content, without readable ids.

    Attributes:
        salt: the run's key of hashes.
        marks: keyed hashes of groups, images and tasks, by key; a merged run has those of its parts.
        releases: paths of releases that contain images or edits of a group or image, by its hash.
        cost_usd: cost of the removed calls; unknown costs are estimated as for the budget.
    """

    salt: str = ""
    marks: dict[str, list[str]] = field(default_factory=dict)
    releases: dict[str, list[str]] = field(default_factory=dict)
    cost_usd: float = 0.0

    def mark(self, text: str) -> str:
        return keyed_mark(self.salt, text)

    def marks_of(self, text: str) -> list[str]:
        """Return the keyed hashes with which the name `text` was withdrawn; [] if it was not."""
        return [mark for salt, marks in self.marks.items() if (mark := keyed_mark(salt, text)) in marks]

    def holds(self, text: str) -> bool:
        """Return True if the name `text` was withdrawn."""
        return bool(self.marks_of(text))


def keyed_mark(salt: str, text: str) -> str:
    """Return the keyed hash of a withdrawn name, from which the name cannot be recovered."""
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()[: 2 * _ID_BYTES]


def joined_accounts(accounts: Iterable[Account]) -> Account:
    """Merge the withdrawals of several runs: costs are summed, each run's hashes keep the salt that made them."""
    joined = Account()
    for one in accounts:
        marks, releases = joined.marks | one.marks, joined.releases | one.releases
        joined = Account(marks=marks, releases=releases, cost_usd=joined.cost_usd + one.cost_usd)
    return joined


def account_of(connection: sqlite3.Connection) -> Account:
    """Return the run's account of withdrawals; an empty one if there was none."""
    text = meta_value(connection, WITHDRAWN)
    return Account() if text is None else from_json(Account, text)


def meta_value(connection: sqlite3.Connection, key: str) -> str | None:
    """Return a value of the run's meta; None if the key is unknown."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])
