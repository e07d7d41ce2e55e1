"""`plantain pilot`: a few tasks of each finding and direction, and one page that says go or stop."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.runs.build import print_end
from plantain.cli.terminal.application import application
from plantain.cli.terminal.progress import BuildProgress
from plantain.journal import JournalReader
from plantain.offline.workers import close_workers
from plantain.pipeline.consent import warnings
from plantain.pipeline.piloting.decision import (
    PilotDecision,
    PilotNumbers,
    decide_pilot,
    drawn_pending,
    drawn_tasks,
    pilot_numbers,
)
from plantain.pipeline.piloting.page import NAME, interval, pilot_document, write_pilot
from plantain.pipeline.ready import forecast
from plantain.pipeline.recipe import Recipe, load_recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError, TaskState
from plantain.records.counts import counted
from plantain.runs.summary import RunSummary

app = application()


@app.command(epilog="Example: plantain pilot cxr.toml --run runs/cxr --tasks 50")
def pilot(
    recipe_file: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe in TOML.")],
    run: Annotated[
        Path, typer.Option("--run", metavar="DIR", help="The run's folder; the whole build goes on in it.")
    ],
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Tasks, shared out over the findings.")] = 50,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help=f"The page. Default: {NAME} in the run.")
    ] = None,
    accept_model_change: Annotated[
        bool,
        typer.Option("--accept-model-change", help="Go on when a provider serves another model than before."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The decision and its numbers as JSON.")] = False,
) -> int:
    """Do a few tasks of each finding and direction, and say whether the whole is worth beginning: go, or stop.

    The tasks are the same ones however often it is typed. `plantain build` with the same run does the others.
    """
    recipe = load_recipe(recipe_file)
    for warning in warnings(recipe):
        print(f"plantain: warning: {warning}", file=sys.stderr)
    summary = _walked(recipe, run, tasks, quiet=as_json, accept_model_change=accept_model_change)
    again = shlex.join(["plantain", "pilot", str(recipe_file), "--run", str(run), "--tasks", str(tasks)])
    with JournalReader.open(run) as reader:
        drawn = drawn_tasks(reader, tasks)
        if all(reader.task(task).state is TaskState.PENDING for task in drawn):
            if not drawn:
                raise InputError(f"{recipe_file}: the plan has no task")
            return print_end(summary, again)
        numbers = pilot_numbers(reader, drawn, forecast(recipe, run)[0], shutil.disk_usage(run).free)
    decision = decide_pilot(numbers, recipe.limits.budget_usd)
    whole = shlex.join(["plantain", "build", str(recipe_file), "--run", str(run)])
    page = write_pilot(numbers, decision, recipe.name, whole, to if to is not None else run / NAME)
    if as_json:
        document = {**pilot_document(numbers, decision), "page": str(page), "whole_by": whole}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        _print_decision(numbers, decision, page, whole)
    return print_end(summary, again)


def _walked(recipe: Recipe, run: Path, tasks: int, *, quiet: bool, accept_model_change: bool) -> RunSummary:
    with BuildProgress(quiet=quiet) as progress:
        try:
            return asyncio.run(
                run_build(
                    recipe,
                    run,
                    observer=progress,
                    accept_model_change=accept_model_change,
                    only=lambda reader: drawn_pending(reader, tasks),
                )
            )
        finally:
            close_workers()


def _print_decision(numbers: PilotNumbers, decision: PilotDecision, page: Path, whole: str) -> None:
    rate = numbers.qualified
    print(f"qualified: {rate.successes} of {counted(rate.n, 'judged task')} (95 % interval {interval(rate)})")
    for part in numbers.parts:
        if part.standing == "does not work":
            print(f"  {part.direction} {part.finding}: {part.rate.successes} of {part.rate.n}: does not work")
    for line in decision.mind:
        print(f"  mind: {line}")
    for line in decision.why:
        print(f"  against: {line}")
    print(f"{decision.word}: {page}")
    if decision.go:
        print(f"the whole: {whole}")
