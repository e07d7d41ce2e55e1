"""`plantain completion`: shell completion of commands and options."""

from __future__ import annotations

from enum import StrEnum

import typer
from typer._completion_shared import get_completion_script

from plantain.cli.terminal.groups import COMPLETING


class Shell(StrEnum):
    """Shells that typer supports."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Shell = typer.Argument(..., metavar="SHELL", help="Shell: bash, zsh or fish.")) -> None:
    """Print a script that completes commands and options; nothing is installed.

    Example: plantain completion bash > ~/.local/share/bash-completion/completions/plantain
    """
    print(get_completion_script(prog_name="plantain", complete_var=COMPLETING, shell=shell.value))
