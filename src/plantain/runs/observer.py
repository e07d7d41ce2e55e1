"""Progress of a run, as callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plantain.calls import Budget
from plantain.engines.contract import EngineState
from plantain.records import TaskState


class ProgressObserver:
    """Receives a run's progress, in its event loop; every method may be overridden and returns quickly."""

    def planned(self, tasks: int, counts: dict[TaskState, int], budget: Budget) -> None:
        """Before the first call: the number of tasks, their states, and the budget."""

    def asks(self, models: Sequence[str]) -> None:
        """The tasks begin, with calls to these models."""

    def closed(self, state: TaskState, steps: int) -> None:
        """A task closed after `steps` rounds or outputs."""

    def begun(self, what: str, total: int) -> None:
        """A stage begins that closes no tasks: "metrics" counts samples, "judges" outputs."""

    def advanced(self, stored: int) -> None:
        """One more item of the stage is done, with `stored` results."""

    def note(self, line: str) -> None:
        """A message for a person, once."""

    def stopping(self) -> None:
        """The run was asked to stop: calls in flight finish, no new one is sent."""

    def jobs(self, in_flight: Callable[[], int]) -> None:
        """Calls wait for batch jobs, for hours; `in_flight` returns how many."""

    def engine(self, state: Callable[[], EngineState]) -> None:
        """Work goes to an engine's workers; `state` returns its state."""

    def waiting(self, why: str) -> None:
        """No new call is made; the run waits for batch jobs."""


SILENT = ProgressObserver()
