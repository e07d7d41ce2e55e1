"""What a run took: calls, tries, tokens, money and time. Telemetry: never part of a derived output that must repeat."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.journal.reader import JournalReader
from plantain.records import TaskState


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step with one model; counts tries.

    Attributes:
        tries: settled; `final` of them gave the answer that the loop saw.
        cost_usd: sum over the tries whose cost is known (`priced` of them); None when none is.
        mean_latency_s: over the tries that were timed; None when none was.
    """

    step: str
    model: str
    served_models: tuple[str, ...]
    tries: int
    final: int
    cost_usd: float | None
    priced: int
    mean_latency_s: float | None


def costs(reader: JournalReader) -> tuple[StepCost, ...]:
    """Tries, cost and latency per step and model, over all generations: what was spent was spent."""
    return tuple(
        StepCost(step, model, tuple(sorted(filter(None, (served or "").split(",")))), *rest)
        for step, model, served, *rest in reader.connection.execute(
            "SELECT step, model, group_concat(DISTINCT nullif(served_model, '')), count(*), sum(final = 1),"
            " sum(cost_usd), count(cost_usd), avg(latency_s) FROM call WHERE state = 'settled' GROUP BY 1, 2"
            " ORDER BY CASE step WHEN 'write' THEN 1 WHEN 'edit' THEN 2 WHEN 'look' THEN 3 ELSE 4 END, 2"
        )
    )


def came_back(reader: JournalReader) -> int:
    """Attempts of current generations whose picture, byte for byte, an earlier round of the task had brought."""
    return int(
        reader.connection.execute(
            "SELECT count(*) FROM attempt a JOIN task t ON t.id = a.task AND t.kind = 'edit' WHERE a.superseded = 0"
            " AND a.edited IS NOT NULL AND EXISTS (SELECT 1 FROM attempt b WHERE b.task = a.task"
            " AND b.generation = a.generation AND b.round < a.round AND b.edited = a.edited)"
        ).fetchone()[0]
    )


def put_back(reader: JournalReader) -> tuple[int, float, int]:
    """Edits of current generations that were restored, the mean share put back, and answers left as they came."""
    row = reader.connection.execute(
        "SELECT count(s.value), coalesce(avg(s.value), 0.0), count(*) - count(s.value) FROM score s"
        " JOIN attempt a USING (task, generation, round) WHERE s.metric = 'restored' AND a.superseded = 0"
    ).fetchone()
    return int(row[0]), float(row[1]), int(row[2])


def status_summary(reader: JournalReader) -> dict[str, object]:
    """Where a run stands, in the shape that scripts rely on (design, section 4).

    `tasks` and `rounds` count tasks of every kind (`rounds`: successes by the round that succeeded); `attempts` those
    of current generations, `came_back_unchanged` those of them whose picture an earlier round had brought; `calls.made`
    and `outcomes` every settled try of every generation; `calls.replayed` the answers that sessions took from the
    journal; `cost_usd` sums what is known. `report` is the path of the HTML report, or None while there is none.
    """
    connection = reader.connection
    states = dict.fromkeys((state.value for state in TaskState), 0)
    states |= {state.value: n for state, n in reader.counts().items()}
    outcomes = {outcome.value: n for outcome, n in sorted(reader.outcomes().items())}
    attempts, superseded = reader.attempt_count(), reader.attempt_count(superseded=True)
    unpriced = connection.execute(
        "SELECT count(*) FROM call WHERE state = 'settled' AND cost_usd IS NULL"
    ).fetchone()[0]
    replayed, peak = connection.execute("SELECT sum(replayed), max(peak_rss_mb) FROM session").fetchone()
    report = reader.run / "report.html"
    return {
        "tasks": {"total": sum(states.values()), **states},
        "rounds": {str(number): n for number, n in reader.success_rounds().items()},
        "attempts": attempts,
        "attempts_superseded": superseded,
        "came_back_unchanged": came_back(reader),
        "calls": {
            "made": sum(outcomes.values()),
            "replayed": replayed or 0,
            "open": len(reader.open_calls()),
        },
        "outcomes": outcomes,
        "cost_usd": round(reader.spent_usd(), 6),
        "calls_of_unknown_cost": unpriced,
        "peak_rss_mb": peak,
        "modalities": [m for (m,) in connection.execute("SELECT DISTINCT modality FROM task ORDER BY 1")],
        "report": str(report) if report.exists() else None,
    }
