"""Retry is a query: which closed tasks ended in a given way; exactly those go on, or begin a new generation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plantain.journal import JournalReader
from plantain.records import InputError, OutcomeKind, Step, TaskState

NO_ROUND = "no_round"
"""How a task ended whose rounds were all used and none qualified; the others are outcomes."""

ENDINGS = (
    OutcomeKind.REFUSED.value,
    OutcomeKind.MALFORMED.value,
    OutcomeKind.NO_IMAGE.value,
    OutcomeKind.TRANSPORT.value,
    OutcomeKind.RATE_LIMITED.value,
    OutcomeKind.NOT_APPLICABLE.value,
    NO_ROUND,
)

PAGE = 1_000

_CLOSED = (
    "SELECT t.id, t.finding, t.direction, t.state, t.reason, c.outcome, c.step FROM task t LEFT JOIN call c ON c.id = "
    "(SELECT max(id) FROM call WHERE task = t.id AND generation = t.generation AND final = 1) "
    "WHERE t.state IN (?, ?, ?) AND t.id > ? ORDER BY t.id LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """A closed task that did not succeed, and the call that ended it; `step` is "" where no call did."""

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
        """Raises InputError for an ending, step or finding that there is none of."""
        known = {name for (name,) in reader.connection.execute("SELECT DISTINCT finding FROM task")}
        for what, given, allowed in (
            ("--outcome", self.endings, ENDINGS),
            ("--step", self.steps, tuple(step.value for step in Step)),
            ("--finding", self.findings, tuple(sorted(known))),
        ):
            for value in given:
                if value not in allowed:
                    raise InputError(f"{what} {value!r}: not one of {', '.join(allowed)}")


def ended_tasks(reader: JournalReader, choice: RetryChoice) -> Iterator[Ended]:
    """The tasks that the choice names, in the order of their ids, streamed; successful ones are never among them."""
    after = ""
    states = (TaskState.FAILED.value, TaskState.NOT_APPLICABLE.value, TaskState.STOPPED.value)
    while rows := reader.connection.execute(_CLOSED, (*states, after, PAGE)).fetchall():
        for task_id, finding, direction, state, reason, outcome, step in rows:
            ended = Ended(task_id, finding, direction, _ending(state, outcome), step or "", reason)
            if (
                ended.ending in choice.endings
                and (not choice.steps or ended.step in choice.steps)
                and (not choice.findings or finding in choice.findings)
            ):
                yield ended
        after = rows[-1][0]


def _ending(state: str, outcome: str | None) -> str:
    if state == TaskState.FAILED.value:
        return NO_ROUND
    if state == TaskState.NOT_APPLICABLE.value:
        return OutcomeKind.NOT_APPLICABLE.value
    return outcome or ""
