"""`plantain judge prompts`: the prompt templates as files."""

from __future__ import annotations

from pathlib import Path

import typer

from plantain.models.hosted.prompts import write_prompts
from plantain.records.messages import counted, next_line


def prompts(to: Path = typer.Option(..., metavar="FOLDER", help="Folder for the templates.")) -> None:
    """Write the prompt templates into a folder.

    Edit them, delete those that stay as they are, and name the folder: `prompts` in a recipe's [providers.NAME], or
    `judge rejudge RUN --prompts ours --prompts FOLDER` to see which verdicts change.

    Example: plantain judge prompts --to my-prompts
    """
    print(f"{to}: {counted(len(write_prompts(to)), 'template')}")
    judge = ("--judge", "PROVIDER/MODEL")
    print(next_line("judge", "rejudge", "RUN", *judge, "--prompts", "ours", "--prompts", to))
