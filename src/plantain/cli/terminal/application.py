"""How every command makes its typer application."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.models import CommandFunctionType as CommandFunction

from plantain.records.commands import command_line

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

_VALUES = {
    "<int>": "N",
    "<int range>": "N",
    "<float>": "X",
    "<float range>": "X",
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<path>": "PATH",
    "<list[Path]>": "PATH",
}
"""What help calls the value of an option, by what typer would write: a reader knows numbers, not types."""


class _Command(TyperCommand):
    """A command with help for people: `RECIPE` for what is required, `[DIR]` for what is optional."""

    def format_help_text(self, ctx: Context, formatter: HelpFormatter) -> None:
        self.help = _copyable(self.help)
        super().format_help_text(ctx, formatter)

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        if self.epilog:
            self.epilog = _whole_example(self.epilog)
        super().format_epilog(ctx, formatter)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        pieces = [self.options_metavar] if self.options_metavar else []
        for param in self.get_params(ctx):
            pieces += [_shown(param)] if isinstance(param, TyperArgument) else param.get_usage_pieces(ctx)
        return pieces

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        _name_values(self, ctx)
        super().format_options(ctx, formatter)


class CommandWithOthers(TyperGroup):
    """A command that does something by itself and has others below it, with the same help for people."""

    def format_help_text(self, ctx: Context, formatter: HelpFormatter) -> None:
        self.help = _copyable(self.help)
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        _name_values(self, ctx)
        super().format_options(ctx, formatter)


def _copyable(text: str | None) -> str | None:
    return text and "\n\n".join(_whole_example(part) for part in text.split("\n\n"))


def _name_values(command: Command, context: Context) -> None:
    for option in command.get_params(context):
        if isinstance(option, TyperOption) and option.metavar is None and not option.is_flag:
            option.metavar = _VALUES.get(option.display_type(context))


def _whole_example(paragraph: str) -> str:
    """An example as one line that can be copied; it would be broken at the hyphens of its options."""
    if not paragraph.startswith("Example: "):
        return paragraph
    return "\b\n" + " ".join(paragraph.split())


def _shown(argument: TyperArgument) -> str:
    """`RECIPE` for what is needed, `[DIR]` for what is not, `FILE...` for one or more."""
    name = argument.display_name_raw.removesuffix("...").strip("[]")
    several = "..." if argument.nargs != 1 else ""
    return (name if argument.required else f"[{name}]") + several


def command_again(context: typer.Context) -> str:
    """Return the command line that resumes this command: the arguments and options given, without --limit."""
    words = context.command_path.split()[1:]
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if source is None or source.name != "COMMANDLINE" or param.name == "limit":
            continue
        value = context.params[param.name or ""]
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            option = [] if isinstance(param, TyperArgument) else [max(param.opts, key=len)]
            if one is False:
                words += param.secondary_opts
            else:
                words += option if one is True else [*option, str(getattr(one, "value", one))]
    return command_line(*words)


class _Application(typer.Typer):
    """Its commands are `_Command`s."""

    def command(self, *args: Any, **options: Any) -> Callable[[CommandFunction], CommandFunction]:
        return super().command(*args, **{"cls": _Command, **options})


def application() -> typer.Typer:
    """An application without completion options, markup in help texts or dressed-up tracebacks."""
    return _Application(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
