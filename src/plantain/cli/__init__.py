"""The command line: one thin module per command, imported when the command runs.

Exit codes: 0 done, 1 failed, 2 usage or invalid input (one line), 3 stopped by a limit and resumable.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plantain.files.secrets import redact_terminal
from plantain.records import InputError
from plantain.records.messages import command_line, like_path, working_directory
from plantain.version import __version__

if TYPE_CHECKING:
    from typer import TyperException

COMMANDS = {
    "demo": (
        "plantain.cli.demo:demo",
        "Build a small dataset offline from real images that come with the dependencies",
    ),
    "ingest": ("plantain.cli.ingest:command", "Read images into a catalogue"),
    "init": ("plantain.cli.init:init", "Write a first recipe for a catalogue"),
    "plan": ("plantain.cli.plan:plan", "Estimate tasks, calls, cost, time and disk space; calls no model"),
    "build": ("plantain.cli.build:build", "Run or resume a recipe; --pilot N ends with go or stop"),
    "status": ("plantain.cli.status:status", "Print the progress of a run"),
    "report": ("plantain.cli.report:report", "Write tables and figures of a run as one HTML file"),
    "view": ("plantain.cli.view:view", "Browse a run, a release or a study, also during a build"),
    "show": ("plantain.cli.show:show", "List a run's tasks, or print one in full"),
    "export": ("plantain.cli.export:export", "Write a run as a dataset that others can use"),
    "import": (
        "plantain.cli.import_run:import_run",
        "Read a published release or a table of pairs into a run",
    ),
    "verify": ("plantain.cli.verify:verify", "Check every checksum, count, row and licence of a release"),
    "bench": ("plantain.cli.bench:app", "Measure editing models: benchmarks, outputs, scores, tables"),
    "judge": (
        "plantain.cli.judge:app",
        "Audit a judge, judge stored edits again, correct verdicts, edit prompts",
    ),
    "review": ("plantain.cli.review:app", "Run reader studies: accept, rate, compare, rank and outline"),
    "run": (
        "plantain.cli.run:app",
        "Maintain runs and catalogues: retry, merge, consent, withdraw, quarantine",
    ),
    "models": ("plantain.cli.models:app", "List models by provider with roles, prices and keys"),
    "findings": ("plantain.cli.findings:findings", "List the findings that can be added and removed"),
    "train": (
        "plantain.cli.train:app",
        "Train editors on pairs or preferences; measure the value of edits as training data",
    ),
    "completion": ("plantain.cli.completion:completion", "Print the completion script for bash, zsh or fish"),
}
"""Command -> (module and name of its function or group, one line of help)."""

JOBS = {
    "Build": "demo ingest init plan build",
    "Inspect": "status report view show",
    "Share": "export import verify",
    "More (each has commands of its own)": "bench judge review run train",
    "Reference": "findings models completion",
}
"""Group title -> commands, in the order of `plantain --help`."""

ABOUT = """Build, judge and benchmark text-guided edits of medical images.

A research tool, never for diagnosis. Every image that it makes is synthetic."""

EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 invalid input, 3 stopped by a limit and resumable."

_BY_CTRL_C = 130


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; bad input becomes one line on stderr and code 2."""
    args = sys.argv[1:] if argv is None else argv
    redact_terminal()
    resource.setrlimit(
        resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])
    )  # a core file would contain keys
    if args[:1] == ["--version"]:
        print(f"plantain {__version__}")
        return 0
    for word in (*args, working_directory()):
        if not word.isascii() and any("\ud800" <= char <= "\udfff" for char in word):
            return _end(f"{word}: the name is not UTF-8 and cannot be recorded; rename it", 2)
    import typer

    from plantain.cli.terminal.groups import COMPLETING, LazyGroup

    completing = COMPLETING in os.environ
    if completing:
        from typer._completion_classes import completion_init

        completion_init()
    name = args[0] if args else "plantain"
    try:
        group = LazyGroup("", ABOUT, COMMANDS, epilog=EXIT_CODES, jobs=JOBS)
        result = group.main(args=args, prog_name="plantain", complete_var=COMPLETING, standalone_mode=False)
    except InputError as error:
        return 2 if completing else _end(str(error), 2)
    except typer.TyperException as error:
        return _end(_usage(error, name, args), 2)
    except OSError as error:
        return _end(f"{error.filename or name}: {error.strerror or error}", 2)
    except typer.Exit as stop:
        return stop.exit_code if stop.exit_code != _BY_CTRL_C else _end("interrupted", 3)
    except (typer.Abort, KeyboardInterrupt):
        return _end("interrupted", 3)
    except _database_error() as error:
        return _end(f"{name}: cannot read or write a database: {error}", 1)
    if result == _BY_CTRL_C:
        return _end("interrupted", 3)
    return result if isinstance(result, int) else 0


def _usage(error: TyperException, name: str, args: list[str]) -> str:
    """Return a fault of the command line in one line, with the line to type if a part of it is missing."""
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    path = context.command_path.split()[1:] if context else [name]
    fault = " ".join(error.format_message().replace("Value error, ", "").split())
    line = ": ".join(filter(None, (" ".join(path), fault)))
    if type(error).__name__ == "NoSuchOption" and context:
        typed = str(getattr(error, "option_name", ""))
        options = [name for one in context.command.params for name in one.opts]
        if typed == "--resume":
            return f"{' '.join(path)}: no option --resume; the same command without it resumes"
        if typed == "--images" and "--pairs" in options:
            return f"{' '.join(path)}: no option --images; did you mean --pairs?"
        near = next((name for name in options if typed.startswith(f"{name}-")), "")
        if near:
            return f"{line} Did you mean {near} {typed.removeprefix(f'{near}-')}?"
        return line if line.endswith(("?", ")")) else f"{line}; options: {command_line(*path, '--help')}"
    if fault.startswith("Got unexpected extra argument"):
        return f"{line}; a path with spaces needs quotes"
    if type(error).__name__ != "MissingParameter" or param is None:
        return line
    recipe = Path(args[1] if name == "build" and args[1:] else "")
    if recipe.suffix == ".toml" and not recipe.exists():  # wrong, whatever else is missing
        return f"{recipe}: no such recipe{like_path(recipe)}"
    value = (param.metavar or str(param.name).upper()).strip("[]").removesuffix("...")
    if param.param_type_name == "argument":
        runs = sorted(Path("runs").glob("*/journal.sqlite"), key=lambda file: file.stat().st_mtime)
        value = str(runs[-1].parent) if value == "DIR" and runs else value
        words = [*path, value, *args[len(path) :]]
    else:
        words = [*args, max(param.opts, key=len), value]
    return f"{line.rstrip('.')}; e.g. {command_line(*words)}"


def _database_error() -> type[Exception]:
    """Return sqlite3's error class, imported late: help and usage need no database."""
    import sqlite3

    return sqlite3.Error


def _end(line: str, code: int) -> int:
    """Print one line, whatever names of files and tasks it contains."""
    shown = line.replace("\n", "\\n")
    print(f"plantain: {shown}", file=sys.stderr)
    return code
