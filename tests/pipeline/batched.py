"""Runs in batch jobs: their recipe, the run itself, and what must hold of it at the end."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

from fakes.batch_jobs import FakeJobs
from pipeline.quick import at_url, quick_recipe
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.runs.progress import RunSummary

MODELS = {
    "gemini": {"writer": "gemini/w", "editor": "gemini/e", "judge": ["gemini/j"]},
    "openai": {"writer": "openai/w", "editor": "openai/e", "judge": ["openai/j"]},
}
BUDGET = {"budget_usd": 50.0}
PRICE = {"input_per_m": 1.0, "output_per_m": 4.0}


def recipe(
    catalogue: Path,
    url: str,
    form: str,
    transport: str = "batch",
    *,
    rounds: int = 1,
    limits: dict[str, float] | None = None,
    **batch: object,
) -> Recipe:
    model = MODELS[form]
    names = {name.partition("/")[2] for name in (model["writer"], model["editor"], *model["judge"])}
    section: dict[str, Any] = {
        "transport": transport,
        # nine tasks fill a job, so that none waits for silence
        "batch": {"requests": 9, "images": 9, "quiet_s": 0.1, "poll_s": 0.03, **batch},
        "prices": dict.fromkeys(names, PRICE),
    }
    return quick_recipe(
        catalogue,
        limits={"concurrency": 4, **(limits or {})},
        parts={"seed": 3, "models": model, "providers": at_url(url, "gemini", "openai", **section)},
        max_rounds=rounds,
    )


def run(made: Recipe, folder: Path) -> RunSummary:
    return asyncio.run(run_build(made, folder))


def rows(folder: Path, sql: str) -> list[Any]:
    with sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def check_whole(folder: Path, summary: RunSummary, jobs: FakeJobs) -> None:
    """Every task closed, no call open, no job made twice, nothing left on disk or with the provider."""
    assert summary.stopped is None, summary
    assert summary.left == ""
    assert rows(folder, "SELECT count(*) FROM task WHERE state = 'pending'") == [(0,)]
    assert rows(folder, "SELECT count(*) FROM call WHERE state = 'started'") == [(0,)]
    assert set(jobs.keys.values()) == {1}
    assert rows(folder, "SELECT DISTINCT state FROM batch_job") == [("closed",)]
    assert list((folder / "batch").iterdir()) == []
    assert {name for name in jobs.files if not name.endswith(("-out", "-err"))} == set(), (
        "requests are left there"
    )
