"""`plantain show`: a list of a run's tasks, or one task in full."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, RunArgument, chosen_words
from plantain.cli.terminal.tables import print_json, print_table
from plantain.journal import JournalReader
from plantain.journal.questions.status import ListedTask, listed
from plantain.records import InputError, TaskState
from plantain.records.messages import next_line


def show(
    run: RunArgument,
    task: str | None = typer.Argument(
        None, metavar="TASK", help="Id of a task or a unique prefix; default: list all."
    ),
    as_json: AsJson = False,
    to: Path | None = typer.Option(None, metavar="FILE.html", help="Write the task as a page."),
    state: str = typer.Option("", metavar="STATES", help="Only tasks in these states, separated by commas."),
    finding: list[str] | None = typer.Option(None, metavar="NAME", help="Only this finding; repeatable."),
    direction: str = typer.Option("", help="Only tasks that add or remove."),
    limit: int = typer.Option(100, min=1, help="Show at most N tasks."),
) -> None:
    """List a run's tasks, or print one in full: every round, instruction, verdict, file and call.

    Example: plantain show runs/demo --state failed,stopped
    """
    filters = {"--state": state, "--finding": finding, "--direction": direction}
    if task is not None and (given := [name for name, value in filters.items() if value]):
        raise InputError(f"{given[0]}: filters the list of tasks; remove it or the task id")
    states = chosen_words("--state", state.split(","), TaskState)
    with JournalReader.open(run) as reader:
        if task is not None:
            _story(reader, task, as_json, to)
            return
        if to is not None:
            raise InputError("--to: writes one task as a page; give its id after the run")
        wanted = listed(reader, tuple(map(TaskState, states)), finding or (), direction)
        _list(reader, list(islice(wanted, limit + 1)), limit, as_json)


def _list(reader: JournalReader, tasks: list[ListedTask], limit: int, as_json: bool) -> None:
    shown = tasks[:limit]
    if as_json:
        print_json({"tasks": [asdict(task) for task in shown], "more": len(tasks) > limit})
        return
    from plantain.report.terminal import task_table

    if shown:
        print_table(task_table(shown))
    else:
        typer.echo("no task matches")
    if len(tasks) > limit:
        typer.echo("and more: raise --limit, or filter by --state, --finding, --direction")
    else:
        typer.echo(next_line("show", reader.run, *(task.id for task in shown[:1])))


def _story(reader: JournalReader, task: str, as_json: bool, to: Path | None) -> None:
    row = reader.task(task)
    if to is not None:
        from plantain.report.page import write_story

        path = write_story(reader, row, to)
        line = f"page: {path}\n{next_line('view', reader.run)}"
        typer.echo(json.dumps({"page": str(path)}) if as_json else line)
    elif as_json:
        from plantain.report.gallery import story_document

        typer.echo(json.dumps(story_document(reader, row), indent=1, ensure_ascii=True))
    else:
        from plantain.cli.terminal.tables import TerminalConsole
        from plantain.report.terminal import story

        TerminalConsole().print(story(reader, row), crop=False)
        typer.echo(next_line("view", reader.run))
