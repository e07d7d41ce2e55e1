"""Builds on a Ray node of this machine whose heads are killed: nothing is lost, and no worker is left behind."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from fakes.remote_models import HERE, RemoteEditor
from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from pipeline.wrecks import started
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Step
from plantain.runs.progress import RunSummary

pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")
pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[2]


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head with one processor."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("PYTHONPATH", str(TESTS))
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            yield cluster
        finally:
            cluster.shutdown()


def recipe_on(cluster: Any, catalogue: Path) -> Recipe:
    engine = {"kind": "ray", "address": cluster.address, "workers": 1}
    return quick_recipe(catalogue, parts={"engine": engine})


def built(recipe: Recipe, run: Path, log: Path) -> RunSummary:
    method = replace(quick_method(CallLog(None)), editor=RemoteEditor(log, 0.0))
    try:
        return asyncio.run(run_build(recipe, run, method=method))
    finally:
        HERE.close()


def edits(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def wait_for(there: Callable[[], bool]) -> None:
    until = time.monotonic() + 300.0
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
    kills, dice = 3, random.Random(1)
    quick_catalogue(tmp_path / "catalogue", 4)
    run, recorded = tmp_path / "run", 0
    places = [tmp_path / name for name in ("catalogue", "run", "log")]
    mother = started("cluster/ray_driver.py", cluster.address, *places)
    assert mother.stdin and mother.stdout
    for _ in range(kills):
        wanted = len(edits(tmp_path)) + dice.randint(1, 3)
        print(file=mother.stdin, flush=True)
        build = psutil.Process(int(mother.stdout.readline()))
        wait_for(lambda wanted=wanted: len(edits(tmp_path)) >= wanted)
        time.sleep(dice.random() * 0.05)
        assert build.status() != psutil.STATUS_ZOMBIE, "it ended by itself"
        build.kill()
        wait_for(lambda: not workers_alive(cluster))
        there = answered_in(run)
        assert there >= recorded, "a kill lost recorded answers"
        recorded = there
    mother.communicate(timeout=60)

    summary = built(recipe_on(cluster, tmp_path / "catalogue"), run, tmp_path / "log")
    alone = built(quick_recipe(tmp_path / "catalogue"), tmp_path / "here", tmp_path / "log of one")
    assert summary.stopped is None and alone.stopped is None
    with JournalReader.open(run) as reader, JournalReader.open(tmp_path / "here") as other:
        assert reader.counts() == other.counts()
        assert [a.edited for a in reader.all_attempts()] == [a.edited for a in other.all_attempts()]
        rows = [row for task in reader.tasks() for row in reader.calls(task.task.id)]
    asked = [row for row in rows if row.key.step is Step.EDIT]
    assert len({row.key for row in asked if row.final}) == sum(row.final for row in asked)
    assert len(edits(tmp_path)) <= len(asked)
