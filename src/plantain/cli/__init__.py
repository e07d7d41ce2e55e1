"""The command line: one thin module per command, imported when it is asked for.

Exit codes: 0 done, 1 failed, 2 usage or invalid input (one line), 3 stopped by a limit and resumable.
"""

from __future__ import annotations

import difflib
import importlib
import sys

from plantain.files.terminal import redact_terminal
from plantain.records import InputError
from plantain.version import __version__

COMMANDS = {
    "demo": "the whole build, offline, on real images that arrive with the dependencies",
    "ingest": "read images into a catalogue",
    "quarantine": "images that may show who somebody is: release or mask them",
    "findings": "what can be added and removed",
    "models": "models by provider: roles, prices, keys",
    "plan": "tasks, calls, disk and time that a recipe needs; calls nothing",
    "build": "run or resume a recipe",
    "retry": "open tasks again by how they ended",
    "status": "where a run stands",
    "show": "one task in full",
    "consent": "what a run has sent where, under which agreement",
    "report": "tables and figures of a run, as one HTML file",
    "export": "a run as a dataset that others can use",
    "import": "a published release back into a journal",
    "withdraw": "take a patient or single images, and all that came of them, out of a run or a catalogue",
    "verify": "prove a release: every checksum, count, row and licence",
    "release": "diff A B: what changed between two releases",
    "audit": "how far a judge can be trusted, by planted defects",
    "bench": "measure editing models: benchmarks, outputs, scores, tables",
    "train": "fine-tuning on a benchmark or a release, and preferences",
}
"""Every command and its line of help; `plantain.cli.<name>` holds its typer application `app`."""

_MODULES = {"import": "import_run"}
"""Commands whose name is a word of Python."""


def overview() -> str:
    """The text of `plantain --help`."""
    width = max(map(len, COMMANDS))
    lines = [
        "Usage: plantain COMMAND [ARGS]...",
        "",
        "Build, judge and benchmark text-guided edits of medical images.",
        "A research tool: it diagnoses nothing, and what it makes is synthetic.",
        "",
        "Commands (each has --help with an example):",
        *(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()),
        "",
        "Exit codes: 0 done, 1 failed, 2 invalid input, 3 stopped by a limit and resumable.",
    ]
    return "\n".join(lines)


_BY_CTRL_C = 130


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; bad input becomes one line on stderr and code 2."""
    args = sys.argv[1:] if argv is None else argv
    redact_terminal()
    if not args or args[0] in ("--help", "-h", "help"):
        print(overview())
        return 0
    if args[0] == "--version":
        print(f"plantain {__version__}")
        return 0
    name, rest = args[0], args[1:]
    if name not in COMMANDS:
        nearest = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else "; see plantain --help"
        print(f"plantain: no command {name!r}{hint}", file=sys.stderr)
        return 2
    return _run(name, rest)


def _run(name: str, args: list[str]) -> int:
    import typer

    try:
        module = importlib.import_module(f"plantain.cli.{_MODULES.get(name, name)}")
        result = module.app(args=args, prog_name=f"plantain {name}", standalone_mode=False)
    except InputError as error:
        return _say(str(error), 2)
    except typer.TyperException as error:
        return _say(f"{name}: {error.format_message()}", 2)
    except OSError as error:
        return _say(f"{error.filename or name}: {error.strerror or error}", 2)
    except typer.Exit as stop:
        return stop.exit_code if stop.exit_code != _BY_CTRL_C else _say("interrupted", 3)
    except (typer.Abort, KeyboardInterrupt):
        return _say("interrupted", 3)
    if result == _BY_CTRL_C:
        return _say("interrupted", 3)
    return result if isinstance(result, int) else 0


def _say(line: str, code: int) -> int:
    print(f"plantain: {line}", file=sys.stderr)
    return code
