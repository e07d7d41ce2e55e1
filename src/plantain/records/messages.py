"""Parts of messages: the error for invalid input, the nearest known word, numbers with nouns, and commands to copy.

The commands typed for a run are recorded in it, so that messages can advise them whole.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path


class InputError(ValueError):
    """Raised for invalid input of a user. The message is one line: the file, the field and the allowed values."""


def fold(text: str) -> str:
    """Return a label in lower case with only its letters and digits, so that spellings compare as equal."""
    return "".join(character for character in text.casefold() if character.isalnum())


def duration(seconds: float) -> str:
    """Format a duration in seconds: "40 s", "12 min", "7.5 h" or "3.2 days"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def nearest(word: str, allowed: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the allowed word most similar to `word`, ignoring case and punctuation; None if none is similar.

    Args:
        cutoff: the least similarity, by `difflib.SequenceMatcher.ratio`, from 0 to 1.

    Example:
        >>> nearest("Pnuemothorax", ["pneumonia", "pneumothorax"])
        'pneumothorax'
    """
    folded = {fold(name): name for name in reversed([*allowed])}
    return next((folded[found] for found in difflib.get_close_matches(fold(word), folded, 1, cutoff)), None)


def like_path(path: Path) -> str:
    """Return "; did you mean PATH?", PATH being the existing one most similar to a missing path; "" if none is."""
    if path.exists() or not path.parent.is_dir():
        return ""
    near = nearest(path.name, (one.name for one in path.parent.iterdir()), cutoff=0.75)
    return f"; did you mean {str(path.parent / near)!r}?" if near else ""


def like_folder(path: Path, file: str) -> str:
    """Return "; did you mean FOLDER?", or up to 3 folders near `path` that contain `file`; "" if none does."""
    depths = ("*", "*/*") if path.name else ()  # not below the root folder
    near = [one.parent for depth in depths for one in sorted(path.parent.glob(f"{depth}/{file}"))]
    found = [one for one in near if nearest(path.name, [one.name], cutoff=0.5)] or near
    if len(found) == 1 or (found and found[0].name == path.name):
        return f"; did you mean {str(found[0])!r}?"
    return f"; there are {', '.join(map(str, found[:3]))}" if found else ""


def suggest(
    word: str,
    allowed: Iterable[str],
    near: str | None = None,
    *,
    otherwise: str | None = None,
    cutoff: float = 0.6,
) -> str:
    """Return "did you mean WORD?" with the nearest allowed word, else "choose one of" and all allowed words.

    Args:
        near: the intended word, if the caller knows it.
        otherwise: returned if no word is near, instead of the list of allowed words.
        cutoff: as in `nearest`.
    """
    allowed = [*allowed]
    if near := near or nearest(word, allowed, cutoff):
        return f"did you mean {near!r}?"
    return f"choose one of {', '.join(allowed)}" if otherwise is None else otherwise


def counted(number: object, one: str, more: str = "") -> str:
    """Return a number with its noun in the singular or plural.

    Args:
        number: a whole number.
        one: the singular noun, with any words before it.
        more: the same for any other number; default: `one` with an s.

    Example:
        >>> counted(1, "data file"), counted(0, "image"), counted(1234, "study", "studies")
        ('1 data file', '0 images', '1,234 studies')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def command_line(*words: object) -> str:
    """Return the line that calls plantain with these words, quoted for a POSIX shell.

    >>> command_line("status", "runs/my run")
    "plantain status 'runs/my run'"
    """
    return shlex.join(["plantain", *map(str, words)])


def next_line(*words: object) -> str:
    """Return "next: plantain ...", the last line after a success: the usual next command, to be copied."""
    return f"next: {command_line(*words)}"


COMMANDS = "commands"
"""Key of a run's meta: the commands that opened it as [folder, words], the latest last; null is the run's own folder.
They name files of this machine, so only the terminal prints them: no page and no release."""

typed: ContextVar[str] = ContextVar("typed", default="")
"""The command that runs now, as `command_line` writes it; "" where Python code opens a run."""


def working_directory() -> str:
    """Return the current working directory; "" if it no longer exists."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def with_typed(stored: str | None, run: Path) -> str | None:
    """Return the recorded commands, as JSON, with the current one added; None if Python code opened the run."""
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
    """Return ["--settings", FILE] of the latest command of these names that had settings or a recipe; else []."""
    for folder, words in _recorded(stored, names):
        place = words.index("--settings") + 1 if "--settings" in words else 2
        if place > 2 or words[1] == "build":
            return ["--settings", str(Path(folder, words[place] or ""))]
    return []


def init_line(catalogue: Path) -> str:
    """Return the line that advises `plantain init` for a catalogue, with a recipe's name that is free here."""
    names = ("pilot.toml", f"{catalogue.name}.toml", f"{catalogue.name}-pilot.toml")
    free = next((name for name in names if not Path(name).exists()), "RECIPE.toml")
    return next_line("init", catalogue, *(() if free == names[0] else ("--to", free)))


def with_settings(line: str, run: Path, stored: str | None, *names: str) -> str:
    """Return a card's line with its audit command on this run, with the options of `settings_typed` if needed."""
    settings = [] if "judge audit RUN --judge offline/" in line else settings_typed(stored, *names)
    return line.replace("plantain judge audit RUN", command_line("judge", "audit", run, *settings))


def _recorded(stored: str | None, names: tuple[str, ...]) -> Iterator[tuple[str, list[str | None]]]:
    """Yield folder and words of the recorded commands of these names, the latest first; None is the run."""
    for folder, words in reversed(json.loads(stored or "[]")):
        if any(words[1 : 1 + len(name.split())] == name.split() for name in names):
            yield folder, words
