"""`plantain show`: a run's tasks as a list, or one task's whole story."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plantain.cli.terminal.application import application

if TYPE_CHECKING:
    from plantain.journal import JournalReader
    from plantain.records import TaskState
    from plantain.report.task_list import TaskFilter

app = application()


@app.command(epilog="Example: plantain show runs/demo --state failed,stopped")
def show(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the run; it may still be building.")],
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK", help="Id of a task, or as much of it as is unique; without one, all are listed."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list or the story as JSON.")] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE.html", help="Write the story as a page with pictures."),
    ] = None,
    state: Annotated[
        str, typer.Option(metavar="STATES", help="Only tasks in these states, separated by commas.")
    ] = "",
    finding: Annotated[
        list[str] | None, typer.Option("--finding", metavar="NAME", help="Only this finding; repeatable.")
    ] = None,
    modality: Annotated[str, typer.Option(help="Only tasks of this modality.")] = "",
    direction: Annotated[str, typer.Option(help="Only tasks that add or remove.")] = "",
    image: Annotated[str, typer.Option(metavar="ID", help="Only tasks of this image.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="At most so many lines.")] = 100,
) -> None:
    """List a run's tasks; or tell one in full: every round, instruction, verdict, file and call."""
    from plantain.journal import JournalReader
    from plantain.records import InputError
    from plantain.report.task_list import TaskFilter

    filters = {
        "--state": state,
        "--finding": finding,
        "--modality": modality,
        "--direction": direction,
        "--image": image,
    }
    if task is not None and (given := [name for name, value in filters.items() if value]):
        raise InputError(f"{given[0]}: filters a list of tasks; leave out either it or the task's id")
    with JournalReader.open(run) as reader:
        if task is not None:
            _story(reader, task, as_json, to)
            return
        if to is not None:
            raise InputError("--to: writes the story of one task; name it after the run")
        wanted = TaskFilter(_states(state), finding or (), modality, direction, image)
        _list(reader, wanted, limit, as_json)


def _states(words: str) -> tuple[TaskState, ...]:
    """Raises InputError for a state that there is not."""
    from plantain.records import InputError, TaskState
    from plantain.records.suggestions import suggest

    states = []
    for word in filter(None, (word.strip().replace(" ", "_") for word in words.split(","))):
        if word not in tuple(TaskState):
            raise InputError(f"--state {word!r}: {suggest(word, [state.value for state in TaskState])}")
        states.append(TaskState(word))
    return tuple(dict.fromkeys(states))


def _list(reader: JournalReader, wanted: TaskFilter, limit: int, as_json: bool) -> None:
    from plantain.report.task_list import listed

    tasks = list(islice(listed(reader, wanted), limit + 1))
    shown = tasks[:limit]
    if as_json:
        typer.echo(
            json.dumps({"tasks": [asdict(task) for task in shown], "more": len(tasks) > limit}, indent=1)
        )
        return
    from plantain.cli.terminal.tables import print_table
    from plantain.report.terminal import task_table

    if shown:
        print_table(task_table(shown))
    else:
        typer.echo("no such task")
    if len(tasks) > limit:
        typer.echo("and more: give --limit, or filter by --state, --finding, --direction, --image")
    elif shown:
        typer.echo(f"one in full: plantain show {reader.run} {shown[0].id}")


def _story(reader: JournalReader, task: str, as_json: bool, to: Path | None) -> None:
    row = reader.task(task)
    if to is not None:
        from plantain.report.page import write_story

        path = write_story(reader, row, to)
        typer.echo(json.dumps({"page": str(path)}) if as_json else f"page: {path}")
    elif as_json:
        from plantain.report.story import story_document

        typer.echo(json.dumps(story_document(reader, row), indent=1, ensure_ascii=True))
    else:
        from rich.console import Console

        from plantain.report.terminal import story

        Console().print(story(reader, row), crop=False)
