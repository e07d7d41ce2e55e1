"""`plantain plan`: estimates of tasks, calls, cost, time and disk space of a recipe."""

from __future__ import annotations

import shutil
import sys
from dataclasses import astuple
from pathlib import Path

import typer
from rich.table import Table

from plantain.cli.terminal.options import AsJson, RecipeArgument
from plantain.cli.terminal.tables import folded, print_json, print_table, right
from plantain.models.registry import endings
from plantain.pipeline.forecast import BuildPlan, CallEstimate, forecast, three
from plantain.pipeline.recipe import Recipe, load_recipe
from plantain.records.messages import counted, duration, next_line
from plantain.runs.terms import calls_at_once


def plan(
    recipe_file: RecipeArgument,
    run: Path | None = typer.Option(None, metavar="DIR", help="A pilot's run: use its rates and costs."),
    as_json: AsJson = False,
) -> None:
    """Estimate tasks, calls, cost, time and disk space of a recipe: low, expected, high. Calls no model.

    Example: plantain plan cxr.toml --run runs/cxr-pilot
    """
    recipe = load_recipe(recipe_file)
    made, found = forecast(recipe, run)
    free = shutil.disk_usage(recipe.data.catalogue).free
    remarks = [*endings(map(recipe.terms.listed, recipe.terms.models)), *found]
    for warning in remarks:
        print(f"plantain: warning: {warning}", file=sys.stderr)
    if as_json:
        print_json(_as_dict(recipe, made, free, remarks))
        return
    _print(recipe, made, free, by_pilot=run is not None)
    print(next_line("build", recipe_file, "--run", f"runs/{recipe.name}"))


def _as_dict(recipe: Recipe, made: BuildPlan, free: int, remarks: list[str]) -> dict[str, object]:
    return {
        "name": recipe.name,
        "tasks": made.tasks,
        "images": made.images,
        "by_finding": [
            {"modality": m, "finding": f, "direction": d, "tasks": n, "tried": three(made.tried_by[m, f, d])}
            for (m, f, d), n in made.by_finding.items()
        ],
        "accepted_per_finding": recipe.data.accepted_per_finding,
        "tried": three(made.tried),
        "rounds": three(made.rounds),
        "calls": three(made.calls),
        "calls_by": [
            {
                "step": step.value,
                "model": model,
                **(three(calls) or {}),
                "at_once": calls_at_once(recipe.terms, model),
            }
            for (step, model), calls in made.calls_by.items()
        ],
        "cost_usd": three(made.cost_usd),
        "unpriced_models": list(made.unpriced),
        "budget_usd": recipe.limits.budget_usd,
        "duration_s": three(made.duration_s),
        "disk_bytes": three(made.disk),
        "disk_free_bytes": free,
        "warnings": remarks,
    }


def _print(recipe: Recipe, made: BuildPlan, free: int, *, by_pilot: bool) -> None:
    asked = recipe.data.accepted_per_finding
    most = "" if asked is None else "at most "
    title = f"{recipe.name}: {most}{counted(made.tasks, 'task')} on {counted(made.images, 'image')}"
    numbers = ("tasks",) if asked is None else ("tasks at most", "expected")
    tasks = Table(*folded("modality", "finding", "direction"), *right(*numbers), title=title)
    for part, n in made.by_finding.items():
        expected = () if asked is None else (f"{made.tried_by[part].expected:,.0f}",)
        tasks.add_row(*part, str(n), *expected)
    print_table(tasks)
    source = "the pilot's rates" if by_pilot else "the paper's rates (for a pilot's, pass its run as --run)"
    needs = Table(*folded(""), *right("low", "expected", "high"), title=f"estimate with {source}")
    for column in needs.columns[1:]:
        column.no_wrap = True  # times
    if asked is not None:
        needs.add_row("tasks tried", *_row(made.tried, "{:,.0f}"))
    for (step, model), calls in made.calls_by.items():
        needs.add_row(f"{step.value} calls to {model}", *_row(calls, "{:,.0f}"))
    if made.cost_usd is not None:
        needs.add_row("cost", *_row(made.cost_usd, "${:,.2f}"))
    needs.add_row("time", *map(duration, astuple(made.duration_s)))
    needs.add_row("disk", *map(gigabytes, astuple(made.disk)))
    print_table(needs)
    for line in _remarks(recipe, made, free):
        print(line)


def _remarks(recipe: Recipe, made: BuildPlan, free: int) -> list[str]:
    lines = list[str]()
    if (asked := recipe.data.accepted_per_finding) is not None:
        floor = recipe.data.yield_floor
        ends = f", or its yield is below {floor:g} (data.yield_floor)" if floor else ""
        lines.append(
            f"Each finding and direction tries images until {asked:,} edits are accepted, no image is left{ends}."
        )
    if made.unpriced:
        lines.append(f"cost unknown: no price for {', '.join(made.unpriced)}")
    budget = recipe.limits.budget_usd
    if budget is not None and made.cost_usd is not None and made.cost_usd.expected > budget:
        lines.append(f"Expected cost exceeds limits.budget_usd = {budget:g}; the run will stop there.")
    if made.disk.expected > free:
        lines.append(f"Not enough disk space: {gigabytes(free)} free.")
    else:
        lines.append(f"{gigabytes(free)} free on the disk")
    return lines


def _row(estimate: CallEstimate, how: str) -> tuple[str, ...]:
    return tuple(how.format(value) for value in astuple(estimate))


def gigabytes(count: float) -> str:
    """Format a size in bytes: "12.3 GB" or "45 MB"."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
