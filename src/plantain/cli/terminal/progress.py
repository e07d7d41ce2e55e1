"""The live line of a build: success, failed, rounds, time left; plain lines where there is no terminal."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from plantain.calls import Budget
from plantain.cli.terminal.tables import TerminalConsole
from plantain.engines.contract import EngineState
from plantain.records import TaskState
from plantain.records.counts import counted
from plantain.runs.engine import state_in_words
from plantain.runs.observer import ProgressObserver

PLAIN_EVERY_S = 10.0
TICK_S = 10.0
WAITING_EVERY_S = 60.0
"""A plain line although no task has closed: where calls wait for batch jobs."""


def mean_rounds(tasks: int, rounds: int) -> str:
    """How many rounds a task took, in the mean."""
    return f"{rounds / tasks:.1f} rounds"


def duration(seconds: float) -> str:
    """Seconds for a person: "40 s", "12 min", "7.5 h" or "3.2 days"."""
    for size, unit in ((86_400.0 * 2, "days"), (5_400.0, "h"), (90.0, "min")):
        if seconds >= size:
            scale = {"days": 86_400.0, "h": 3_600.0, "min": 60.0}[unit]
            return f"{seconds / scale:.0f} min" if unit == "min" else f"{seconds / scale:.1f} {unit}"
    return f"{seconds:.0f} s"


ENOUGH = 20
"""So many say how long the rest takes; of fewer, one in a hundred does."""


def time_left(done: int, wanted: int, since: float, now: float) -> str:
    """Rate and time left by what was done since a moment, e.g. "2.4 s each, about 80 s left".

    Where little was done, the rate alone: the first takes what starting takes as well.
    """
    each = (now - since) / max(1, done)
    rate = f"{each:.1f} s each" if each >= 1 else f"{1 / max(each, 1e-9):.0f}/s"
    if done < ENOUGH and 100 * done < wanted:
        return rate
    return f"{rate}, about {duration(max(0, wanted - done) * each)} left"


class BuildProgress(ProgressObserver):
    """Shows how a build goes on.

    Args:
        quiet: show nothing.
        what: name of the work.
        success, failed: what a task that ended so is called.
        steps: says what tasks that closed have had, of how many there are and of their steps in all.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        what: str = "build",
        success: str = "success",
        failed: str = "failed",
        steps: Callable[[int, int], str] = mean_rounds,
    ) -> None:
        self._success, self._failed, self._steps = success, failed, steps
        console = TerminalConsole(stderr=True)
        self._live = not quiet and console.is_terminal
        self._plain = not quiet and not console.is_terminal
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[tally]}"),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not self._live,
        )
        self._task = self._bar.add_task(what, total=None, tally="")
        self._counts: dict[str, int] = {}
        self._budget: Budget | None = None
        self._in_jobs: Callable[[], int] = int
        self._engine: Callable[[], EngineState] | None = None
        self._waits_for = ""
        self._ticking: asyncio.TimerHandle | None = None
        self._total = 0
        self._rounds = 0
        self._closed_here = 0
        self._begun = self._last_line = time.monotonic()

    def __enter__(self) -> BuildProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self._bar.stop()

    def note(self, line: str) -> None:
        """Says it on a line of its own."""
        if self._live or self._plain:
            print(f"plantain: {line}", file=sys.stderr, flush=True)

    def planned(self, tasks: int, counts: dict[TaskState, int], budget: Budget) -> None:
        """Draws the bar as the run stands before its first call."""
        self._total, self._budget = tasks, budget
        self._counts = {state.value: n for state, n in counts.items()}
        done = tasks - self._counts.get(TaskState.PENDING, 0)
        self._bar.update(self._task, total=tasks, completed=done, tally=self._tally())

    def asks(self, models: Sequence[str]) -> None:
        """Says at once what is waited for: a first task of a slow model may take minutes."""
        if not models or self._closed_here:
            return
        self._waits_for = f"waiting for the first task; asking {', '.join(models)}"
        self._bar.update(self._task, tally=self._tally())
        if self._plain:
            pending = self._counts.get(TaskState.PENDING, 0)
            print(
                f"plantain: {pending} of {counted(self._total, 'task')} to do; {self._waits_for}",
                file=sys.stderr,
                flush=True,
            )

    def closed(self, state: TaskState, steps: int) -> None:
        """A task closed."""
        self._counts[state] = self._counts.get(state, 0) + 1
        self._closed_here += 1
        self._waits_for = ""
        self._rounds += steps
        self._bar.update(self._task, advance=1, tally=self._tally())
        now = time.monotonic()
        if self._plain and now - self._last_line >= PLAIN_EVERY_S:
            self._last_line = now
            print(self._line(now), file=sys.stderr, flush=True)

    def stopping(self) -> None:
        """Says what the first Ctrl-C does."""
        print(
            "plantain: finishing what is in flight; Ctrl-C again stops at once", file=sys.stderr, flush=True
        )

    def jobs(self, in_flight: Callable[[], int]) -> None:
        """From now on the line says how many calls wait, and is renewed although no task closes."""
        self._in_jobs = in_flight
        self._tick()

    def engine(self, state: Callable[[], EngineState]) -> None:
        """From now on the line says how the workers stand."""
        self._engine = state
        self._tick()

    def waiting(self, why: str) -> None:
        """Says that the command has not got stuck."""
        left = self._in_jobs()
        jobs = (
            f"; {counted(left, 'call waits', 'calls wait')} in batch jobs (Ctrl-C leaves them to the next build)"
            if left
            else ""
        )
        self._waits_for = why
        self._bar.update(self._task, tally=self._tally())
        if not self._live or left:
            print(f"plantain: {why}{jobs}", file=sys.stderr, flush=True)

    def _tick(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self._bar.update(self._task, tally=self._tally())
        now = time.monotonic()
        if self._plain and now - self._last_line >= WAITING_EVERY_S:
            self._last_line = now
            print(self._line(now), file=sys.stderr, flush=True)
        self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tally(self) -> str:
        parts = [
            f"{self._counts.get(TaskState.SUCCESS, 0)} {self._success}",
            f"{self._counts.get(TaskState.FAILED, 0)} {self._failed}",
        ]
        for state in (TaskState.UNDECIDED, TaskState.NOT_APPLICABLE, TaskState.STOPPED):
            if self._counts.get(state):
                parts.append(f"{self._counts[state]} {state.value.replace('_', ' ')}")
        if self._closed_here:
            parts.append(self._steps(self._closed_here, self._rounds))
        if self._in_jobs():
            parts.append(f"{counted(self._in_jobs(), 'call')} in batch jobs")
        if self._engine is not None:
            parts.append(state_in_words(self._engine()))
        if self._budget is not None and (self._budget.committed_usd or self._budget.budget_usd):
            parts.append(cost_so_far(self._budget))
        if self._waits_for:
            parts.append(self._waits_for)
        return ", ".join(parts)

    def _line(self, now: float) -> str:
        done = sum(n for state, n in self._counts.items() if state != TaskState.PENDING)
        line = f"plantain: {done}/{self._total}: {self._tally()}"
        if not self._closed_here:
            return line
        rest = (self._total - done) * (now - self._begun) / self._closed_here
        return f"{line}; about {duration(rest)} left"


def cost_so_far(budget: Budget) -> str:
    """The money for a person: "$12.34 of $500", and what is held for calls whose cost is not known."""
    cap = f" of ${budget.budget_usd:g}" if budget.budget_usd is not None else ""
    held = f" (and up to ${budget.held_usd:.2f} unresolved)" if budget.held_usd else ""
    return f"${budget.spent_usd:.2f}{cap}{held}"
