"""`plantain build`: run or resume a recipe, or a pilot of it that ends with go or stop."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, EngineKind, ModelChange, RecipeArgument
from plantain.cli.terminal.progress import BuildProgress, print_end, run_to_end
from plantain.cli.terminal.tables import print_json
from plantain.journal import JournalReader
from plantain.journal.questions.status import reasons, status_summary, tasks_line, unsuccessful
from plantain.models.registry import endings
from plantain.pipeline.forecast import forecast
from plantain.pipeline.pilot import (
    FEWEST,
    decide_pilot,
    drawn_pending,
    drawn_tasks,
    in_words,
    pilot_numbers,
)
from plantain.pipeline.plan import Shard
from plantain.pipeline.recipe import Recipe, load_recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError, TaskState
from plantain.records.messages import command_line, counted, next_line
from plantain.runs.progress import RunSummary
from plantain.runs.settings_file import engine_named


def build(
    context: typer.Context,
    recipe_file: RecipeArgument,
    run: Path = typer.Option(..., metavar="DIR", help="Folder of the run, made or resumed."),
    pilot: int | None = typer.Option(None, min=1, help="Do N tasks of all findings; print go or stop."),
    limit: int | None = typer.Option(None, min=1, help="Close at most N tasks."),
    shard: str = typer.Option("", metavar="K/N", help="Only part K of N; `run merge` joins them."),
    engine: EngineKind = "",
    accept_model_change: ModelChange = False,
    as_json: AsJson = False,
) -> int:
    """Run a recipe, or resume its run. Ctrl-C finishes the calls in flight and stops; a second one stops at once.

    A pilot draws the same tasks each time, and advises whether to build the rest.

    Example: plantain build cxr.toml --run runs/cxr --pilot 50
    """
    if pilot is not None and (limit is not None or shard):
        raise InputError("--pilot: draws its own tasks; leave out --limit and --shard")
    recipe = load_recipe(recipe_file)
    recipe = recipe.model_copy(update={"engine": engine_named(recipe.engine, engine)})
    part = Shard.parse(shard) if shard else None
    for warning in endings(map(recipe.terms.listed, recipe.terms.models)):
        print(f"plantain: warning: {warning}", file=sys.stderr)
    with BuildProgress(quiet=as_json) as progress:
        summary = run_to_end(
            run_build(
                recipe,
                run,
                limit=limit,
                shard=part,
                only=None if pilot is None else lambda reader: drawn_pending(reader, pilot),
                observer=progress,
                accept_model_change=accept_model_change,
            )
        )
    if pilot is None:
        _print_built(recipe_file, run, summary, as_json=as_json)
    else:
        given = ["--engine", engine] * bool(engine) + ["--accept-model-change"] * accept_model_change
        _print_pilot(
            recipe, run, pilot, command_line("build", recipe_file, "--run", run, *given), as_json=as_json
        )
    return print_end(context, summary)


def _print_built(recipe_file: Path, run: Path, summary: RunSummary, *, as_json: bool) -> None:
    with JournalReader.open(run) as reader:
        status = status_summary(reader)
        causes = reasons(reader)
        ended = unsuccessful(reader)
    if as_json:
        print_json(status)
        return
    print(tasks_line(status), *causes, *ended.lines(run), sep="\n")
    counts = status["tasks"]
    assert isinstance(counts, dict)
    if counts["total"] and counts["not_applicable"] == counts["total"]:
        print(f"nothing was edited: change data.findings or models.editor in {recipe_file}; use a new --run")
    if summary.stopped is None:
        print(next_line("report", run))


def _print_pilot(recipe: Recipe, run: Path, tasks: int, whole: str, *, as_json: bool) -> None:
    """Print go or stop with the reasons; print nothing while no task of the pilot is closed."""
    with JournalReader.open(run) as reader:
        drawn = drawn_tasks(reader, tasks)
        if not drawn:
            raise InputError(f"{recipe.name}: the plan has no task")
        if all(reader.task(task).state is TaskState.PENDING for task in drawn):
            return
        numbers = pilot_numbers(reader, drawn, forecast(recipe, run)[0])
    why, mind = decide_pilot(numbers, recipe.limits.budget_usd)
    decision = "stop" if why else "go"
    if as_json:
        rates = {
            name: {"n": rate.n, "rate": rate.value, "low": rate.low, "high": rate.high}
            for name, rate in numbers.rates.items()
        }
        counts = {"asked": numbers.asked, **numbers.states}
        print_json(
            {"decision": decision, "why": why, "mind": mind, "tasks": counts, **rates, "whole_by": whole}
        )
        return
    rate = numbers.rates["qualified"]
    print(f"qualified: {in_words(rate)}, with the 95 % interval")
    for line in mind:
        print(f"  note: {line}")
    for line in why:
        print(f"  against: {line}")
    print(decision)
    if not why:
        print(f"next: {whole}")
    elif rate.n < FEWEST and not numbers.states.get(TaskState.PENDING) and len(drawn) == tasks:
        print(f"next: {whole} --pilot {max(20, 2 * tasks)}")
    elif rate.n < FEWEST and not numbers.states.get(TaskState.PENDING):
        unjudged = f"{counted(len(drawn), 'task')}, {len(drawn) - rate.n} of them without a verdict"
        print(f"the recipe has {unjudged}: raise data.per_finding, or add images")
