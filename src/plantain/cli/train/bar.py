"""Progress of a training on stderr: a bar with the loss on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from plantain.cli.terminal.tables import TerminalConsole
from plantain.records.counts import counted
from plantain.train.plans import TrainingProgress

PLAIN_EVERY_S = 10.0


class TrainingBar(TrainingProgress):
    """Steps of the current training with its loss.

    Args:
        quiet: show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        console = TerminalConsole(stderr=True)
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

    def __exit__(self, *ended: object) -> None:
        self._bar.stop()

    def begin(self, what: str, steps: int) -> None:
        self._what, self._steps = what, steps
        self._bar.reset(self._task, total=steps or None, description=what, tally="")
        if steps:
            self.note(f"{what}: {counted(steps, 'step')}")

    def step(self, step: int, loss: float | None = None) -> None:
        tally = "" if loss is None else f"loss {loss:.4f}"
        self._bar.update(self._task, completed=step, tally=tally)
        now = time.monotonic()
        if self._plain and now - self._last >= PLAIN_EVERY_S:
            self._last = now
            self.note(f"{self._what}: step {step} of {self._steps}" + (f", {tally}" if tally else ""))

    def note(self, line: str) -> None:
        if self._plain:
            print(line, file=sys.stderr, flush=True)
        elif not self._bar.disable:
            self._bar.console.print(line, highlight=False)
