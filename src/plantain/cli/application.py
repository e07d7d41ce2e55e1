"""The one way in which every command makes its typer application."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import typer
from typer.core import TyperCommand, TyperOption

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

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
    """A command whose help is written for who types it: `RECIPE` for what is needed, `[DIR]` for what is not."""

    def format_help_text(self, ctx: Context, formatter: HelpFormatter) -> None:
        if self.help:
            self.help = "\n\n".join(_whole_example(part) for part in self.help.split("\n\n"))
        super().format_help_text(ctx, formatter)

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        if self.epilog:
            self.epilog = _whole_example(self.epilog)
        super().format_epilog(ctx, formatter)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        return [_plain(piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        for option in self.get_params(ctx):
            if isinstance(option, TyperOption) and option.metavar is None and not option.is_flag:
                option.metavar = _VALUES.get(option.display_type(ctx))
        super().format_options(ctx, formatter)


def _whole_example(paragraph: str) -> str:
    """An example as one line that can be copied; it would be broken at the hyphens of its options."""
    if not paragraph.startswith("Example: "):
        return paragraph
    return "\b\n" + " ".join(paragraph.split())


def _plain(piece: str) -> str:
    """Typer's `{RECIPE}`, `[[DIR]]` and `{DIR...}...` as `RECIPE`, `[DIR]` and `DIR...`."""
    found = re.fullmatch(r"(\{|\[)\[?([^][{}.]+?)(?:\.\.\.)?\]?(?:\.\.\.)?[]}](\.\.\.)?", piece)
    if found is None:
        return piece
    opening, name, several = found.groups()
    return (f"[{name}]" if opening == "[" else name) + (several or "")


class _Application(typer.Typer):
    """Its commands are `_Command`s."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        for command in self.registered_commands:
            command.cls = _Command
        return super().__call__(*args, **kwargs)


def application() -> typer.Typer:
    """An application without completion options, markup in help texts or dressed-up tracebacks."""
    return _Application(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
