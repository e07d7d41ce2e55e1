"""Groups of commands: each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer.main
from typer._click.core import Command
from typer._click.shell_completion import CompletionItem
from typer.core import TyperGroup

from plantain.records import InputError
from plantain.records.suggestions import suggest

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

WIDTH = 120
"""Columns that help may use."""

COMPLETING = "_PLANTAIN_COMPLETE"
"""The variable by which a shell asks for completions, instead of running a command."""


class LazyGroup(TyperGroup):
    """A group whose help needs none of its commands' modules.

    Args:
        name: as it is typed, e.g. "bench"; "" for all of plantain.
        about: what it is for.
        homes: command -> (module, line of help). The module's `app` is a typer application or another group.
        epilog: printed below the commands.
        jobs: title -> names of commands that its help shows under it; one list without.
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

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in self.homes:
            hint = suggest(cmd_name, self.homes, otherwise=f"see {ctx.command_path} --help")
            raise InputError(f"{f'{self.name}: ' if self.name else ''}no command {cmd_name!r}; {hint}")
        app = importlib.import_module(self.homes[cmd_name][0]).app
        return app if isinstance(app, TyperGroup) else typer.main.get_command(app)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, with no command's module imported; else the group's own options."""
        named = [(name, text) for name, (_, text) in self.homes.items() if name.startswith(incomplete)]
        if named and not incomplete.startswith("-"):
            return [CompletionItem(name, help=text) for name, text in named]
        return Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        for title, names in self.jobs.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.homes[name][1]) for name in names.split()])
