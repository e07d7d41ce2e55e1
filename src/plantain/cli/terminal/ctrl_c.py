"""Ctrl-C for work that goes step by step: the first one finishes the step at hand, the second ends the process."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

WORDS = "stopping after this step; what is done is kept (Ctrl-C again: at once)"


class Stop:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def stopping_on_ctrl_c(print_line: Callable[[str], None] = _print_line) -> Iterator[Stop]:
    """Within the block the first Ctrl-C only asks; whoever works looks at what is given here."""
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            signal.default_int_handler(number, frame)
        stop.asked = True
        print_line(WORDS)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
