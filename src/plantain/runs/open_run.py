"""A run that is open: through it tasks are carried, each call memoised in the run's journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from plantain.calls import AdmissionController, ModelClient, TaskCalls
from plantain.journal import Journal, JsonValue
from plantain.records import TaskState
from plantain.runs.observer import ProgressObserver
from plantain.runs.settings.terms import Terms
from plantain.runs.settings.transport import tasks_under_way
from plantain.runs.summary import RunSummary
from plantain.runs.worker_pool import WorkerPool

T = TypeVar("T")


@dataclass(slots=True)
class OpenRun:
    """What `Door.open` hands out.

    Attributes:
        journal, client: the run's.
        admission, pool, observer, in_jobs: what stands around its calls.
        summary: of this process; complete when the run is closed.
        pending: whether something is lacking still, asked when the run ends.
    """

    terms: Terms
    journal: Journal
    client: ModelClient
    admission: AdmissionController
    pool: WorkerPool
    observer: ProgressObserver
    in_jobs: bool = False
    summary: RunSummary = field(default_factory=RunSummary)
    pending: Callable[[], bool] | None = None

    @property
    def stopping(self) -> bool:
        """Whether no new call is made any more."""
        return self.client.stop_requested

    def calls(self, task_id: str, generation: int) -> TaskCalls:
        """The memoised calls of a task."""
        recorded = self.journal.reader.calls(task_id, generation)
        return TaskCalls(self.client, task_id, generation, recorded)

    def planned(self, counts: dict[TaskState, int], pending: Callable[[], bool]) -> None:
        """Says how the tasks stand before the first call, and how to learn at the end whether all are done."""
        self.pending = pending
        self.summary.planned = sum(counts.values())
        self.observer.planned(self.summary.planned, counts, self.admission.budget)
        if self.in_jobs:
            self.observer.jobs(lambda: self.admission.in_jobs)

    def halt(self, why: str) -> None:
        """Stops the run for something that is wrong with it."""
        self.pool.halt(why, faulty=True)

    async def walk(
        self,
        tasks: Iterable[T],
        carry: Callable[[T], Awaitable[None]],
        *,
        limit: int | None = None,
        at_once: int | None = None,
    ) -> None:
        """Carries each task, at most `limit`, as many at once as the terms allow; returns when done or stopped."""
        await self.pool.all(tasks, carry, at_once or tasks_under_way(self.terms), limit)

    async def close_task(self, task_id: str, state: TaskState, steps: int, reason: str = "") -> None:
        """Closes a task in the journal, counts it and tells who watches."""
        await self.journal.close_task(task_id, state, steps, reason)
        self.summary.closed[state] += 1
        self.observer.closed(state, steps)

    def sum_up(self) -> None:
        """Says in the summary what was done, and whether something is lacking."""
        done = self.summary
        done.made, done.replayed = self.client.made, self.client.replayed
        done.spent_usd = self.journal.reader.spent_usd()
        done.stopped, done.failed = self.pool.halted, self.pool.faulty
        lacking = self.stopping if self.pending is None else self.pending()
        if done.stopped is None and lacking:
            done.stopped = "interrupted" if self.stopping else "limit"

    def telemetry(self) -> dict[str, JsonValue]:
        """What the session's row keeps beside its peak memory."""
        return {"made": self.client.made, "limits": self.admission.history()}
