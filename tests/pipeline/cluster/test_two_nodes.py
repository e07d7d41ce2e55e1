"""Builds on Ray nodes of this machine whose nodes and heads are killed: nothing is lost, nothing done twice unknown."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from fakes.remote_models import HERE, RemoteEditor
from pipeline.quick import CallLog, NoText, quick_catalogue, quick_method, quick_recipe
from plantain.cli.run.consent import consent
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Step, TaskState
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.runs.engine import stored_state
from plantain.runs.summary import RunSummary

pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")
pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[2]


@contextmanager
def ray_cluster(processors: int) -> Iterator[Any]:
    """A head with so many processors of its own, which sees soon when another node is dead."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("PYTHONPATH", str(TESTS))
        from ray.cluster_utils import Cluster

        seen_dead = {
            "health_check_initial_delay_ms": 0,
            "health_check_period_ms": 500,
            "health_check_failure_threshold": 6,
        }
        head = {"num_cpus": processors, "include_dashboard": False, "_system_config": seen_dead}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            yield cluster
        finally:
            cluster.shutdown()


@pytest.fixture
def cluster() -> Iterator[Any]:
    with ray_cluster(1) as cluster:
        yield cluster


@pytest.fixture
def three_raylets() -> Iterator[Any]:
    """A head that does no work, and two nodes that do."""
    with ray_cluster(0) as cluster:
        cluster.add_node(num_cpus=1)
        cluster.add_node(num_cpus=1)
        yield cluster


def node_of(cluster: Any, worker: int) -> Any:
    """The node whose raylet began a worker's process."""
    raylet = psutil.Process(worker).ppid()
    (node,) = (node for node in cluster.worker_nodes if node.all_processes["raylet"][0].process.pid == raylet)
    return node


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
    export_run(run, to, ExportOptions(("med-banana", "parquet"), licences=("CC-BY-4.0",)))
    return {str(path.relative_to(to)): path.read_bytes() for path in sorted(to.rglob("*")) if path.is_file()}


def test_a_killed_node_costs_its_calls_and_no_result(
    three_raylets: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = three_raylets
    catalogue = quick_catalogue(tmp_path / "catalogue", 3)
    log, killed = tmp_path / "log", []

    def kill(commits: int) -> None:
        asked = log.read_text().splitlines() if log.exists() else []
        if len(asked) >= 4 and not killed:
            killed.append(len(asked))
            cluster.remove_node(node_of(cluster, int(asked[-1].split()[1])), allow_graceful=False)

    there, here = tmp_path / "there", tmp_path / "here"
    summary = built(recipe_on(cluster, catalogue), there, log, 0.1, kill)
    alone = built(quick_recipe(catalogue), here, tmp_path / "log of one")
    assert killed and summary.stopped is None and alone.stopped is None

    with JournalReader.open(there) as reader:
        states, run_id = reader.counts(), reader.header.run_id
        rows = [
            row for task in reader.tasks() for row in reader.calls(task.task.id) if row.key.step is Step.EDIT
        ]
        engine = stored_state(reader)
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
    consent(there)
    assert f"went to workers of the Ray cluster at {cluster.address}" in capsys.readouterr().out
    assert exported(there, tmp_path / "release") == exported(here, tmp_path / "release of one")


def start(cluster: Any, folder: Path, seconds: float = 0.5, *more: str) -> subprocess.Popen[str]:
    """A build on the cluster in a process of its own; with a further word the mother of such processes."""
    words = [
        cluster.address,
        str(folder / "catalogue"),
        str(folder / "run"),
        str(folder / "log"),
        str(seconds),
        *more,
    ]
    driver = [sys.executable, str(Path(__file__).with_name("ray_driver.py")), *words]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    return subprocess.Popen(
        driver,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def edits(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def enough_edits(folder: Path, wanted: int) -> bool:
    return len(edits(folder)) >= wanted


def wait_for(there: Callable[[], bool], seconds: float = 300.0) -> None:
    until = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


def workers_alive(cluster: Any) -> list[int]:
    """Of this cluster: other tests have theirs on the same machine."""
    raylet = psutil.Process(cluster.head_node.all_processes["raylet"][0].process.pid)
    return [child.pid for child in raylet.children() if "RemoteWorker" in _words(child)]


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # ended meanwhile
        return ""


def answered_in(run: Path) -> int:
    with JournalReader.open(run) as reader:
        return sum(row.final for task in reader.tasks() for row in reader.calls(task.task.id))


def test_killed_heads_lose_nothing_and_leave_no_worker(cluster: Any, tmp_path: Path) -> None:
    kills, dice = 8, random.Random(1)
    quick_catalogue(tmp_path / "catalogue", 4)
    run, recorded = tmp_path / "run", 0
    mother = start(cluster, tmp_path, 0.02, "one after another")
    assert mother.stdin and mother.stdout
    for _ in range(kills):
        wanted = len(edits(tmp_path)) + dice.randint(1, 3)
        print(file=mother.stdin, flush=True)
        build = psutil.Process(int(mother.stdout.readline()))
        wait_for(partial(enough_edits, tmp_path, wanted))
        time.sleep(dice.random() * 0.05)
        assert build.status() != psutil.STATUS_ZOMBIE, "it ended by itself"
        build.kill()
        wait_for(lambda: not workers_alive(cluster))
        there = answered_in(run)
        assert there >= recorded, "a kill lost what was recorded"
        recorded = there
    mother.communicate(timeout=60)

    summary = built(recipe_on(cluster, tmp_path / "catalogue", 1), run, tmp_path / "log")
    alone = built(quick_recipe(tmp_path / "catalogue"), tmp_path / "here", tmp_path / "log of one")
    assert summary.stopped is None and alone.stopped is None
    with JournalReader.open(run) as reader, JournalReader.open(tmp_path / "here") as other:
        assert reader.counts() == other.counts()
        assert [a.edited for a in reader.all_attempts()] == [a.edited for a in other.all_attempts()]
        rows = [row for task in reader.tasks() for row in reader.calls(task.task.id)]
    asked = [row for row in rows if row.key.step is Step.EDIT]
    assert len({row.key for row in asked if row.final}) == sum(row.final for row in asked)
    assert len(edits(tmp_path)) <= len(asked)
