"""The statements of each journal operation; every function runs inside the writer's transaction."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

import orjson

from plantain.journal.reader import IS_LOST, account_of, read_verdicts
from plantain.journal.rows import (
    BlobRef,
    CallResult,
    RecordedTask,
    RunHeader,
    StartedCall,
    StoredScore,
    StoredVerdict,
    clean_text,
    to_json,
)
from plantain.journal.verdicts import JUDGED_AGAIN
from plantain.records import Attempt, EditTask, InputError, Outcome, SourceImage, Step, TaskState, state_after


def _put(table: str, key: str, columns: str) -> str:
    """SQL that inserts a row of `table`, or replaces the columns of the one with that key."""
    update = ", ".join(f"{name} = excluded.{name}" for name in columns.split(", "))
    marks = ", ".join("?" * len(f"{key}, {columns}".split(", ")))
    return f"INSERT INTO {table}({key}, {columns}) VALUES ({marks}) ON CONFLICT({key}) DO UPDATE SET {update}"


_BLOB = (
    "INSERT INTO blob(sha256, bytes, media_type, pixel_sha256) VALUES (?, ?, ?, ?) "
    "ON CONFLICT(sha256) DO UPDATE SET pixel_sha256 = coalesce(blob.pixel_sha256, excluded.pixel_sha256)"
)
_START = (
    "INSERT INTO call(task, generation, round, step, draw, tries, model, request_hash, state, reserved_usd, "
    "started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'started', ?, ?)"
)
_SETTLE = (
    "UPDATE call SET state = 'settled', outcome = ?, reason = ?, retry_after = ?, fatal = ?, final = ?, "
    "served_model = ?, finish_reason = ?, usage = ?, cost_usd = ?, latency_s = ?, answer = ?, raw = ? "
    "WHERE id = ? AND state = 'started'"
)
_ATTEMPT = _put(
    "attempt",
    "task, generation, round",
    "instruction, edit_outcome, edit_reason, edit_retry_after, edit_fatal, edited, raw, mask, support, "
    "judge_outcome, judge_reason, judge_retry_after, judge_fatal, superseded",
)
_VERDICT = f"INSERT INTO verdict VALUES ({', '.join('?' * 13)})"
_CRITERION = f"INSERT INTO criterion VALUES ({', '.join('?' * 13)})"
_SCORE = _put("score", "task, generation, round, metric", "value, reason, detail")
_TASK = (
    "INSERT INTO task(id, kind, image_id, modality, finding, direction, generation, state, round, reason) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING"
)
_PENDING_AGAIN = "UPDATE task SET state = 'pending', round = 0, reason = ''"

_STOPPED_BY = (
    "SELECT t.generation, c.round, c.step FROM task t LEFT JOIN call c ON c.id = (SELECT max(id) FROM call "
    "WHERE task = t.id AND generation = t.generation AND final = 1 AND "
    f"(t.kind = 'bench' OR draw < {JUDGED_AGAIN})) WHERE t.id = ? AND t.state = 'stopped'"
)
_STEPS = [step.value for step in Step]

NO_VERDICT = "imported without a verdict"
"""Why an imported task without any verdict is stopped; a judge's verdict may decide it."""
_OF_JUDGE = "SELECT DISTINCT task, generation, round FROM verdict WHERE judge = ? AND draw = ?"
_VETOED = (
    "SELECT task, generation, round FROM score WHERE metric IN ('text_kept', 'untouched_kept') AND value < 1"
)
_DECIDES = f"{_OF_JUDGE} EXCEPT {_VETOED}"  # a measured change rejects an edit under every judge
_DECIDED = (
    "decisive = 1 AND task = ? AND (task, generation) IN (SELECT id, generation FROM task WHERE kind = 'edit' "
    f"AND (state IN ('success', 'failed', 'undecided') OR reason = '{NO_VERDICT}'))"
)


def write_header(connection: sqlite3.Connection, header: RunHeader) -> None:
    frozen = to_json(header.frozen)
    values = (header.run_id, header.name, str(header.seed), frozen, header.code_version)
    names = ("run_id", "name", "seed", "frozen", "code_version")
    connection.executemany("INSERT INTO meta VALUES (?, ?)", list(zip(names, values, strict=True)))


def execute(connection: sqlite3.Connection, sql: str, *values: object) -> None:
    connection.execute(sql, values)


def was_killed(connection: sqlite3.Connection) -> bool:
    """Return True if the last process that wrote to the run was killed before it closed the run."""
    row = connection.execute("SELECT ended_at FROM session ORDER BY id DESC LIMIT 1").fetchone()
    return row is not None and row[0] is None


def start_session(connection: sqlite3.Connection, pid: int, host: str, now: str) -> int:
    cursor = connection.execute(
        "INSERT INTO session(pid, host, started_at) VALUES (?, ?, ?)", (pid, host, now)
    )
    return int(cursor.lastrowid or 0)


def add_images(connection: sqlite3.Connection, images: Sequence[tuple[SourceImage, BlobRef]]) -> int:
    added = 0
    for image, reference in images:
        if image.prepared_sha256 != reference.sha256:
            raise InputError(f"image {image.id!r}: prepared_sha256 is not the hash of the stored image")
        _add_blobs(connection, (reference,))
        known = connection.execute("SELECT prepared FROM image WHERE id = ?", (image.id,)).fetchone()
        if known is None:
            connection.execute(
                "INSERT INTO image VALUES (?, ?, ?)", (image.id, to_json(image), reference.sha256)
            )
            added += 1
        elif known[0] != reference.sha256:
            raise InputError(f"image {image.id!r}: this run already has another image under this id")
        else:
            connection.execute("UPDATE image SET record = ? WHERE id = ?", (to_json(image), image.id))
    return added


def add_tasks(connection: sqlite3.Connection, tasks: Sequence[EditTask]) -> int:
    gone = account_of(connection)
    if gone.marks:
        tasks = [task for task in tasks if not gone.holds(f"task {task.id}")]
    ordered = sorted(tasks, key=lambda task: task.id)
    rows = [(*_columns_of(task), 0, TaskState.PENDING.value, 0, "") for task in ordered]
    return connection.executemany(_TASK, rows).rowcount


def add_recorded(connection: sqlite3.Connection, tasks: Sequence[RecordedTask]) -> int:
    added = 0
    for recorded in tasks:
        row = recorded.row
        values = (*_columns_of(row.task), row.generation, row.state.value, row.round, clean_text(row.reason))
        if connection.execute(_TASK, values).rowcount != 1:
            continue
        added += 1
        _add_blobs(connection, recorded.blobs)
        for attempt in recorded.attempts:
            _put_attempt(connection, attempt)
        for verdict in recorded.verdicts:
            put_verdict(connection, verdict)
        add_scores(connection, recorded.scores)
    return added


def _columns_of(task: EditTask) -> tuple[str, ...]:
    return (task.id, task.kind.value, task.image_id, task.modality, task.finding, task.direction.value)


def start_call(connection: sqlite3.Connection, call: StartedCall, now: str) -> int:
    """Insert an open call, started at `now` (ISO); return its id. Raise ValueError if this try was already started."""
    key = call.key
    values = (key.task_id, key.generation, key.round, key.step.value, key.draw, call.tries)
    try:
        cursor = connection.execute(_START, (*values, call.model, call.request_hash, call.reserved_usd, now))
    except sqlite3.IntegrityError as error:
        raise ValueError(f"cannot start try {call.tries} of {key}: {error}") from error
    return int(cursor.lastrowid or 0)


def settle_call(connection: sqlite3.Connection, settlement: CallResult) -> None:
    """Store all results of an open call. Raise ValueError if it is unknown or already settled."""
    outcome, usage = settlement.outcome, settlement.usage
    _check_finite(
        cost_usd=settlement.cost_usd, latency_s=settlement.latency_s, retry_after=outcome.retry_after
    )
    cursor = connection.execute(
        _SETTLE,
        (
            outcome.kind.value,
            clean_text(outcome.reason),
            outcome.retry_after,
            outcome.fatal,
            settlement.final,
            clean_text(usage.served_model),
            clean_text(usage.finish_reason),
            to_json(usage),
            settlement.cost_usd,
            settlement.latency_s,
            clean_text(settlement.answer),
            clean_text(settlement.raw),
            settlement.call_id,
        ),
    )
    if cursor.rowcount != 1:
        raise ValueError(f"call {settlement.call_id} is not open: unknown or already settled")
    _add_blobs(connection, settlement.blobs)
    if settlement.attempt is not None:
        _put_attempt(connection, settlement.attempt)
    for verdict in settlement.verdicts:
        put_verdict(connection, verdict)
    add_scores(connection, settlement.scores)


def close_task(
    connection: sqlite3.Connection, task_id: str, state: TaskState, round: int, reason: str
) -> None:
    cursor = connection.execute(
        "UPDATE task SET state = ?, round = ?, reason = ? WHERE id = ?",
        (state.value, round, clean_text(reason), task_id),
    )
    if cursor.rowcount != 1:
        raise ValueError(f"no task {task_id}")


def reopen_tasks(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    reopened = 0
    closed = f"{_PENDING_AGAIN}, generation = generation + 1 WHERE id = ? AND state <> 'pending'"
    for task_id in ids:
        if connection.execute(closed, (task_id,)).rowcount:
            connection.execute(
                "UPDATE attempt SET superseded = 1 WHERE task = ? AND superseded = 0", (task_id,)
            )
            reopened += 1
    return reopened


def continue_tasks(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    continued = 0
    for task_id in ids:
        row = connection.execute(_STOPPED_BY, (task_id,)).fetchone()
        if row is None:
            continue
        generation, number, failed = row
        again = _STEPS[_STEPS.index(failed) + 1 :] if failed else []
        connection.executemany(
            "UPDATE call SET final = 0 WHERE task = ? AND generation = ? AND round = ? AND step = ? "
            "AND (? OR outcome <> 'ok')",
            [(task_id, generation, number, step, step in again) for step in {failed, *again} if step],
        )
        connection.execute(f"{_PENDING_AGAIN} WHERE id = ?", (task_id,))
        continued += 1
    return continued


def extend_tasks(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    closed = f"{_PENDING_AGAIN} WHERE id = ? AND state <> 'pending'"
    return connection.executemany(closed, [(task_id,) for task_id in ids]).rowcount


def make_decisive(connection: sqlite3.Connection, judge: str, draw: int) -> int:
    """Let a judge's verdicts with this draw decide, except on edits that a check rejects; return their number."""
    tasks = dict.fromkeys(row[0] for row in connection.execute(_DECIDES, (judge, draw)))
    connection.execute(
        "UPDATE verdict SET decisive = (judge = ? AND draw = ?) "
        f"WHERE (task, generation, round) IN ({_DECIDES})",
        (judge, draw, judge, draw),
    )
    for task in tasks:
        rounds = list(read_verdicts(connection, _DECIDED, (task,)))
        if rounds:
            last = next((one for one in rounds if one.verdict.qualified is not False), rounds[-1])
            close_task(connection, task, state_after(last.verdict), last.round, last.verdict.why_not)
    return len(connection.execute(f"{_OF_JUDGE} INTERSECT {_VETOED}", (judge, draw)).fetchall())


def put_verdict(connection: sqlite3.Connection, stored: StoredVerdict) -> None:
    """Store a verdict with its criteria. Raise ValueError for a number that is not finite."""
    verdict, seen = stored.verdict, stored.verdict.observations
    key = (stored.task_id, stored.generation, stored.round, verdict.judge, stored.draw)
    _check_finite(score=verdict.score)
    connection.execute(
        _VERDICT,
        (
            *key,
            stored.decisive,
            seen.opinion,
            clean_text(seen.reason),
            clean_text(seen.differences),
            verdict.qualified_all_pass,
            verdict.qualified_weighted,
            verdict.score,
            verdict.qualified,
        ),
    )
    rows: list[tuple[object, ...]] = []
    for place, (name, result) in enumerate(seen.criteria.items()):
        _check_finite(**{name: result.confidence}, value=result.value)
        codes, words = orjson.dumps(result.codes).decode(), clean_text(result.evidence)
        columns = (result.passed, result.value, result.confidence, codes, words)
        rows.append((*key, name, "criterion", place, *columns))
    for place, (name, answer) in enumerate(seen.facts.items()):
        rows.append((*key, name, "fact", place, None, float(answer), None, "[]", ""))
    connection.executemany(_CRITERION, rows)


def put_correction(connection: sqlite3.Connection, correction: StoredVerdict) -> None:
    """Store a human reader's verdict after the earlier ones on the attempt; it never decides."""
    earlier = "SELECT count(*) FROM verdict WHERE task = ? AND generation = ? AND round = ? AND judge = ?"
    key = (correction.task_id, correction.generation, correction.round, correction.verdict.judge)
    draw = int(connection.execute(earlier, key).fetchone()[0])
    put_verdict(connection, replace(correction, draw=draw, decisive=False))


def add_scores(connection: sqlite3.Connection, scores: Sequence[StoredScore]) -> int:
    for stored in scores:
        _check_finite(**{stored.metric: stored.score.value})
        about = (stored.task_id, stored.generation, stored.round, stored.metric)
        detail = to_json(dict(stored.detail))
        connection.execute(_SCORE, (*about, stored.score.value, clean_text(stored.score.reason), detail))
    return len(scores)


def settle_lost(connection: sqlite3.Connection, usd: float) -> int:
    """Divide US dollars evenly among calls of unknown cost, inside the writer's transaction; return their number."""
    lost = [call for (call,) in connection.execute(f"SELECT id FROM call WHERE {IS_LOST}")]
    connection.executemany(
        "UPDATE call SET cost_usd = ? WHERE id = ?", [(usd / len(lost), call) for call in lost]
    )
    return len(lost)


def _add_blobs(connection: sqlite3.Connection, blobs: Sequence[BlobRef]) -> None:
    for blob in blobs:
        connection.execute(_BLOB, (blob.sha256, blob.bytes, blob.media_type, blob.pixel_sha256))


def _put_attempt(connection: sqlite3.Connection, attempt: Attempt) -> None:
    def columns(outcome: Outcome | None) -> tuple[str | float | None, ...]:
        if outcome is None:
            return None, "", None, False
        return outcome.kind.value, clean_text(outcome.reason), outcome.retry_after, outcome.fatal

    key = (attempt.task_id, attempt.generation, attempt.round, clean_text(attempt.instruction))
    images = (attempt.edited, attempt.raw, attempt.mask, attempt.support)
    judged = columns(attempt.judge_outcome)
    connection.execute(_ATTEMPT, (*key, *columns(attempt.edit_outcome), *images, *judged, attempt.superseded))


def _check_finite(**numbers: float | None) -> None:
    """Raise ValueError for NaN and infinity, which SQLite and JSON would silently turn into None."""
    for name, number in numbers.items():
        if number is not None and not math.isfinite(number):
            raise ValueError(f"{name} is {number}, not a finite number")
