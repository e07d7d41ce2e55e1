"""A run's folder from Python: tasks, attempts, tables and images, read at any time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from plantain.journal import JournalReader, TaskRow
from plantain.journal.questions.status import status_summary
from plantain.records import Attempt, Direction, InputError, SourceImage, TaskState
from plantain.runs.progress import RunSummary

if TYPE_CHECKING:
    import pandas

Row: TypeAlias = dict[str, Any]
"""One row of a table: column to value."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a run. A notebook shows its images, round by round.

    Attributes:
        run: the run's folder.
        row: its row in the journal.
    """

    run: Path
    row: TaskRow

    @property
    def id(self) -> str:
        """The task's id, 20 hex digits."""
        return self.row.id

    @property
    def finding(self) -> str:
        """The name of the finding to add or remove, e.g. "Pneumothorax"; in a benchmark's run, the editor's label."""
        return self.row.task.finding

    @property
    def modality(self) -> str:
        """The modality of the image, e.g. "chest_xray"."""
        return self.row.task.modality

    @property
    def direction(self) -> Direction:
        """`Direction.ADD` or `Direction.REMOVE`; in a benchmark's run also `Direction.CHANGE`."""
        return self.row.task.direction

    @property
    def state(self) -> TaskState:
        """The state as of when the task was read, e.g. `TaskState.SUCCESS`."""
        return self.row.state

    @property
    def image(self) -> SourceImage:
        """The record of the source image, read from the run."""
        with JournalReader.open(self.run) as reader:
            return reader.image(self.row.task.image_id)

    @property
    def attempts(self) -> list[Attempt]:
        """The task's rounds, oldest first, each with its decisive verdict; `superseded` marks those before a retry."""
        with JournalReader.open(self.run) as reader:
            return reader.attempts(self.id)

    def read_image(self, sha256: str) -> bytes:
        """Return the bytes of a file: JPEG (in a benchmark's run PNG); a mask is PNG, `raw` as the editor returned it.

        Args:
            sha256: `edited`, `raw` or `mask` of an attempt, or `image.prepared_sha256`. InputError if not in the run.
        """
        with JournalReader.open(self.run) as reader:
            if not reader.has_blob(sha256):
                raise InputError(f"{self.run}: no image {sha256!r}")
            return reader.read_blob(sha256)

    def __repr__(self) -> str:
        return f"Task({self.id}: {self.direction.value} {self.finding}, {self.state.value})"

    def _repr_html_(self) -> str:
        from plantain.report.page import story_html

        with JournalReader.open(self.run) as reader:
            return story_html(reader, reader.task(self.id))


class Run:
    """A run's folder, read at any time, also while a build writes to it.

    Args:
        path: the folder, readable as `run.path`.
        summary: counts of the build that returned this object, as `run.summary`; None for an opened run.

    Raises:
        plantain.records.InputError: the folder is not a run, or of another version; raised by the methods only.

    Example:
        >>> import plantain
        >>> run = plantain.run("pilot.toml", "runs/read")
        >>> sorted(task.finding for task in run.tasks("success"))
        ['AMD', 'Cataract']
        >>> run.table("attempt").groupby("finding").qualified.sum().to_dict()
        {'AMD': 1, 'Cataract': 1}
    """

    def __init__(self, path: Path | str, summary: RunSummary | None = None) -> None:
        self.path = Path(path)
        self.summary = summary

    def status(self) -> Row:
        """Return numbers of tasks (by state) and calls (by outcome), and the cost: most of `plantain status --json`."""
        with JournalReader.open(self.path) as reader:
            return status_summary(reader)

    def tasks(self, state: TaskState | str | None = None) -> list[Task]:
        """Return the run's tasks, sorted by id.

        Args:
            state: only those in this state, e.g. "success"; None for all. ValueError if unknown.
        """
        wanted = None if state is None else TaskState(state)
        with JournalReader.open(self.path) as reader:
            return [Task(self.path, row) for row in reader.tasks(wanted)]

    def task(self, id: str) -> Task:
        """Return one task, by its id or a unique prefix of it; a notebook shows its images.

        Raise InputError if no task id starts with `id`, or several do.
        """
        with JournalReader.open(self.path) as reader:
            return Task(self.path, reader.task(id))

    def attempts(self, *, superseded: bool = False) -> list[Attempt]:
        """Return the rounds of all tasks, sorted by task id, generation and round, each with its decisive verdict.

        Attempts name images by their hashes; `Task.read_image` returns the files.

        Args:
            superseded: True to include the rounds that a later retry of their task replaced.
        """
        with JournalReader.open(self.path) as reader:
            return list(reader.all_attempts(superseded))

    def rows(self, by: Literal["task", "attempt"] = "task") -> list[Row]:
        """Return `table` as dictionaries, without pandas; a missing value may be a missing key.

        Raise ValueError for another `by`.
        """
        with JournalReader.open(self.path) as reader:
            tasks = {row.id: row for row in reader.tasks()}
            if by == "task":
                return [_task_columns(row) for row in tasks.values()]
            if by == "attempt":
                return [
                    _task_columns(tasks[one.task_id]) | _attempt_columns(one) for one in reader.all_attempts()
                ]
        raise ValueError(f"by: {by!r}; task or attempt")

    def table(self, by: Literal["task", "attempt"] = "task") -> pandas.DataFrame:
        """Return tasks or attempts as a DataFrame, one row each.

        Args:
            by: "task": `task`, `image` (ids), `modality`, `finding`, `direction`, `kind`, `state`, `round`, `reason`.
                "attempt": the same for each round that no retry replaced, with its own `round`, and `generation`,
                `instruction`, `edit` (its outcome), `edited` (SHA-256), the decisive verdict's `judge`, `qualified` and
                `score`, and a column for each criterion, True if it passed. Missing values are missing, never 0.

        Raise InputError if pandas is not installed (`rows` works without it), ValueError for another `by`.
        """
        try:
            import pandas
        except ImportError:
            raise InputError("Run.table needs pandas: pip install pandas; Run.rows() works without") from None
        return pandas.DataFrame(self.rows(by))

    def report(self, to: Path | str | None = None) -> Path:
        """Write the run's report as `plantain report` does, and return the path of its HTML file.

        The numbers are written next to it as JSON. Raise InputError if the page cannot be written.

        Args:
            to: the HTML file, replaced if it exists; None for `report.html` in the run's folder.
        """
        from plantain.report.page import write_report

        return write_report(self.path, None if to is None else Path(to))

    def __repr__(self) -> str:
        with JournalReader.open(self.path) as reader:
            counts = reader.counts()
        parts = [f"{n} {state.value.replace('_', ' ')}" for state, n in counts.items() if n]
        return f"Run({str(self.path)!r}): {', '.join([f'{sum(counts.values())} tasks', *parts])}"


def _task_columns(row: TaskRow) -> Row:
    task = row.task
    return {
        "task": row.id,
        "image": task.image_id,
        "modality": task.modality,
        "finding": task.finding,
        "direction": task.direction.value,
        "kind": task.kind.value,
        "state": row.state.value,
        "round": row.round,
        "reason": row.reason,
    }


def _attempt_columns(attempt: Attempt) -> Row:
    verdict = attempt.verdict
    columns: Row = {
        "generation": attempt.generation,
        "round": attempt.round,
        "instruction": attempt.instruction,
        "edit": None if attempt.edit_outcome is None else attempt.edit_outcome.kind.value,
        "edited": attempt.edited,
        "judge": None if verdict is None else verdict.judge,
        "qualified": None if verdict is None else verdict.qualified,
        "score": None if verdict is None else verdict.score,
    }
    if verdict is not None:
        columns |= {name: result.passed for name, result in verdict.observations.criteria.items()}
    return columns
