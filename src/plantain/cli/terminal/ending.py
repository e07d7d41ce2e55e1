"""The end of a resumable command: why it stopped, the command that resumes it, and the exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import typer
from typer.core import TyperArgument

from plantain.cli.terminal.progress import say
from plantain.offline.workers import close_workers
from plantain.records import InputError
from plantain.records.messages import command_line

T = TypeVar("T")


class Ended(Protocol):
    """The end of a run: `stopped` is the reason, or None when all tasks are done."""

    stopped: str | None
    failed: bool
    left: str


def command_again(context: typer.Context) -> str:
    """Return the command line that resumes this command: the arguments and options given, without --limit."""
    words = context.command_path.split()[1:]
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if source is None or source.name != "COMMANDLINE" or param.name == "limit":
            continue
        value = context.params[param.name or ""]
        for one in value if isinstance(value, (list, tuple)) else [value]:
            option = (
                []
                if isinstance(param, TyperArgument)
                else [next(name for name in param.opts if name.startswith("--"))]
            )
            if one is False:
                words += param.secondary_opts
            else:
                words += option if one is True else [*option, str(getattr(one, "value", one))]
    return command_line(*words)


def damage_named(places: Sequence[str], what: str) -> int:
    """Name on stderr the damaged images that were left out. Return the exit code: 1 if there are any, else 0."""
    for place in places:
        say(f"{place} is damaged in the run, and {what}")
    return 1 if places else 0


def print_end(context: typer.Context, summary: Ended) -> int:
    """Print why a run stopped and how to resume it; return the exit code."""
    if summary.stopped is None:
        return 0
    return print_stop(context, summary.stopped, failed=summary.failed, left=summary.left)


def print_stop(context: typer.Context, why: str, *, failed: bool = False, left: str = "") -> int:
    """Print why a command stopped and how to resume it; return the exit code."""
    for line in (why if failed else "", left):
        if line:
            say(line)
    say(f"stopped ({'fault' if failed else why}); resume with: {command_again(context)}")
    return 1 if failed else 3


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, then end the processes of the offline models."""
    try:
        return asyncio.run(work)
    finally:
        close_workers()


def confirm(work: str) -> None:
    """Ask before long work. Raise InputError without a terminal, and Exit(3) if the user declines."""
    if not sys.stdin.isatty():
        raise InputError(f"{work}: pass --yes to start, or --dry-run for calls and cost")
    if not typer.confirm(f"{work}. Start?"):
        raise typer.Exit(3)
