"""A build on two Ray nodes of this machine, one of which is killed: nothing is lost, and nothing done twice unknown."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quick import CallLog, NoText, quick_catalogue, quick_method, quick_recipe

from fakes.remote_models import HERE, RemoteEditor
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Step, TaskState
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.runs.engine import told_state
from plantain.runs.summary import RunSummary

pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")
pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without a processor of its own, and two workers' nodes: three raylets."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("PYTHONPATH", str(TESTS))
        from ray.cluster_utils import Cluster

        seen_dead = {
            "health_check_initial_delay_ms": 0,
            "health_check_period_ms": 500,
            "health_check_failure_threshold": 6,
        }
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": seen_dead}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            yield cluster
        finally:
            cluster.shutdown()


def recipe_on(cluster: Any, catalogue: Path, workers: int = 2) -> Recipe:
    recipe = quick_recipe(catalogue)
    engine = {"kind": "ray", "address": cluster.address, "workers": workers}
    return Recipe.model_validate({**recipe.model_dump(), "engine": engine})


def built(
    recipe: Recipe, run: Path, log: Path, seconds: float = 0.0, on_commit: Callable[[int], None] | None = None
) -> RunSummary:
    method = replace(quick_method(CallLog(None)), editor=RemoteEditor(log, seconds))
    try:
        return asyncio.run(run_build(recipe, run, method=method, text_reader=NoText(), on_commit=on_commit))
    finally:
        HERE.close()


def exported(run: Path, to: Path) -> dict[str, bytes]:
    export_run(run, to, ExportOptions(("med-banana", "parquet")))
    return {str(path.relative_to(to)): path.read_bytes() for path in sorted(to.rglob("*")) if path.is_file()}


def test_a_killed_node_costs_its_calls_and_no_result(cluster: Any, tmp_path: Path) -> None:
    first, second = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
    assert first is not None
    catalogue = quick_catalogue(tmp_path / "catalogue", 3)
    log, killed = tmp_path / "log", []

    def kill(commits: int) -> None:
        edits = len(log.read_text().splitlines()) if log.exists() else 0
        if edits >= 4 and not killed:
            killed.append(edits)
            cluster.remove_node(second, allow_graceful=False)

    there, here = tmp_path / "there", tmp_path / "here"
    summary = built(recipe_on(cluster, catalogue), there, log, 0.1, kill)
    alone = built(quick_recipe(catalogue), here, tmp_path / "log of one")
    assert killed and summary.stopped is None and alone.stopped is None

    with JournalReader.open(there) as reader:
        states, run_id = reader.counts(), reader.header.run_id
        rows = [
            row for task in reader.tasks() for row in reader.calls(task.task.id) if row.key.step is Step.EDIT
        ]
        engine = told_state(reader)
    with sqlite3.connect(here / "journal.sqlite") as database:  # what a run is called is drawn
        database.execute("UPDATE meta SET value = ? WHERE key = 'run_id'", (run_id,))
    assert states.get(TaskState.PENDING, 0) == states.get(TaskState.STOPPED, 0) == 0
    lost = [row for row in rows if row.outcome is not None and row.outcome.reason.startswith("worker lost")]
    answered = [row for row in rows if row.final]
    done = len(log.read_text().splitlines())
    assert len(lost) >= 1 and len(rows) == len(answered) + len(lost)
    assert len(answered) <= done <= len(rows)  # a lost worker may not have begun
    assert max(Counter(line.split()[0] for line in log.read_text().splitlines()).values()) <= 1 + len(lost)
    assert engine is not None and engine["lost"] >= 1 and engine["ended"]
    assert exported(there, tmp_path / "release") == exported(here, tmp_path / "release of one")
