"""The command line: one thin module per command, imported when it is asked for.

Exit codes: 0 done, 1 failed, 2 usage or invalid input (one line), 3 stopped by a limit and resumable.
"""

from __future__ import annotations

import importlib
import sys

import click
import typer
from typer.core import TyperGroup

from plantain.records import InputError

COMMANDS = {
    "demo": "the whole build, offline, on real images that arrive with the dependencies",
    "ingest": "read images into a catalogue",
    "findings": "what can be added and removed",
    "plan": "tasks, calls, disk and time that a recipe needs; calls nothing",
    "build": "run or resume a recipe",
    "status": "where a run stands",
    "show": "one task in full",
    "report": "tables and figures of a run, as one HTML file",
    "audit": "how far a judge can be trusted, by planted defects",
}
"""Name and help of every command; `plantain.cli.<name>` holds its typer application `app`."""


class LazyGroup(TyperGroup):
    """Lists commands without importing them; imports the one that is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"plantain.cli.{cmd_name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=LazyGroup,
    help="Build, judge and benchmark text-guided edits of medical images. A research tool, not a diagnostic one.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    pass


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; bad input becomes one line on stderr and code 2."""
    try:
        result = app(args=argv, standalone_mode=False, prog_name="plantain")
    except InputError as error:
        print(f"plantain: {error}", file=sys.stderr)
        return 2
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.exceptions.Abort, KeyboardInterrupt):
        print("plantain: interrupted", file=sys.stderr)
        return 3
    return result if isinstance(result, int) else 0
