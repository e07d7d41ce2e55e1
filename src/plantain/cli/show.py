"""`plantain show`: one task's whole story."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.application import application

app = application()


@app.command(epilog="Example: plantain show runs/demo 3f2a --to story.html")
def show(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the run; it may still be building.")],
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="Id of the task, or as much of it as is unique.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the story as JSON.")] = False,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE.html", help="Write it as a page with pictures.")
    ] = None,
) -> None:
    """Tell one task in full: every round, instruction, verdict, file and call."""
    from plantain.journal import JournalReader

    with JournalReader.open(run) as reader:
        row = reader.task(task)
        if to is not None:
            from plantain.report import write_story

            path = write_story(reader, row, to)
            typer.echo(json.dumps({"page": str(path)}) if as_json else f"page: {path}")
        elif as_json:
            from plantain.report.story import story_document

            typer.echo(json.dumps(story_document(reader, row), indent=1, ensure_ascii=True))
        else:
            from rich.console import Console

            from plantain.report.terminal import story

            Console().print(story(reader, row), crop=False)
