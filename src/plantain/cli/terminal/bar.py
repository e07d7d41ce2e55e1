"""The bar on stderr that shows how far a command has come; a line now and then where there is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from plantain.cli.terminal.tables import TerminalConsole

PLAIN_EVERY_S = 10.0


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """A bar, and the function that moves it: how many are done, and of how many (None where nobody knows)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = TerminalConsole(stderr=True)
    live = console.is_terminal and not quiet
    last = time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=not live) as bar:
        task = bar.add_task(what, total=None)

        def move(done: int, wanted: int | None) -> None:
            nonlocal last
            bar.update(task, completed=done, total=wanted)
            now = time.monotonic()
            if not live and not quiet and now - last >= PLAIN_EVERY_S:
                last = now
                of = "" if wanted is None else f"/{wanted:,}"
                print(f"plantain: {what}: {done:,}{of}", file=sys.stderr, flush=True)

        yield move
