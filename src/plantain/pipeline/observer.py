"""Watching a run: what whoever started it is told while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plantain.calls import Budget
from plantain.pipeline.loop import Closing
from plantain.records import TaskState


class ProgressObserver:
    """Told of a run's progress, in the run's event loop; every method may be overridden and returns quickly."""

    def planned(self, tasks: int, counts: dict[TaskState, int], budget: Budget) -> None:
        """The plan stands: how many tasks, how they stand, and the budget to look into; before the first call."""

    def asks(self, models: Sequence[str]) -> None:
        """The tasks begin: which models are asked, the first answers of which are waited for."""

    def closed(self, closing: Closing) -> None:
        """A task closed."""

    def stopping(self) -> None:
        """Someone asked the run to stop: what is in flight is finished, nothing new is begun."""

    def jobs(self, in_flight: Callable[[], int]) -> None:
        """Calls wait for batch jobs, so that hours may pass without a task closing; how many do so at any moment."""

    def waiting(self, why: str) -> None:
        """Nothing goes on for now: a model answers nobody, or only answers in batch jobs are waited for."""
