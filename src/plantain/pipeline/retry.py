"""Retry: the closed tasks that ended in a given way continue, or start a new generation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plantain.journal import JournalReader
from plantain.journal.questions.tasks import EndedTask, ended_without_success, findings_of_tasks
from plantain.records import Direction, InputError, OutcomeKind, Step, TaskState

OUTCOMES = (
    OutcomeKind.REFUSED.value,
    OutcomeKind.MALFORMED.value,
    OutcomeKind.NO_IMAGE.value,
    OutcomeKind.TRANSPORT.value,
    OutcomeKind.RATE_LIMITED.value,
)
"""Outcomes of the last call of a stopped task that can be tried again."""

STATES = (TaskState.FAILED.value, TaskState.NOT_APPLICABLE.value, TaskState.STOPPED.value)
"""States of tasks that can be opened again; not undecided, since a run keeps its judge."""

DIRECTIONS = tuple(direction.value for direction in Direction)


@dataclass(frozen=True, slots=True)
class RetryChoice:
    """Which tasks to open again: by outcome or state. Empty steps, findings or directions mean all of them."""

    outcomes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()

    def check(self, reader: JournalReader) -> None:
        """Raise InputError if a word is unknown, or if neither an outcome nor a state is named."""
        if not self.outcomes and not self.states:
            raise InputError(f"--outcome, --state: name at least one of {', '.join((*OUTCOMES, *STATES))}")
        for what, given, allowed in (
            ("--outcome", self.outcomes, OUTCOMES),
            ("--state", self.states, STATES),
            ("--step", self.steps, tuple(step.value for step in Step)),
            ("--finding", self.findings, tuple(sorted(findings_of_tasks(reader)))),
            ("--direction", self.directions, DIRECTIONS),
        ):
            for value in given:
                if value not in allowed:
                    raise InputError(f"{what} {value!r}: not one of {', '.join(allowed)}")


def ended_tasks(reader: JournalReader, choice: RetryChoice) -> Iterator[EndedTask]:
    """Yield the tasks that the choice names, in the order of their ids; never a successful one."""
    for task in ended_without_success(reader):
        if (
            (task.ending in choice.outcomes or task.state in choice.states)
            and (not choice.steps or task.step in choice.steps)
            and (not choice.findings or task.finding in choice.findings)
            and (not choice.directions or task.direction in choice.directions)
        ):
            yield task
