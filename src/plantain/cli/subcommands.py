"""A command that has commands of its own: one module for each, imported when it is asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from plantain.records import InputError


@dataclass(frozen=True, slots=True)
class Subcommands:
    """Called as the command line calls any command.

    Attributes:
        name: of the command, e.g. "bench".
        about: one line.
        commands: every sub-command and its line of help; `plantain.cli.<name>.<sub-command>` holds its typer
            application `app`.
    """

    name: str
    about: str
    commands: Mapping[str, str]

    def overview(self) -> str:
        """The text of `--help`."""
        width = max(map(len, self.commands))
        lines = [
            f"Usage: plantain {self.name} COMMAND [ARGS]...",
            "",
            self.about,
            "",
            "Commands (each has --help with an example):",
            *(f"  {name:<{width}}  {text}" for name, text in self.commands.items()),
        ]
        return "\n".join(lines)

    def __call__(self, args: list[str], prog_name: str, standalone_mode: bool) -> object:
        """Runs one sub-command."""
        if not args or args[0] in ("--help", "-h", "help"):
            print(self.overview())
            return 0
        name, rest = args[0], args[1:]
        if name not in self.commands:
            nearest = difflib.get_close_matches(name, self.commands, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; see plantain {self.name} --help"
            raise InputError(f"{self.name}: no command {name!r}{hint}")
        module = importlib.import_module(f"plantain.cli.{self.name}.{name.replace('-', '_')}")
        return module.app(args=rest, prog_name=f"{prog_name} {name}", standalone_mode=standalone_mode)
