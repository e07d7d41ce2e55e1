"""A run's tasks in words: how many ended how and why, and lists of those without success or that a filter selects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.journal import JournalReader, TaskRow
from plantain.journal.questions.telemetry import why_not_done
from plantain.pixels.decode import one_line
from plantain.records import TaskState
from plantain.records.messages import command_line, counted, fold

NAMED = 5
"""Failed, undecided and stopped tasks of a state that a command lists."""

UNSUCCESSFUL = (TaskState.FAILED, TaskState.UNDECIDED, TaskState.STOPPED)
"""States that a user asks about first."""


@dataclass(frozen=True, slots=True)
class ListedTask:
    """One task as a line, with the reason why it did not succeed; "" if it did."""

    id: str
    state: str
    modality: str
    finding: str
    direction: str
    round: int
    why: str

    @property
    def line(self) -> str:
        """Return e.g. "3f2a… failed in round 5: add Edema: realism (blending artefact)", for a terminal."""
        where = f" in round {self.round}" if self.round else ""
        why = f": {self.why}" if self.why else ""
        return f"{self.id} {self.state.replace('_', ' ')}{where}: {self.direction} {self.finding}{why}"


@dataclass(frozen=True, slots=True)
class Unsuccessful:
    """Failed, undecided and stopped tasks: the first of each state by id, and how many there are by state."""

    tasks: tuple[ListedTask, ...]
    counts: tuple[tuple[str, int], ...]

    def lines(self, run: Path) -> Iterator[str]:
        """Yield a line for each named task, and for each state with more tasks the command to list them."""
        for state, count in self.counts:
            shown = [task for task in self.tasks if task.state == state]
            yield from (one_line(task.line) for task in shown)
            if count > len(shown):
                more = command_line("show", run, "--state", state)
                yield one_line(f"and {count - len(shown)} more {state}: {more}")


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks are listed; an empty field sets no condition. Findings are compared by letters and digits."""

    states: Sequence[TaskState] = ()
    findings: Sequence[str] = ()
    modality: str = ""
    direction: str = ""
    image: str = ""

    def passes(self, row: TaskRow) -> bool:
        """Return True if a task passes the filter."""
        task = row.task
        return (
            (not self.findings or fold(task.finding) in map(fold, self.findings))
            and (not self.modality or fold(task.modality) == fold(self.modality))
            and (not self.direction or task.direction.value == self.direction)
            and (not self.image or task.image_id == self.image)
        )


def listed(reader: JournalReader, wanted: TaskFilter) -> Iterator[ListedTask]:
    """Yield the run's tasks that pass, by state if the filter has states, else by id."""
    for state in wanted.states or (None,):
        yield from (_listed(reader, row) for row in reader.tasks(state) if wanted.passes(row))


def unsuccessful(reader: JournalReader, most: int = NAMED) -> Unsuccessful:
    """Return failed, undecided and stopped tasks, at most `most` of each state."""
    counts = reader.counts()
    tasks = [_listed(reader, row) for state in UNSUCCESSFUL for row in reader.tasks(state, limit=most)]
    return Unsuccessful(tuple(tasks), tuple((state.value, counts[state]) for state in UNSUCCESSFUL))


def tasks_line(summary: dict[str, object]) -> str:
    """Return the tasks of a `status_summary` in one line: "28 tasks: 22 success, 0 failed, 6 not applicable"."""
    tasks = summary["tasks"]
    assert isinstance(tasks, dict)
    always = ("success", "failed")
    parts = [f"{tasks[state]} {state}" for state in always]
    parts += [
        f"{n} {state.replace('_', ' ')}"
        for state, n in tasks.items()
        if n and state not in (*always, "total")
    ]
    return f"{counted(tasks['total'], 'task')}: {', '.join(parts)}"


def reasons(reader: JournalReader, most: int = 4) -> list[str]:
    """Return the `most` frequent reasons of tasks without a result, a line each, and a line for the rest."""
    rows = why_not_done(reader)
    lines = [f"  {n} {state.replace('_', ' ')}: {one_line(reason)}" for state, reason, n in rows[:most]]
    if len(rows) > most:
        lines.append(f"  {sum(n for *_, n in rows[most:])} for more reasons, which the report lists")
    return lines


def _listed(reader: JournalReader, row: TaskRow) -> ListedTask:
    task = row.task
    return ListedTask(
        row.id,
        row.state.value,
        task.modality,
        task.finding,
        task.direction.value,
        row.round,
        _why(reader, row),
    )


def _why(reader: JournalReader, row: TaskRow) -> str:
    """Return the task's reason; of an imported task that failed, the failed criteria of its last judged edit."""
    if row.reason or row.state is not TaskState.FAILED:
        return row.reason
    verdicts = [one.verdict for one in reader.attempts(row.id, row.generation) if one.verdict is not None]
    return verdicts[-1].why_not if verdicts else ""
