"""The commands typed for a run, recorded in it so that messages can advise them whole."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from plantain.records.messages import command_line

COMMANDS = "commands"
"""Key of a run's meta: the commands that opened it as [folder, words], the latest last; null is the run's own folder.
They name files of this machine, so only the terminal prints them: no page and no release."""

typed: ContextVar[str] = ContextVar("typed", default="")
"""The command that runs now, as `command_line` writes it; "" where Python code opens a run."""


def working_directory() -> str:
    """Return the folder from which relative paths are read; "" if it no longer exists."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def with_typed(stored: str | None, run: Path) -> str | None:
    """Return the value of `COMMANDS` with the command that opens a run now; None where Python code opens it."""
    words = [None if word == str(run) else word for word in shlex.split(typed.get())]
    now = [working_directory(), words]
    return json.dumps([*(one for one in json.loads(stored or "[]") if one != now), now]) if words else None


def typed_before(stored: str | None, run: Path, *names: str) -> list[str]:
    """Return the recorded commands of these names, the latest first; one typed in another folder starts with `cd`.

    >>> typed_before('[["/data", ["plantain", "build", "a.toml", "--run", null]]]', Path("/runs/a"), "build")
    ['cd /data && plantain build a.toml --run /runs/a']
    """
    here, lines = working_directory(), []
    for folder, words in _recorded(stored, names):
        there = run if folder == here else run.absolute()
        line = shlex.join(str(there) if word is None else word for word in words)
        lines.append(line if folder == here else f"cd {shlex.quote(folder)} && {line}")
    return lines


def settings_typed(stored: str | None, *names: str) -> list[str]:
    """Return `--settings FILE` of the latest recorded command of these names that had a settings file or a recipe."""
    for folder, words in _recorded(stored, names):
        place = words.index("--settings") + 1 if "--settings" in words else 2
        if place > 2 or words[1] == "build":
            return ["--settings", str(Path(folder, words[place] or ""))]
    return []


def with_settings(line: str, stored: str | None, *names: str) -> str:
    """Return a card's line whose audit of a hosted judge has the settings that `settings_typed` finds."""
    settings = [] if "judge audit --judge offline/" in line else settings_typed(stored, *names)
    return line.replace("plantain judge audit", command_line("judge", "audit", *settings))


def _recorded(stored: str | None, names: tuple[str, ...]) -> Iterator[tuple[str, list[str | None]]]:
    """Yield folder and words of the recorded commands of these names, the latest first; None is the run."""
    for folder, words in reversed(json.loads(stored or "[]")):
        if any(words[1 : 1 + len(name.split())] == name.split() for name in names):
            yield folder, words
