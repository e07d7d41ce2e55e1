"""`plantain plan`: what a recipe will need, before anything is called."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from plantain.build.plan import Estimate, Plan, make_plan
from plantain.build.recipe import Recipe, load_recipe
from plantain.findings import load_taxonomy
from plantain.sources.catalogue import Catalogue

app = typer.Typer()


@app.command()
def plan(
    recipe_file: Annotated[Path, typer.Argument(metavar="RECIPE", help="a recipe in TOML")],
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> None:
    """Tasks, calls and disk that a recipe needs. Calls no model.

    Example: plantain plan cxr-pilot.toml
    """
    recipe = load_recipe(recipe_file)
    catalogue = Catalogue.open(recipe.data.catalogue)
    made = make_plan(recipe, catalogue, load_taxonomy(recipe.data.finding_files))
    free = shutil.disk_usage(recipe.data.catalogue).free
    if as_json:
        print(orjson.dumps(_as_dict(recipe, made, free), option=orjson.OPT_INDENT_2).decode())
        return
    _print(recipe, made, free)


def _as_dict(recipe: Recipe, made: Plan, free: int) -> dict[str, object]:
    def three(estimate: Estimate) -> dict[str, float]:
        return {"low": estimate.low, "expected": estimate.expected, "high": estimate.high}

    return {
        "name": recipe.name,
        "tasks": made.tasks,
        "images": made.images,
        "by_finding": [
            {"modality": m, "finding": f, "direction": d, "tasks": n}
            for (m, f, d), n in made.by_finding.items()
        ],
        "calls": three(made.calls),
        "disk_bytes": three(made.disk),
        "disk_free_bytes": free,
    }


def _print(recipe: Recipe, made: Plan, free: int) -> None:
    console = Console()
    table = Table(title=f"{recipe.name}: {made.tasks} tasks on {made.images} images")
    for heading in ("modality", "finding", "direction"):
        table.add_column(heading)
    table.add_column("tasks", justify="right")
    for (modality, finding, direction), n in made.by_finding.items():
        table.add_row(modality, finding, direction, str(n))
    console.print(table)
    console.print(
        f"model calls  {made.calls.low:,.0f} to {made.calls.high:,.0f}, about {made.calls.expected:,.0f}"
    )
    console.print(
        f"disk         {gigabytes(made.disk.low)} to {gigabytes(made.disk.high)}, about "
        f"{gigabytes(made.disk.expected)}; {gigabytes(free)} free"
    )
    if made.disk.expected > free:
        console.print("[bold red]The disk is too small for what is expected.")


def gigabytes(count: float) -> str:
    """Bytes for a person: "12.3 GB" or "45 MB"."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
