"""Groups of commands: each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer.main
from typer.core import TyperGroup

from plantain.records import InputError
from plantain.records.suggestions import suggest

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

WIDTH = 120
"""Columns that help may use."""


class LazyGroup(TyperGroup):
    """A group whose help needs none of its commands' modules.

    Args:
        name: as it is typed, e.g. "bench"; "" for all of plantain.
        about: what it is for.
        homes: command -> (module, line of help). The module's `app` is a typer application or another group.
        epilog: printed below the commands.
    """

    def __init__(
        self, name: str, about: str, homes: Mapping[str, tuple[str, str]], *, epilog: str | None = None
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

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--help"] if args in ([], ["help"]) else args)

    def list_commands(self, ctx: Context) -> list[str]:
        return list(self.homes)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in self.homes:
            hint = suggest(cmd_name, self.homes, otherwise=f"see {ctx.command_path} --help")
            raise InputError(f"{f'{self.name}: ' if self.name else ''}no command {cmd_name!r}; {hint}")
        app = importlib.import_module(self.homes[cmd_name][0]).app
        return app if isinstance(app, TyperGroup) else typer.main.get_command(app)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        with formatter.section("Commands (each has --help with an example)"):
            formatter.write_dl([(name, text) for name, (_, text) in self.homes.items()])
