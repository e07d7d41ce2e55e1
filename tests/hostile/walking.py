"""Runs a command on an artefact in this process, watched: what is opened where, what is started, how it ends."""

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
TEMPORARY = f"{tempfile.gettempdir()}/plantain-"  # asked for now: within the hook it would wait for itself
STARTS = ("plantain.pixels.apart",)
"""Modules of our own that are started as processes."""

STARTING = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"})

_watched: list[tuple[Path, list[str]]] = []


class TooLong(BaseException):
    """A command that waits for ever, for example on a pipe."""


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _watched:
        return
    home, told = _watched[-1]
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
                told.append(f"opened {real}")
            elif written and not real.startswith((str(home), TEMPORARY, "/dev/null")):
                told.append(f"opened {real} for writing")
    elif event in STARTING and not any(ours in repr(arguments) for ours in STARTS):
        told.append(f"started {arguments!r}"[:200])


def watch() -> None:
    """Once for a process: hooks cannot be taken out."""
    sys.addaudithook(_hook)


def walk(artefact: Artefact, templates: Path, home: Path) -> list[str]:
    """What went wrong, by command; nothing where each ended as a command may.

    Args:
        artefact: is made anew for every command.
        templates: whole things.
        home: an empty folder of its own.
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
        told: list[str] = []
        words = [word.format(it=it, new=new) for word in command.split()]
        said, code = _run(words, here, told)
        if code not in (0, 1, 2, 3) or "Traceback" in said:
            told.append(f"ended with {code}: {said[-1500:]}")
        if code == 2 and len(said.strip().splitlines()) > 6:
            told.append(f"more than a line or two: {said[:500]}")
        left = sorted(path.name for path in outside.parent.iterdir())
        if left != ["mine.txt"] or outside.read_text(encoding="utf-8") != "mine":
            told.append(f"the outside was changed: {left}")
        wrong += [f"{artefact} <- {command}: {one}" for one in told]
        shutil.rmtree(here, ignore_errors=True)
    return wrong


def _run(words: list[str], home: Path, told: list[str]) -> tuple[str, int | None]:
    out = io.StringIO()

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    _watched.append((home, told))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code: int | None = main(words)
    except (Exception, TooLong, SystemExit):  # noqa: BLE001  (that none comes out is what is tested)
        code = None
        out.write(traceback.format_exc())
    finally:
        _watched.pop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return out.getvalue(), code
