"""Retry: the closed tasks that ended in a given way continue, or start a new generation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plantain.journal import JournalReader
from plantain.journal.questions.tasks import ended_without_success, findings_of_tasks
from plantain.records import InputError, OutcomeKind, Step, TaskState

ENDINGS = (
    OutcomeKind.REFUSED.value,
    OutcomeKind.MALFORMED.value,
    OutcomeKind.NO_IMAGE.value,
    OutcomeKind.TRANSPORT.value,
    OutcomeKind.RATE_LIMITED.value,
    TaskState.NOT_APPLICABLE.value,
    TaskState.FAILED.value,
)
"""Ends of tasks that can be opened again: a state, or of a stopped task the outcome of its last call. An undecided task
is not among them, since a run keeps its judge."""


@dataclass(frozen=True, slots=True)
class RetryableTask:
    """A closed task that did not succeed, and the call that ended it; `step` is "" if none did."""

    task_id: str
    finding: str
    direction: str
    ending: str
    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class RetryChoice:
    """Which endings to open again. An empty tuple of steps or findings means all of them."""

    endings: tuple[str, ...]
    steps: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()

    def check(self, reader: JournalReader) -> None:
        """Raise InputError for an unknown ending, step or finding."""
        for what, given, allowed in (
            ("--outcome", self.endings, ENDINGS),
            ("--step", self.steps, tuple(step.value for step in Step)),
            ("--finding", self.findings, tuple(sorted(findings_of_tasks(reader)))),
        ):
            for value in given:
                if value not in allowed:
                    raise InputError(f"{what} {value!r}: not one of {', '.join(allowed)}")


def ended_tasks(reader: JournalReader, choice: RetryChoice) -> Iterator[RetryableTask]:
    """Return the tasks that the choice names, in the order of their ids, streamed; never a successful one."""
    for task in ended_without_success(reader):
        ending = task.outcome or "" if task.state == TaskState.STOPPED else task.state
        if (
            ending in choice.endings
            and (not choice.steps or task.step in choice.steps)
            and (not choice.findings or task.finding in choice.findings)
        ):
            yield RetryableTask(task.id, task.finding, task.direction, ending, task.step or "", task.reason)
