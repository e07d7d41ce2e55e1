"""What a run's calls cost: what was paid, what is still open, and what nobody knows."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime

from plantain.journal.reader import JournalReader
from plantain.records import Step

LOOKED_AT = 2_000
"""Calls, the latest ones, whose costs tell what such calls cost."""

_IN_JOBS = "SELECT call FROM batch_request WHERE job IS NOT NULL"
_IS_LOST = f"cost_usd IS NULL AND reserved_usd IS NOT NULL AND (state = 'settled' OR id NOT IN ({_IN_JOBS}))"
_LOST = f"SELECT model, step, count(*), TOTAL(reserved_usd) FROM call WHERE {_IS_LOST} GROUP BY 1, 2"
_STILL_IN_JOBS = (
    "SELECT model, step, 0, TOTAL(reserved_usd) FROM call WHERE state = 'started' AND reserved_usd IS NOT NULL "
    f"AND id IN ({_IN_JOBS}) GROUP BY 1, 2"
)
_LATEST = "SELECT model, step, cost_usd FROM call WHERE cost_usd > 0 ORDER BY id DESC LIMIT ?"


@dataclass(slots=True)
class StepMoney:
    """Calls of one step to one model.

    Attributes:
        latest: dollars of the latest calls that cost anything, oldest first.
        lost: calls that may have been billed, and whose cost is not known: cut off, or open when a process was killed.
        lost_most: dollars that were set aside for them.
        in_jobs_usd: set aside for calls that batch jobs still answer.
    """

    latest: list[float] = field(default_factory=list)
    lost: int = 0
    lost_most: float = 0.0
    in_jobs_usd: float = 0.0


def money_by_step(reader: JournalReader) -> dict[tuple[str, Step], StepMoney]:
    """The money of every model and step that has any."""
    found: dict[tuple[str, Step], StepMoney] = defaultdict(StepMoney)
    run = reader.connection.execute
    for model, step, cost in run(_LATEST, (LOOKED_AT,)):
        found[model, Step(step)].latest.insert(0, cost)
    for model, step, calls, usd in run(_LOST):
        found[model, Step(step)].lost, found[model, Step(step)].lost_most = calls, usd
    for model, step, _, usd in run(_STILL_IN_JOBS):
        found[model, Step(step)].in_jobs_usd = usd
    return dict(found)


def seconds_worked(reader: JournalReader) -> float:
    """How long earlier processes worked on the run: all but the one that writes now.

    Sessions of the first edition noted only when they began and ended: a killed one of them counts up to the last
    call of the run, if it was the last of them.
    """
    *earlier, _ = reader.sessions()
    run = reader.connection.execute
    noted = dict(run("SELECT session, seconds FROM session_time").fetchall())
    unnoted = [session for session in earlier if session.id not in noted]
    seconds = float(sum(noted.get(session.id, 0.0) for session in earlier))
    last_call = run("SELECT started_at FROM call ORDER BY id DESC LIMIT 1").fetchone()
    for session in unnoted:
        end = session.ended_at
        if end is None and session is unnoted[-1] and not noted and last_call is not None:
            end = max(str(last_call[0]), session.started_at)
        if end is not None:
            seconds += max(0.0, (_moment(end) - _moment(session.started_at)).total_seconds())
    return seconds


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def settle_lost(connection: sqlite3.Connection, usd: float) -> int:
    """Within the writer's transaction: divide dollars evenly among the calls of unknown cost; return their number."""
    lost = [call for (call,) in connection.execute(f"SELECT id FROM call WHERE {_IS_LOST}")]
    connection.executemany(
        "UPDATE call SET cost_usd = ? WHERE id = ?", [(usd / len(lost), call) for call in lost]
    )
    return len(lost)
