"""The commands that messages and pages advise: every one is composed here, so that it can be copied."""

from __future__ import annotations

import shlex


def command_line(*words: object) -> str:
    """Return the line that calls plantain with these words, quoted for a POSIX shell.

    >>> command_line("status", "runs/my run")
    "plantain status 'runs/my run'"
    """
    return shlex.join(["plantain", *map(str, words)])


def next_line(*words: object) -> str:
    """Return the last line of a success: the command that usually follows, to be copied."""
    return f"next: {command_line(*words)}"
