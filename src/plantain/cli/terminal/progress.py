"""A long command on the terminal: its progress on stderr, Ctrl-C for work in steps, and its end.

Progress is a bar on a terminal, and periodic lines elsewhere. The end of a resumable command: why it stopped, the
command that resumes it, and the exit code.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text
from typer._click.globals import get_current_context

from plantain.calls import Budget
from plantain.cli import command_again
from plantain.cli.terminal.tables import TerminalConsole
from plantain.offline.workers import close_workers
from plantain.records import InputError, TaskState
from plantain.records.messages import counted, duration
from plantain.runs.progress import ProgressObserver, RunSummary
from plantain.train.plans import TrainingProgress

PLAIN_EVERY_S = 10.0
TICK_S = 10.0
WAITING_EVERY_S = 60.0
"""Seconds between plain lines while calls wait for batch jobs."""

ESTIMATE_FROM, ESTIMATE_AFTER_S = 0.05, 10.0
"""Finished share of the work, and seconds, before the time left is estimated."""


def say(line: str) -> None:
    """Print a message on stderr."""
    print(f"plantain: {line}", file=sys.stderr, flush=True)


def time_left(done: int, total: int, seconds: float) -> str:
    """Format rate and time left, e.g. "2.4 s each, about 80 s left"; only the rate at the start."""
    each = seconds / max(1, done)
    rate = f"{each:.1f} s each" if each >= 1 else f"{1 / max(each, 1e-9):.0f}/s"
    if done < ESTIMATE_FROM * total or seconds < ESTIMATE_AFTER_S or done >= total:
        return rate
    return f"{rate}, about {duration((total - done) * each)} left"


class TimeLeft(ProgressColumn):
    """Rate and time left of a bar, as in plain lines; rich's own column estimates from the first seconds on."""

    def render(self, task: Task) -> Text:
        if not task.total or not task.completed:
            return Text("")
        return Text(time_left(int(task.completed), int(task.total), task.elapsed or 0.0))


class Bar:
    """A progress bar that appears when work first advances.

    Args:
        what: name of the work.
        quiet: True to show no progress.
        transient: True to remove the bar at the end.
    """

    def __init__(self, what: str = "", *, quiet: bool = False, transient: bool = False) -> None:
        console = Console(stderr=True)
        self.live, self.plain = not quiet and console.is_terminal, not quiet and not console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[tally]}"),
            TimeLeft(),
            console=TerminalConsole(stderr=True) if self.live else console,
            transient=transient,
            disable=not self.live,
        )
        self._task = self._bar.add_task(what, total=None, tally="")
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        if self._bar.live.is_started:  # stopping a bar that never appeared would print an empty line
            self._bar.stop()

    def restart(self, what: str, total: int | None) -> None:
        """Restart the bar at 0 for other work."""
        self._bar.reset(self._task, total=total, description=what, tally="")

    def move(self, done: int | None = None, total: int | None = None, tally: str | None = None) -> None:
        """Show the bar with these values; None keeps the current one."""
        fields = {} if tally is None else {"tally": tally}
        self._bar.update(self._task, completed=done, total=total, **fields)  # type: ignore[arg-type]
        if self.live:
            self._bar.start()

    def note(self, line: str) -> None:
        """Print a message unless quiet."""
        if self.live or self.plain:
            say(line)

    def line(self, text: Callable[[float], str], every: float | None = None) -> None:
        """Print a line every `every` seconds at most (default `PLAIN_EVERY_S`), without a terminal."""
        now = time.monotonic()
        if self.plain and now - self._last >= (PLAIN_EVERY_S if every is None else every):
            self._last = now
            say(text(now))


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that moves a bar: (done, total or None if unknown)."""
    with Bar(what, transient=True) as bar:

        def move(done: int, wanted: int | None) -> None:
            bar.move(done, wanted)
            bar.line(lambda _: f"{what}: {done:,}" + ("" if wanted is None else f"/{wanted:,}"))

        yield move


class _Observer(Bar, ProgressObserver):
    _stopping = False

    def stopping(self) -> None:
        if self._stopping:
            again = command_again(get_current_context(), "limit")
            say(f"stopped without waiting for the calls in flight; resume with: {again}")
            return
        self._stopping = True
        say("finishing the calls in flight; press Ctrl-C again to stop at once")


class StageProgress(_Observer):
    """Progress of the stages of a scoring or an audit."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self._stage, self._done, self._total, self._measured = "", 0, 0, 0
        self._started = time.monotonic()

    def note(self, line: str) -> None:
        say(line)

    def stage_started(self, what: str, total: int) -> None:
        self._stage, self._done, self._total, self._measured = what, 0, total, 0
        self._started = time.monotonic()
        self.restart(what, total)
        self.move(0)

    def advanced(self, stored: int) -> None:
        self._done += 1
        self._measured += stored > 0  # results of an earlier scoring take no time
        self.move(self._done)
        self.line(self._line)

    def _line(self, now: float) -> str:
        kind = {"metrics": " samples", "judges": " outputs"}.get(self._stage, "")
        line = f"{self._stage}: {self._done}/{self._total}{kind}"
        if not self._measured:
            return line
        earlier = self._done - self._measured
        return f"{line}, {time_left(self._measured, self._total - earlier, now - self._started)}"


class TrainingBar(Bar, TrainingProgress):
    """Progress of a training: step and loss."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__("training", quiet=quiet, transient=True)
        self._what, self._steps = "training", 0

    def begin(self, what: str, steps: int) -> None:
        self._what, self._steps = what, steps
        self.restart(what, steps or None)
        if steps:
            self.note(f"{what}: {counted(steps, 'step')}")

    def step(self, step: int, loss: float | None = None) -> None:
        tally = "" if loss is None else f"loss {loss:.4f}"
        self.move(step, tally=tally)
        shown = f", {tally}" if tally else ""
        self.line(lambda _: f"{self._what}: step {step} of {self._steps}{shown}")


class BuildProgress(_Observer):
    """The progress display of a run: its tasks by state.

    Args:
        quiet: True to show no progress.
        what: name of the work.
    """

    def __init__(self, *, quiet: bool = False, what: str = "build") -> None:
        super().__init__(what, quiet=quiet)
        self._waits_for = ""
        self._counts: dict[str, int] = {}
        self._budget: Budget | None = None
        self._in_jobs: Callable[[], int] = int
        self._engine: Callable[[], str] | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._total = self._closed_here = 0
        self._started = time.monotonic()

    def __exit__(self, *ended: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        super().__exit__()

    def planned(self, tasks: int, counts: dict[TaskState, int], budget: Budget) -> None:
        self._total, self._budget = tasks, budget
        self._counts = {state.value: n for state, n in counts.items()}
        self.move(self._done, tasks, self._tally())

    def asks(self, models: Sequence[str], tasks: int | None = None) -> None:
        if not models or self._closed_here:
            return
        self._waits_for = f"waiting for the first task; asking {', '.join(models)}"
        self.move(tally=self._tally())
        if self.plain:
            pending = self._counts.get(TaskState.PENDING, 0) if tasks is None else tasks
            say(f"{pending} of {counted(self._total, 'task')} to do; {self._waits_for}")

    def closed(self, state: TaskState, steps: int) -> None:
        self._counts[state] = self._counts.get(state, 0) + 1
        self._closed_here += 1
        self._waits_for = ""
        self.move(self._done, tally=self._tally())
        self.line(self._line)

    def jobs(self, in_flight: Callable[[], int]) -> None:
        self._in_jobs = in_flight
        self._tick()

    def engine(self, line: Callable[[], str]) -> None:
        self._engine = line
        self._tick()

    def waiting(self, why: str) -> None:
        left = self._in_jobs()
        self._waits_for = why
        self.move(tally=self._tally())
        if not self.live or left:
            waits = counted(left, "call waits", "calls wait")
            say(f"{why}; {waits} in batch jobs (Ctrl-C leaves them to the next build)" if left else why)

    def _tick(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self.move(tally=self._tally())
        self.line(self._line, WAITING_EVERY_S)
        self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    @property
    def _done(self) -> int:
        return sum(n for state, n in self._counts.items() if state != TaskState.PENDING)

    def _tally(self) -> str:
        parts = [
            f"{self._counts[state]} {state.value.replace('_', ' ')}"
            for state in TaskState
            if state is not TaskState.PENDING and self._counts.get(state)
        ]
        if self._in_jobs():
            parts.append(f"{counted(self._in_jobs(), 'call')} in batch jobs")
        if self._engine is not None:
            parts.append(self._engine())
        if self._budget is not None and (self._budget.committed_usd or self._budget.budget_usd):
            parts.append(_cost_so_far(self._budget))
        if self._waits_for:
            parts.append(self._waits_for)
        return ", ".join(parts)

    def _line(self, now: float) -> str:
        line = f"{self._done}/{self._total}: {self._tally()}"
        if not self._closed_here:
            return line
        rest = self._total - self._done + self._closed_here
        return f"{line}; {time_left(self._closed_here, rest, now - self._started)}"


def _cost_so_far(budget: Budget) -> str:
    cap = f" of ${budget.budget_usd:g}" if budget.budget_usd is not None else ""
    held = f" (and up to ${budget.held_usd:.2f} unresolved)" if budget.held_usd else ""
    return f"${budget.spent_usd:.2f}{cap}{held}"


@contextmanager
def stopping_on_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True once Ctrl-C was pressed; a second Ctrl-C interrupts at once."""
    pressed: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if pressed:
            signal.default_int_handler(number, frame)
        pressed.append(number)
        say("stopping after this step; press Ctrl-C again to stop at once")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


T = TypeVar("T")


def damage_named(places: Sequence[str], what: str) -> int:
    """Print the damaged images that were omitted on stderr. Return the exit code: 1 if there are any, else 0."""
    for place in places:
        say(f"{place} is damaged in the run, and {what}")
    return 1 if places else 0


def print_end(context: typer.Context, summary: RunSummary) -> int:
    """Print why a run stopped and how to resume it; return the exit code."""
    if summary.stopped is None:
        return 0
    return print_stop(context, summary.stopped, failed=summary.failed, left=summary.left)


def print_stop(context: typer.Context, why: str, *, failed: bool = False, left: str = "") -> int:
    """Print why a command stopped and how to resume it; return the exit code.

    `failed` is True for a fault, False for a limit or the user; `left` is a sentence on jobs that continue.
    """
    for line in (why if failed else "", left):
        if line:
            say(line)
    say(f"stopped ({'fault' if failed else why}); resume with: {command_again(context, 'limit')}")
    return 1 if failed else 3


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, then end the processes of the offline models."""
    try:
        return asyncio.run(work)
    finally:
        close_workers()


def confirm(work: str) -> None:
    """Ask the user to confirm long work. Raise InputError without a terminal, and Exit(3) if declined."""
    if not sys.stdin.isatty():
        raise InputError(f"{work}: pass --yes to start, or --dry-run for calls and cost")
    if not typer.confirm(f"{work}. Start?"):
        raise typer.Exit(3)
