"""The command line: one thin module per command, imported when the command runs.

Exit codes: 0 done, 1 failed, 2 usage or invalid input (one line), 3 stopped by a limit and resumable.
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import typer.main
from typer._click.core import Command
from typer._click.shell_completion import CompletionItem
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import CommandFunctionType as CommandFunction

from plantain.files.secrets import redact_terminal
from plantain.records import InputError
from plantain.records.messages import command_line, like_path, suggest, typed, working_directory
from plantain.version import __version__

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

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
    "models": ("plantain.cli.models:models", "List models by provider with roles, prices and keys"),
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

WIDTH = 120
"""Columns that help may use."""

OTHER_WORDS = {
    "eval": "bench score",
    "evaluate": "bench score",
    "resume": "build RECIPE --run DIR",
    "serve": "review serve",
}
"""Commands of other tools, with ours."""

COMPLETING = "_PLANTAIN_COMPLETE"
"""Environment variable that a shell sets to request completions."""

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


def _usage(error: typer.TyperException, name: str, args: list[str]) -> str:
    """Return a fault of the command line in one line, with the line to type if a part of it is missing."""
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    path = context.command_path.split()[1:] if context else [name]
    fault = " ".join(error.format_message().replace("Value error, ", "").split())
    line = ": ".join(filter(None, (" ".join(path), fault)))
    if type(error).__name__ == "NoSuchOption" and context:
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


class LazyGroup(TyperGroup):
    """A group that shows its help without importing its commands.

    Args:
        name: name of the group, e.g. "bench"; "" for the top level.
        about: description in the help.
        homes: command -> ("module:name", one line of help); name is a function, a typer application or a group.
        epilog: text below the commands.
        jobs: title -> commands listed under it; default: one list.
    """

    def __init__(
        self,
        name: str,
        about: str,
        homes: Mapping[str, tuple[str, str]],
        *,
        epilog: str | None = None,
        jobs: Mapping[str, str] | None = None,
    ) -> None:
        context = {"help_option_names": ["--help", "-h"], "max_content_width": WIDTH}
        super().__init__(
            name=name,
            help=about,
            epilog=epilog,
            rich_markup_mode=None,
            options_metavar="",
            context_settings=context,
        )
        self.homes = homes
        self.jobs = jobs or {"Commands (each has --help with an example)": " ".join(homes)}

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, ["--help"] if args in ([], ["help"]) else args)

    def list_commands(self, ctx: Context) -> list[str]:
        return list(self.homes)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        ctx.args = args[1:]  # for the advice on an unknown command
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in self.homes:
            meant = self._meant(cmd_name, ctx.args)
            hint = suggest(cmd_name, self.homes, meant, otherwise=f"see {ctx.command_path} --help")
            raise InputError(f"{f'{self.name}: ' if self.name else ''}no command {cmd_name!r}; {hint}")
        module, _, attribute = self.homes[cmd_name][0].partition(":")
        found = getattr(importlib.import_module(module), attribute)
        if isinstance(found, TyperGroup):
            return found
        if not isinstance(found, typer.Typer):
            function, found = found, application()
            found.command(name=cmd_name)(function)
        return typer.main.get_command(found)

    def _meant(self, word: str, rest: Sequence[str]) -> str | None:
        """Return the command for a word of another tool, or of a group below, e.g. "bench score" for "score"."""
        given = [word] if self.name == "run" else rest if word == "resume" else []
        recipe = next((text for text in given if text.endswith(".toml")), "")
        run = next((text for text in given if Path(text).is_dir()), "")
        if recipe or run:
            return command_line("build", recipe or "RECIPE", *(("--run", run) if run else ()))
        if self.name or word in OTHER_WORDS:
            return None if self.name else OTHER_WORDS[word]
        for group in ("bench", "judge", "review", "run", "train"):
            below = self.get_command(typer.Context(self), group) if group in self.homes else None
            if word in getattr(below, "homes", ()):
                return f"{group} {word}"
        return None

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names without importing them, or else the group's options."""
        named = [(name, text) for name, (_, text) in self.homes.items() if name.startswith(incomplete)]
        if named and not incomplete.startswith("-"):
            return [CompletionItem(name, help=text) for name, text in named]
        return Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        for title, names in self.jobs.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.homes[name][1]) for name in names.split()])


class _Readable(Command):
    """Help with examples on one line that can be copied."""

    def format_help_text(self, ctx: Context, formatter: HelpFormatter) -> None:
        self.help = self.help and "\n\n".join(map(_whole_example, self.help.split("\n\n")))
        super().format_help_text(ctx, formatter)


class _Command(_Readable, TyperCommand):
    """A command whose usage shows required arguments as `RECIPE` and optional ones as `[DIR]`."""

    def invoke(self, ctx: Context) -> Any:
        before = typed.set(command_again(ctx, "limit", "pilot", "as_json"))
        try:
            ended = super().invoke(ctx)
        finally:
            typed.reset(before)
        if ctx.params.get("dry_run") and not (ended or ctx.params.get("as_json")):
            print(f"next: {command_again(ctx, 'dry_run')}")
        return ended

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        pieces = [self.options_metavar] if self.options_metavar else []
        for param in self.get_params(ctx):
            pieces += [_shown(param)] if isinstance(param, TyperArgument) else param.get_usage_pieces(ctx)
        return pieces


def command_again(context: Context, *without: str) -> str:
    """Return the command line as typed, without the parameters named in `without`."""
    words = context.command_path.split()[1:]
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if source is None or source.name != "COMMANDLINE" or param.name in without:
            continue
        value = context.params[param.name or ""]
        for one in value if isinstance(value, (list, tuple)) else [value]:
            option = [name for name in param.opts if name.startswith("--")][:1]  # none of an argument
            if one is False:
                words += param.secondary_opts
            else:
                words += option if one is True else [*option, str(getattr(one, "value", one))]
    return command_line(*words)


def _whole_example(paragraph: str) -> str:
    """Return an example as one line; click would wrap it at the hyphens of its options."""
    if not paragraph.startswith("Example: "):
        return paragraph
    return "\b\n" + " ".join(paragraph.split())


def _shown(argument: TyperArgument) -> str:
    """Return `RECIPE` if required, `[DIR]` if optional, `FILE...` for one or more."""
    name = argument.display_name_raw.removesuffix("...").strip("[]")
    several = "..." if argument.nargs != 1 else ""
    return (name if argument.required else f"[{name}]") + several


class _Application(typer.Typer):
    """An application whose commands are `_Command`s."""

    def command(self, *args: Any, **options: Any) -> Callable[[CommandFunction], CommandFunction]:
        return super().command(*args, **{"cls": _Command, **options})


def application() -> typer.Typer:
    """Make a typer application without completion options, markup or formatted tracebacks."""
    return _Application(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
