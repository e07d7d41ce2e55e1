"""`plantain judge prompts`: the prompt templates as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application

app = application()


@app.command(epilog="Example: plantain judge prompts --to my-prompts")
def prompts(
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Folder for the templates.")],
) -> None:
    """Write the prompt templates into a folder.

    Edit them, delete those that stay as they are, and name the folder: `prompts` in a recipe's [providers.NAME], or
    `judge rejudge RUN --prompts ours --prompts FOLDER` to see which verdicts change.
    """
    from plantain.models.hosted.prompts.library import write_prompts
    from plantain.records.counts import counted

    print(f"{to}: {counted(len(write_prompts(to)), 'template')}")
