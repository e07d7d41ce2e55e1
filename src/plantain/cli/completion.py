"""`plantain completion`: shell completion of commands and options."""

from __future__ import annotations

from typing import Literal

import typer
from typer._completion_shared import get_completion_script

from plantain.cli import COMPLETING

SHELL = typer.Argument(..., metavar="SHELL", help="Shell: bash, zsh or fish.")


def completion(shell: Literal["bash", "zsh", "fish"] = SHELL) -> None:
    """Print a script that completes commands and options; nothing is installed.

    Example: plantain completion bash > ~/.local/share/bash-completion/completions/plantain
    """
    print(get_completion_script(prog_name="plantain", complete_var=COMPLETING, shell=shell))
