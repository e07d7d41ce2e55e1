"""Progress of a run as callbacks, and the summary of one process."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from plantain.calls import Budget
from plantain.records import TaskState


class ProgressObserver:
    """Receives a run's progress, in its event loop; every method may be overridden and returns quickly."""

    def planned(self, tasks: int, counts: dict[TaskState, int], budget: Budget) -> None:
        """Report tasks, their states and the budget, before the first call."""

    def asks(self, models: Sequence[str], tasks: int | None = None) -> None:
        """Report the start of the tasks, with calls to these models; `tasks` of them now, None for all."""

    def closed(self, state: TaskState, steps: int) -> None:
        """Report a task that closed after `steps` rounds or outputs."""

    def stage_started(self, what: str, total: int) -> None:
        """Report the start of a stage without tasks: "metrics" counts samples, "judges" outputs."""

    def advanced(self, stored: int) -> None:
        """Report one more finished item of the stage, with `stored` results."""

    def note(self, line: str) -> None:
        """Print a message for the user, once."""

    def stopping(self) -> None:
        """Report a requested stop: calls in flight finish, no new one is sent. Again: the process ends now."""

    def jobs(self, in_flight: Callable[[], int]) -> None:
        """Report calls in batch jobs; `in_flight` returns their number."""

    def engine(self, line: Callable[[], str]) -> None:
        """Report the use of a cluster; `line` returns its state in words."""

    def waiting(self, why: str) -> None:
        """Report that the run waits for batch jobs and makes no new calls."""


SILENT = ProgressObserver()

FIRST_S, EVERY_S = 2.0, 10.0
"""Seconds before the first line of progress, and between lines."""


class PlainProgress(ProgressObserver):
    """Prints the number of finished tasks, or items of a stage, as lines on stderr, for `evaluate`."""

    def __init__(self) -> None:
        self._what, self._done, self._total = "tasks", 0, 0
        self._next = time.monotonic() + FIRST_S

    def planned(self, tasks: int, counts: dict[TaskState, int], budget: Budget) -> None:
        self._done, self._total = tasks - counts.get(TaskState.PENDING, 0), tasks

    def closed(self, state: TaskState, steps: int) -> None:
        self.advanced(steps)

    def stage_started(self, what: str, total: int) -> None:
        self._what, self._done, self._total = what, 0, total

    def advanced(self, stored: int) -> None:
        self._done += 1
        if (now := time.monotonic()) >= self._next:
            self._next = now + EVERY_S
            print(f"plantain: {self._what}: {self._done}/{self._total}", file=sys.stderr, flush=True)


@dataclass(slots=True)
class RunSummary:
    """The results of one process in a run, and why it stopped.

    Attributes:
        planned: number of tasks in the plan.
        closed: number of tasks that this process closed, by state.
        measured, judged, sets: number of metric scores, judge scores and set distances that it stored.
        kept: number of outputs that were measured before.
        made, replayed: number of calls made, and of recorded answers reused.
        spent_usd: cost of the run so far in US dollars, including earlier processes.
        stopped: None if all is done, else the reason ("interrupted", "limit", or another).
        failed: True if stopped by a fault, not by a limit.
        left: sentence on the batch jobs that continue; "" if none does.
        notes: omitted items with their reasons, a line each.
    """

    planned: int = 0
    closed: Counter[TaskState] = field(default_factory=Counter)
    measured: int = 0
    judged: int = 0
    sets: int = 0
    kept: int = 0
    made: int = 0
    replayed: int = 0
    spent_usd: float = 0.0
    stopped: str | None = None
    failed: bool = False
    left: str = ""
    notes: list[str] = field(default_factory=list)
