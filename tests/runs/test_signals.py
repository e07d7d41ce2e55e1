"""A closed terminal or a job's time limit lets a build finish the calls in flight: none stays open or is lost."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

from fakes.gemini_format import gemini_route
from fakes.server import KEY, Answer, FakeProvider, Request
from pipeline.quick import quick_catalogue
from plantain.journal import JournalReader
from plantain.records import TaskState

RECIPE = """
name = "hung up"
[data]
catalogue = "catalogue"
findings = ["AMD", "Diabetes", "Cataract"]
directions = ["add"]
check_text = false
[models]
writer = "gemini/w"
editor = "gemini/e"
judge = "gemini/j"
[limits]
concurrency = 2
[providers.gemini]
base_url = "{url}"
"""


@pytest.mark.parametrize("end", ["hangup", "SIGTERM"])
def test_calls_in_flight_finish_when_the_terminal_closes_or_the_time_is_up(end: str, tmp_path: Path) -> None:
    quick_catalogue(tmp_path / "catalogue", images=2)
    arrived, go_on = threading.Event(), threading.Event()

    def held(request: Request, good: Answer) -> Answer:
        arrived.set()
        go_on.wait()
        return good

    with FakeProvider([gemini_route], spoil=held) as provider:
        (tmp_path / "recipe.toml").write_text(RECIPE.format(url=provider.url))
        master, terminal = os.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "plantain", "build", "recipe.toml", "--run", "run"],
            cwd=tmp_path,
            env={**os.environ, "GEMINI_API_KEY": KEY},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=in_terminal,
        )
        os.close(terminal)
        reading = threading.Thread(target=drained, args=(master, end == "SIGTERM"), daemon=True)
        reading.start()
        arrived.wait()
        if end == "hangup":
            os.close(master)
        else:
            process.send_signal(signal.SIGTERM)
        go_on.set()
        assert process.wait() == 3
    with JournalReader.open(tmp_path / "run") as reader:
        assert reader.open_calls() == []
        assert reader.outcomes()  # the calls in flight were answered, and their answers kept
        assert reader.counts()[TaskState.PENDING] > 0


def in_terminal() -> None:
    """Make stdin the controlling terminal, as a login does, even where the tests run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def drained(master: int, whole: bool) -> None:
    """Read the output, so that a full terminal blocks no writer; only until the first request otherwise."""
    try:
        while whole and os.read(master, 4096):
            pass
    except OSError:  # the other side is closed
        return
