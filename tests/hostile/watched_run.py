"""Run a command on an artefact in this process and record opened files, started processes, and its exit."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType

from hostile.artefacts import COMMANDS, Artefact, spoil
from plantain.cli import main

SECONDS = 60
TEMPORARY = f"{tempfile.gettempdir()}/plantain-"  # evaluated now: inside the hook it would deadlock
STARTS = ("plantain.pixels.apart",)
"""Modules of our own that are started as processes."""

STARTING = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"})

_watched: list[tuple[Path, list[str]]] = []


class TooLong(BaseException):
    """A command that waits forever, for example on a pipe."""


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _watched:
        return
    home, problems = _watched[-1]
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, (str, bytes)) and isinstance(flags, int):
            if flags & os.O_NOFOLLOW and Path(os.fsdecode(path)).is_symlink():
                return  # the system refuses it
            real = os.path.realpath(os.fsdecode(path))
            if "__pycache__" in real:
                return
            written = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if real.startswith(f"{home}/outside"):
                problems.append(f"opened {real}")
            elif written and not real.startswith((str(home), TEMPORARY, "/dev/null")):
                problems.append(f"opened {real} for writing")
    elif event in STARTING and not any(ours in repr(arguments) for ours in STARTS):
        problems.append(f"started {arguments!r}"[:200])


def watch() -> None:
    """Install the hook once for the process: hooks cannot be removed."""
    sys.addaudithook(_hook)


def run_commands(artefact: Artefact, templates: Path, home: Path) -> list[str]:
    """Return the problems by command, empty if each command ended correctly.

    Args:
        artefact: is created again for every command.
        templates: complete, unspoilt inputs.
        home: an empty folder.
    """
    wrong: list[str] = []
    for number, command in enumerate(COMMANDS[artefact.kind]):
        here = home / str(number)
        here.mkdir(parents=True)
        outside = here / "outside" / "mine.txt"
        outside.parent.mkdir()
        outside.write_text("mine", encoding="utf-8")
        it, new = here / "it", here / "new"
        shutil.copytree(templates / artefact.kind, it, symlinks=True)
        spoil(artefact, it, outside)
        problems: list[str] = []
        words = [word.format(it=it, new=new) for word in command.split()]
        printed, code = _run(words, here, problems)
        if code not in (0, 1, 2, 3) or "Traceback" in printed:
            problems.append(f"ended with {code}: {printed[-1500:]}")
        if code == 2 and len(printed.strip().splitlines()) > 6:
            problems.append(f"more than a line or two: {printed[:500]}")
        left = sorted(path.name for path in outside.parent.iterdir())
        if left != ["mine.txt"] or outside.read_text(encoding="utf-8") != "mine":
            problems.append(f"the outside was changed: {left}")
        wrong += [f"{artefact} <- {command}: {one}" for one in problems]
        shutil.rmtree(here, ignore_errors=True)
    return wrong


def _run(words: list[str], home: Path, problems: list[str]) -> tuple[str, int | None]:
    out = io.StringIO()

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    _watched.append((home, problems))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code: int | None = main(words)
    except (Exception, TooLong, SystemExit):  # noqa: BLE001  (no exception may leave a command)
        code = None
        out.write(traceback.format_exc())
    finally:
        _watched.pop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return out.getvalue(), code
