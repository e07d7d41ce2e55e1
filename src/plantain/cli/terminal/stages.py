"""How far the stages of a scoring or an audit have come, on stderr."""

from __future__ import annotations

import sys
import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from plantain.cli.terminal.progress import time_left
from plantain.cli.terminal.tables import TerminalConsole
from plantain.runs.observer import ProgressObserver

PLAIN_EVERY_S = 10.0


class StageProgress(ProgressObserver):
    """A bar for each stage on a terminal, now and then a line elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        console = TerminalConsole(stderr=True)
        self._quiet = quiet
        self._live = not quiet and console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=not self._live)
        self._task: TaskID | None = None
        self._stage, self._done, self._total = "", 0, 0
        self._measured = 0
        self._begun = self._last = time.monotonic()

    def __enter__(self) -> StageProgress:
        return self

    def __exit__(self, *ended: object) -> None:
        if self._task is not None:  # a bar that never began would leave an empty line before what was wrong
            self._bar.stop()

    def begun(self, what: str, total: int) -> None:
        self._stage, self._done, self._total, self._measured = what, 0, total, 0
        self._begun = time.monotonic()
        self._bar.start()
        self._task = self._bar.add_task(what, total=total)

    def advanced(self, scores: int) -> None:
        self._done += 1
        self._measured += scores > 0  # what an earlier scoring did takes no time
        if self._task is not None:
            self._bar.update(self._task, advance=1)
        now = time.monotonic()
        if not self._quiet and not self._live and now - self._last >= PLAIN_EVERY_S:
            self._last = now
            print(self._line(now), file=sys.stderr, flush=True)

    def _line(self, now: float) -> str:
        counted = {"metrics": " samples", "judges": " outputs"}.get(self._stage, "")
        line = f"plantain: {self._stage}: {self._done}/{self._total}{counted}"
        if not self._measured:
            return line
        earlier = self._done - self._measured
        return f"{line}, {time_left(self._measured, self._total - earlier, self._begun, now)}"

    def note(self, line: str) -> None:
        print(f"plantain: {line}", file=sys.stderr, flush=True)

    def stopping(self) -> None:
        print(
            "plantain: finishing what is in flight; Ctrl-C again stops at once", file=sys.stderr, flush=True
        )
