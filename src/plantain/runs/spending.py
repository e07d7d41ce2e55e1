"""What a run has spent and may still spend: its purse, restored from the journal, and its hours."""

from __future__ import annotations

from datetime import UTC, datetime

from plantain.calls import Budget
from plantain.journal import JournalReader
from plantain.runs.terms import Limits

_UNKNOWN = "SELECT TOTAL(reserved_usd) FROM call WHERE state = 'settled' AND cost_usd IS NULL"
_IN_JOBS = (
    "SELECT TOTAL(reserved_usd) FROM call WHERE state = 'started' "
    "AND id IN (SELECT call FROM batch_request WHERE job IS NOT NULL)"
)
_LAST_CALL = "SELECT started_at FROM call ORDER BY id DESC LIMIT 1"


def budget_of(limits: Limits, reader: JournalReader) -> Budget:
    """The run's purse as the journal has it: what settled calls cost, and what others may have cost.

    Calls that a kill left open, and calls whose answer never arrived, count with what was set aside for them, unless
    the limits say that their costs are known to be nothing more (`limits.unknown_costs = "ignore"`). Calls that a
    batch job still answers count in any case.
    """
    held = float(reader.connection.execute(_IN_JOBS).fetchone()[0])
    if limits.unknown_costs == "reserve":
        held = reader.reserved_open_usd() + float(reader.connection.execute(_UNKNOWN).fetchone()[0])
    return Budget(
        limits.budget_usd,
        reader.spent_usd(),
        held,
        max_calls=limits.max_calls,
        calls=sum(reader.outcomes().values()) + len(reader.open_calls()),
    )


def seconds_left(limits: Limits, reader: JournalReader) -> float | None:
    """Seconds until `limits.max_hours`, counted over all earlier processes; None without such a cap.

    A process that was killed counts up to its last call.
    """
    if limits.max_hours is None:
        return None
    *earlier, _ = reader.sessions()
    last = reader.connection.execute(_LAST_CALL).fetchone()
    used = 0.0
    for number, session in enumerate(earlier):
        end = session.ended_at
        if end is None and number == len(earlier) - 1 and last is not None:
            end = max(str(last[0]), session.started_at)
        if end is not None:
            used += (_moment(end) - _moment(session.started_at)).total_seconds()
    return limits.max_hours * 3600.0 - used


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
