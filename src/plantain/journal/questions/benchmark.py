"""Questions about a benchmark run, where an arm is a finding, a sample an image and an output a round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plantain.journal.reader import JournalReader
from plantain.records import TaskState

_CURRENT = "JOIN task t ON t.id = {0}.task AND t.generation = {0}.generation WHERE t.kind = 'bench'"


@dataclass(frozen=True, slots=True)
class ArmTask:
    """One arm's task on one sample; `round` is the number of outputs made or failed when it was last closed."""

    id: str
    sample: str
    generation: int
    state: TaskState
    round: int


@dataclass(frozen=True, slots=True)
class OutputScore:
    """One score of an output; `output` counts from 0, `value` is None if a reason replaces it."""

    arm: str
    sample: str
    output: int
    metric: str
    value: float | None
    reason: str


def arm_tasks(reader: JournalReader, arm: str) -> list[ArmTask]:
    """Return the tasks of an arm, by id."""
    rows = reader.connection.execute(
        "SELECT id, image_id, generation, state, round FROM task WHERE kind = 'bench' AND finding = ? ORDER BY id",
        (arm,),
    )
    return [
        ArmTask(task, sample, generation, TaskState(state), n) for task, sample, generation, state, n in rows
    ]


def arm_states(reader: JournalReader) -> Iterator[tuple[str, TaskState, int]]:
    """Yield (arm, state, number of tasks) for all arms of a benchmark run."""
    rows = reader.connection.execute(
        "SELECT finding, state, count(*) FROM task WHERE kind = 'bench' GROUP BY finding, state"
    )
    return ((arm, TaskState(state), n) for arm, state, n in rows)


def output_scores(reader: JournalReader) -> Iterator[OutputScore]:
    """Yield every score of every output of current generations."""
    rows = reader.connection.execute(
        "SELECT t.finding, t.image_id, s.round - 1, s.metric, s.value, s.reason "
        f"FROM score s {_CURRENT.format('s')}"
    )
    return (OutputScore(*row) for row in rows)


def score_reasons(reader: JournalReader) -> list[tuple[str, bool, str, int]]:
    """Count scores by reason: (metric, True without a value, reason, number), by metric, commonest reasons first."""
    rows = reader.connection.execute(
        "SELECT s.metric, s.value IS NULL, s.reason, count(*) FROM score s "
        f"{_CURRENT.format('s')} GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 3"
    )
    return [(metric, bool(missing), reason, n) for metric, missing, reason, n in rows]


def output_edit(
    reader: JournalReader, arm: str, sample: str, output: int
) -> tuple[str | None, str, str] | None:
    """Return (hash of the image, outcome, reason) of an arm's output number `output`, from 0; None if it was not made.

    The hash is None without an image; outcome and reason are "" if none is recorded.
    """
    row = reader.connection.execute(
        "SELECT a.edited, a.edit_outcome, a.edit_reason FROM task t JOIN attempt a ON a.task = t.id"
        " AND a.generation = t.generation AND a.round = ? WHERE t.kind = 'bench' AND t.finding = ? AND t.image_id = ?",
        (output + 1, arm, sample),
    ).fetchone()
    return None if row is None else (row[0], str(row[1] or ""), str(row[2] or ""))
