"""A build on two Ray nodes of this machine whose workers and nodes are killed at random, held to one that was not.

Every worker notes what it was asked before it answers, in one write. Shown: how often it was done is what the journal
records plus what it knows to be lost; no task is lost or stopped; the release is the same, byte for byte. Calls have
prices: what the workers' notes come to, as if each were billed, is no more than what the journal has spent and holds.

Run: python benchmarks/lost_workers.py --scratch FOLDER [--tasks 2000] [--workers 50] [--nodes 10]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from simulated.million import make_catalogue, pictures, recipe_for
from simulated.workers import HERE, OnWorkers

if TYPE_CHECKING:
    from plantain.pipeline.recipe import Recipe

PICTURES = 200
ON_EACH = 2
"""Workers on each of the two nodes."""

PRICES = {"input_per_m": 2.0, "output_per_m": 12.0, "image_out_each": 0.134}
EDIT_USD = 1200 * 2.0 / 1e6 + 0.134
"""What one edit is billed at these prices: 1,200 tokens read, one picture."""

ROOM_USD = 50.0
"""Of the budget, for what is set aside while calls are in flight; one dollar more for each task."""


def priced(scratch: Path, tasks: int) -> Recipe:
    """The build's recipe, with prices and a budget."""
    from plantain.pipeline.recipe import Recipe

    told = recipe_for(scratch / "catalogue").model_dump()
    told["limits"]["budget_usd"] = ROOM_USD + tasks
    told["providers"]["simulated"]["prices"] = {"all": PRICES}
    return Recipe.model_validate(told)


def build(scratch: Path, name: str, address: str, tasks: int) -> int:
    """The build, on the cluster at an address; on this machine's processes for "" ."""
    from plantain.pipeline.recipe import Recipe
    from plantain.pipeline.rounds import Method
    from plantain.pipeline.run import run_build
    from plantain.rubrics import MED_BANANA

    recipe = priced(scratch, tasks)
    if address:
        engine = {"kind": "ray", "address": address, "workers": 2 * ON_EACH}
        recipe = Recipe.model_validate({**recipe.model_dump(), "engine": engine})
    model = OnWorkers(folder=scratch / "pictures", log=scratch / f"{name}.log", count=PICTURES)
    method = Method(model, model, (model,), MED_BANANA, "all-pass", 0.7, 2, 0)
    try:
        summary = asyncio.run(run_build(recipe, scratch / name, method=method))
    finally:
        HERE.close()
    print(f"{name}: {summary.made} calls, stopped: {summary.stopped}", flush=True)
    return 0 if summary.stopped is None else 1


def lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def workers() -> list[int]:
    found = psutil.process_iter(["cmdline"])
    return [one.pid for one in found if "RemoteWorker" in " ".join(one.info["cmdline"] or ())]


def killed(scratch: Path, tasks: int, actors: int, nodes: int, dice: random.Random) -> int:
    """Builds on a cluster and kills so many workers and nodes, spread over the build; the build's exit code."""
    from ray.cluster_utils import Cluster

    seen = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_failure_threshold": 10,
    }
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": seen}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    standing = [cluster.add_node(num_cpus=ON_EACH) for _ in range(2)]
    command = [sys.executable, __file__, "--scratch", str(scratch), "--tasks", str(tasks)]
    command += ["--step", "killed", cluster.address]
    process = subprocess.Popen(command)
    whom = ["worker"] * actors + ["node"] * nodes
    dice.shuffle(whom)
    every = tasks / (len(whom) + 1)
    done: list[str] = []
    try:
        while process.poll() is None:
            if len(done) < len(whom) and lines(scratch / "killed.log") >= every * (len(done) + 1):
                if whom[len(done)] == "node":
                    cluster.remove_node(standing.pop(dice.randrange(2)), allow_graceful=False)
                    standing.append(cluster.add_node(num_cpus=ON_EACH))
                elif there := workers():
                    os.kill(dice.choice(there), signal.SIGKILL)
                else:
                    continue
                done.append(whom[len(done)])
            time.sleep(0.1)
    finally:
        process.kill()
        cluster.shutdown()
    print(f"killed {done.count('worker')} workers and {done.count('node')} nodes", flush=True)
    return process.returncode


def same_release(scratch: Path) -> bool:
    """Whether both runs give one release, what a run is called apart."""
    from plantain.journal import JournalReader
    from plantain.release.export import export_run
    from plantain.release.plan import ExportOptions

    with JournalReader.open(scratch / "killed") as reader:
        run_id = reader.header.run_id
    with closing(sqlite3.connect(scratch / "whole" / "journal.sqlite")) as database, database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'run_id'", (run_id,))
    trees = []
    for name in ("killed", "whole"):
        out = scratch / f"release of {name}"
        export_run(scratch / name, out, ExportOptions(("med-banana", "parquet"), licences=("CC-BY-4.0",)))
        trees.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    return trees[0] == trees[1]


def count(run: Path, where: str) -> int:
    with closing(sqlite3.connect(run / "journal.sqlite")) as database:
        return int(database.execute(f"SELECT count(*) FROM {where}").fetchone()[0])


def money(run: Path, recipe: Recipe, served: int, lost: int) -> bool:
    """Prints what edits cost, what is held for lost ones, and what workers would have billed; whether it holds."""
    from plantain.journal import JournalReader
    from plantain.records import Step
    from plantain.runs.money.spending import budget_of, costs_of

    with JournalReader.open(run) as reader:
        budget = budget_of(recipe.limits, reader)
        edits = [costs for (_, step), costs in costs_of(recipe.limits, reader).items() if step is Step.EDIT]
        known = sum(
            row.cost_usd or 0.0
            for task in reader.tasks()
            for row in reader.calls(task.task.id)
            if row.key.step is Step.EDIT
        )
    held, billed = sum(costs.held_usd for costs in edits), served * EDIT_USD
    counted = sum(costs.lost for costs in edits) == lost
    print(
        f"spent {budget.spent_usd:.2f} USD ({known:.2f} on edits) + held {budget.held_usd:.2f} "
        f"({held / max(1, lost):.4f} for each of {lost} lost workers' calls) "
        f"of {recipe.limits.budget_usd:.0f}; workers' edits come to {billed:.2f}"
    )
    assert recipe.limits.budget_usd is not None
    return billed <= known + held + 1e-6 and budget.committed_usd <= recipe.limits.budget_usd and counted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    scratch: Path = args.scratch.absolute()
    if args.step:
        return build(scratch, args.step[0], args.step[1], args.tasks)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    make_catalogue(scratch / "catalogue", args.tasks)
    pictures(scratch / "pictures", PICTURES)
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=str(Path(__file__).parent))
    ended = killed(scratch, args.tasks, args.workers, args.nodes, random.Random(args.seed))
    ended |= build(scratch, "whole", "", args.tasks)
    run = scratch / "killed"
    edits, whole = (
        count(run, "call WHERE step = 'edit'"),
        count(scratch / "whole", "call WHERE step = 'edit'"),
    )
    lost = count(run, "call WHERE step = 'edit' AND reason LIKE 'worker lost%'")
    served, recorded = lines(scratch / "killed.log"), count(run, "call WHERE step = 'edit' AND final = 1")
    unfinished = count(run, "task WHERE state IN ('pending', 'stopped')")
    same = same_release(scratch)
    print(
        f"asked {edits:,} = answered {recorded:,} + known to be lost {lost} ({whole:,} where nobody was killed); "
        f"done by workers {served:,}, so {edits - served} lost were not begun; unfinished {unfinished}; releases "
        f"{'equal' if same else 'DIFFER'}"
    )
    paid = money(run, priced(scratch, args.tasks), served, lost)
    good = (
        paid
        and not ended
        and edits == recorded + lost
        and recorded <= served <= edits
        and not unfinished
        and same
    )
    print("targets met" if good else "a target was MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
