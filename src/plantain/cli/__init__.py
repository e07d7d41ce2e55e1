"""The command line: one thin module per command, imported when it is asked for.

Exit codes: 0 done, 1 failed, 2 usage or invalid input (one line), 3 stopped by a limit and resumable.
"""

from __future__ import annotations

import os
import sys

from plantain.files.secrets import redact_terminal
from plantain.records import InputError
from plantain.version import __version__

COMMANDS = {
    "demo": (
        "plantain.cli.demo",
        "the whole build, offline, on real images that arrive with the dependencies",
    ),
    "ingest": ("plantain.cli.images.ingest", "read images into a catalogue"),
    "quarantine": (
        "plantain.cli.images.quarantine",
        "images that may show who somebody is: release or mask them",
    ),
    "findings": ("plantain.cli.images.findings", "what can be added and removed"),
    "models": ("plantain.cli.models", "models by provider: roles, prices, keys"),
    "init": ("plantain.cli.runs.init", "a first recipe that fits a catalogue"),
    "plan": ("plantain.cli.runs.plan", "tasks, calls, disk and time that a recipe needs; calls nothing"),
    "pilot": (
        "plantain.cli.runs.pilot",
        "a few tasks of each finding and direction, and one page: go or stop",
    ),
    "build": ("plantain.cli.runs.build", "run or resume a recipe"),
    "merge": ("plantain.cli.runs.merge", "the runs of all shards of a plan as one run"),
    "retry": ("plantain.cli.runs.retry", "open tasks again by how they ended"),
    "status": ("plantain.cli.runs.status", "where a run stands"),
    "show": ("plantain.cli.runs.show", "one task in full"),
    "consent": ("plantain.cli.runs.consent", "what a run has sent where, under which agreement"),
    "view": ("plantain.cli.view", "look around in a run, a release or a study, also while it is built"),
    "report": ("plantain.cli.runs.report", "tables and figures of a run, as one HTML file"),
    "export": ("plantain.cli.releases.export", "a run as a dataset that others can use"),
    "import": ("plantain.cli.releases.import_run", "a published release back into a journal"),
    "withdraw": (
        "plantain.cli.images.withdraw",
        "take a patient or single images, and all that came of them, out of a run or catalogue",
    ),
    "verify": ("plantain.cli.releases.verify", "prove a release: every checksum, count, row and licence"),
    "judge": ("plantain.cli.judge", "a judge's card, other judges on stored edits, corrections, prompts"),
    "review": ("plantain.cli.review", "reader studies: people judge, compare, rank and outline"),
    "bench": ("plantain.cli.bench", "measure editing models: benchmarks, outputs, scores, tables"),
    "train": (
        "plantain.cli.train",
        "train editors on pairs or preferences; measure what training with edits is worth",
    ),
    "completion": ("plantain.cli.completion", "completion of commands and options, for bash, zsh or fish"),
}
"""Every command: the module that holds its typer application `app`, and its line of help."""

JOBS = {
    "Make edits": "demo ingest findings init plan pilot build retry merge models",
    "Look": "status show view report",
    "Measure": "bench judge review",
    "Share": "export import verify",
    "Learn": "train",
    "Look after": "quarantine consent withdraw completion",
}
"""Commands by the job that they are for, in the order of `plantain --help`."""

ABOUT = """Build, judge and benchmark text-guided edits of medical images.

A research tool: it diagnoses nothing, and what it makes is synthetic."""

EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 invalid input, 3 stopped by a limit and resumable."

_BY_CTRL_C = 130


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; bad input becomes one line on stderr and code 2."""
    args = sys.argv[1:] if argv is None else argv
    redact_terminal()
    if args[:1] == ["--version"]:
        print(f"plantain {__version__}")
        return 0
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
        return _end(f"{name}: {error.format_message()}", 2)
    except OSError as error:
        return _end(f"{error.filename or name}: {error.strerror or error}", 2)
    except typer.Exit as stop:
        return stop.exit_code if stop.exit_code != _BY_CTRL_C else _end("interrupted", 3)
    except (typer.Abort, KeyboardInterrupt):
        return _end("interrupted", 3)
    except _database_error() as error:
        return _end(f"{name}: a database cannot be read or written: {error}", 1)
    if result == _BY_CTRL_C:
        return _end("interrupted", 3)
    return result if isinstance(result, int) else 0


def _database_error() -> type[Exception]:
    """Looked up when something went wrong: help and usage load no database."""
    import sqlite3

    return sqlite3.Error


def _end(line: str, code: int) -> int:
    print(f"plantain: {line}", file=sys.stderr)
    return code
