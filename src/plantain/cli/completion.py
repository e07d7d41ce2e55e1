"""`plantain completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from plantain.cli.terminal.application import application
from plantain.cli.terminal.groups import COMPLETING

app = application()


class Shell(StrEnum):
    """Shells that typer writes a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish")]) -> None:
    """Prints a script that completes commands and options; nothing is installed.

    Example: plantain completion bash > ~/.local/share/bash-completion/completions/plantain
    """
    print(get_completion_script(prog_name="plantain", complete_var=COMPLETING, shell=shell.value))
