"""The line that shows how far a training has come."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from plantain.records.counts import counted

PLAIN_EVERY_S = 10.0


class TrainingBar:
    """Steps of the training at hand, with its loss; plain lines where there is no terminal.

    Args:
        quiet: show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        console = Console(stderr=True)
        self._plain = not quiet and not console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[tally]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=None, tally="")
        self._what, self._steps, self._last = "training", 0, time.monotonic()

    def __enter__(self) -> TrainingBar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, what: str, steps: int) -> None:
        """Another training begins, or with 0 steps something of which nobody knows how long it takes."""
        self._what, self._steps = what, steps
        self._bar.reset(self._task, total=steps or None, description=what, tally="")
        if steps:
            self.say(f"{what}: {counted(steps, 'step')}")

    def step(self, step: int, loss: float | None = None) -> None:
        """A step is done, one of a training with its loss."""
        tally = "" if loss is None else f"loss {loss:.4f}"
        self._bar.update(self._task, completed=step, tally=tally)
        now = time.monotonic()
        if self._plain and now - self._last >= PLAIN_EVERY_S:
            self._last = now
            self.say(f"{self._what}: step {step} of {self._steps}" + (f", {tally}" if tally else ""))

    def say(self, line: str) -> None:
        """A line of its own, above the bar or in a log."""
        if self._plain:
            print(line, file=sys.stderr, flush=True)
        elif not self._bar.disable:
            self._bar.console.print(line, highlight=False)
