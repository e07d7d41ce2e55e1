"""plantain: build, judge and benchmark text-guided edits of medical images.

A research tool. It is not a medical device, it diagnoses nothing, and what it makes is synthetic.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plantain.version import __version__ as __version__

if TYPE_CHECKING:
    from plantain.bench.benchmark.benchmark import Benchmark as Benchmark
    from plantain.pipeline.recipe import Recipe
    from plantain.pipeline.run import RunSummary


def run(recipe: Path | str | Recipe, run_dir: Path | str, *, limit: int | None = None) -> RunSummary:
    """Runs or resumes a build; `plantain build` in code.

    Args:
        recipe: a recipe, or the path of its TOML file.
        run_dir: the run's folder, made when absent.
        limit: close at most this many tasks.

    Raises:
        plantain.records.InputError: the recipe, catalogue or run cannot be used; one line says why.
    """
    import asyncio

    from plantain.offline.workers import close_workers
    from plantain.pipeline.recipe import Recipe, load_recipe
    from plantain.pipeline.run import run_build

    made = recipe if isinstance(recipe, Recipe) else load_recipe(Path(recipe))
    try:
        return asyncio.run(run_build(made, Path(run_dir), limit=limit))
    finally:
        close_workers()


def __getattr__(name: str) -> object:
    """`plantain.Benchmark`, imported when it is asked for: it brings image libraries with it."""
    if name == "Benchmark":
        from plantain.bench.benchmark.benchmark import Benchmark

        return Benchmark
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
