"""`plantain build`: run or resume a recipe."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Protocol

import orjson
import typer

from plantain.cli.runs.status import NAMED, print_unsuccessful, reasons, tasks_line
from plantain.cli.terminal.application import application
from plantain.cli.terminal.progress import BuildProgress
from plantain.engines.settings import engine_named
from plantain.journal import JournalReader
from plantain.journal.questions.telemetry import status_summary
from plantain.offline.workers import close_workers
from plantain.pipeline.consent import warnings
from plantain.pipeline.recipe import Recipe, load_recipe
from plantain.pipeline.run import run_build
from plantain.pipeline.shards import Shard
from plantain.records.counts import counted
from plantain.release.register import releases_with
from plantain.report.task_list import unsuccessful
from plantain.runs.summary import RunSummary

app = application()


@app.command()
def build(
    recipe_file: Annotated[Path, typer.Argument(metavar="RECIPE", help="a recipe in TOML")],
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="the run's folder; made or resumed")],
    limit: Annotated[int | None, typer.Option(min=1, help="close at most this many tasks")] = None,
    shard: Annotated[
        str,
        typer.Option(metavar="K/N", help="take only the K-th of N parts; join them with `plantain merge`"),
    ] = "",
    engine: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="where heavy work runs: local, or ray; instead of the recipe's [engine]"
        ),
    ] = "",
    accept_model_change: Annotated[
        bool,
        typer.Option("--accept-model-change", help="go on when a provider serves another model than before"),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the run's status as JSON")] = False,
) -> int:
    """Runs a recipe, or goes on with a run. Ctrl-C finishes what is in flight and stops; a second one stops at once.

    Example: plantain build cxr-pilot.toml --run runs/cxr-pilot
    """
    recipe = with_engine(load_recipe(recipe_file), engine)
    part = Shard.parse(shard) if shard else None
    for warning in warnings(recipe):
        print(f"plantain: warning: {warning}", file=sys.stderr)
    summary = build_watched(
        recipe, run, limit=limit, shard=part, quiet=as_json, accept_model_change=accept_model_change
    )
    for line in _regrouped(run, summary.regrouped):
        print(f"plantain: {line}", file=sys.stderr)
    with JournalReader.open(run) as reader:
        status = status_summary(reader)
        causes = reasons(reader)
        ended = unsuccessful(reader, NAMED)
    if as_json:
        print(orjson.dumps(status, option=orjson.OPT_INDENT_2).decode())
    else:
        print("\n".join([tasks_line(status), *causes]))
        print_unsuccessful(ended, run)
        if summary.stopped is None:
            print(f"tables, figures and pictures: {shlex.join(['plantain', 'report', str(run)])}")
    return print_end(summary, shlex.join(["plantain", "build", str(recipe_file), "--run", str(run)]))


def with_engine(recipe: Recipe, kind: str) -> Recipe:
    """The recipe with another engine; the same one for "". Raises InputError."""
    return recipe.model_copy(update={"engine": engine_named(recipe.engine, kind)})


def _regrouped(run: Path, images: Sequence[str]) -> Iterator[str]:
    """What groups that were learned or corrected mean for releases that were made before."""
    if not images:
        return
    how_many = counted(len(images), "image has", "images have")
    yield (
        f"{how_many} another group or split now than when the run took them; splits and withdrawals go by the "
        f"new ones"
    )
    for release in releases_with(run, images):
        yield f"  {release} was made before: one group may stand in several of its splits; export it anew"


def build_watched(
    recipe: Recipe,
    run: Path,
    *,
    limit: int | None = None,
    shard: Shard | None = None,
    quiet: bool = False,
    accept_model_change: bool = False,
) -> RunSummary:
    """`run_build` with a live progress line."""
    with BuildProgress(quiet=quiet) as progress:
        try:
            return asyncio.run(
                run_build(
                    recipe,
                    run,
                    limit=limit,
                    shard=shard,
                    observer=progress,
                    accept_model_change=accept_model_change,
                )
            )
        finally:
            close_workers()


class Ended(Protocol):
    """What any run says of how it ended."""

    stopped: str | None
    failed: bool
    left: str


def print_end(summary: Ended, resume: str) -> int:
    """Says on stderr how the process ended and how to go on; returns the exit code."""
    if summary.stopped is None:
        return 0
    if summary.failed:
        print(f"plantain: {summary.stopped}", file=sys.stderr)
    if summary.left:
        print(f"plantain: {summary.left}", file=sys.stderr)
    print(
        f"plantain: stopped ({'fault' if summary.failed else summary.stopped}); resume with: {resume}",
        file=sys.stderr,
    )
    return 1 if summary.failed else 3
