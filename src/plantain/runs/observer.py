"""Watching a run: what whoever started it is told while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plantain.calls import Budget
from plantain.engines.contract import EngineState
from plantain.records import TaskState


class ProgressObserver:
    """Told of a run's progress, in the run's event loop; every method may be overridden and returns quickly."""

    def planned(self, tasks: int, counts: dict[TaskState, int], budget: Budget) -> None:
        """The plan stands: how many tasks, how they stand, and the budget to look into; before the first call."""

    def asks(self, models: Sequence[str]) -> None:
        """The tasks begin: which models are asked, the first answers of which are waited for."""

    def closed(self, state: TaskState, steps: int) -> None:
        """A task closed, after so many rounds or outputs."""

    def begun(self, what: str, total: int) -> None:
        """A stage begins that stores rather than closes: "metrics" counts samples, "judges" outputs."""

    def advanced(self, stored: int) -> None:
        """One more of the stage is done, and that much was stored."""

    def note(self, line: str) -> None:
        """Something that a person should know, once."""

    def stopping(self) -> None:
        """Someone asked the run to stop: what is in flight is finished, nothing new is begun."""

    def jobs(self, in_flight: Callable[[], int]) -> None:
        """Calls wait for batch jobs, so that hours may pass without a task closing; how many do so at any moment."""

    def engine(self, state: Callable[[], EngineState]) -> None:
        """Work goes to an engine's workers; how it stands at any moment."""

    def waiting(self, why: str) -> None:
        """No new call is made, and the answers in batch jobs are waited for."""


SILENT = ProgressObserver()
