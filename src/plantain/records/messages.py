"""Parts of messages: the error for invalid input, the nearest known word, numbers with nouns, and commands to copy."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable
from pathlib import Path


class InputError(ValueError):
    """Invalid user input. The message is one line: file, field, allowed values."""


def fold(text: str) -> str:
    """Return text for comparing labels: lower case, letters and digits only."""
    return "".join(character for character in text.casefold() if character.isalnum())


def nearest(word: str, allowed: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the one of `allowed` that is most like `word`, apart from case and punctuation; None if none is.

    Args:
        cutoff: the least likeness, by `difflib.SequenceMatcher.ratio`, from 0 to 1.

    Example:
        >>> nearest("Pnuemothorax", ["pneumonia", "pneumothorax"])
        'pneumothorax'
    """
    folded = {fold(name): name for name in reversed([*allowed])}
    return next((folded[found] for found in difflib.get_close_matches(fold(word), folded, 1, cutoff)), None)


def like_path(path: Path) -> str:
    """Return a question that names the file or folder most like a missing path, in its folder; "" if none is."""
    if path.exists() or not path.parent.is_dir():
        return ""
    near = nearest(path.name, (one.name for one in path.parent.iterdir()), cutoff=0.75)
    return f"; did you mean {str(path.parent / near)!r}?" if near else ""


def suggest(
    word: str,
    allowed: Iterable[str],
    near: str | None = None,
    *,
    otherwise: str | None = None,
    cutoff: float = 0.6,
) -> str:
    """Return the nearest allowed word as a question, or the list of allowed words.

    Args:
        near: the intended word, if the caller knows it.
        otherwise: returned if nothing is near, instead of all that is allowed.
        cutoff: as `nearest` takes it.
    """
    allowed = [*allowed]
    if near := near or nearest(word, allowed, cutoff):
        return f"did you mean {near!r}?"
    return f"choose one of {', '.join(allowed)}" if otherwise is None else otherwise


def counted(number: object, one: str, more: str = "") -> str:
    """Return a number with its noun.

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
    """Return the last line of a success: the command that usually follows, to be copied."""
    return f"next: {command_line(*words)}"
