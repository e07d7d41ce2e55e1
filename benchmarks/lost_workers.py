"""A build on two Ray nodes of this machine whose workers and nodes are killed at random, held to one that was not.

Every worker notes what it was asked before it answers, in one write. Shown: how often it was done is what the journal
records plus what it knows to be lost; no task is lost or stopped; the release is the same, byte for byte. Calls have
prices: what the workers' notes come to, as if each were billed, is no more than what the journal has spent and holds.
The build begins with a budget for half of its tasks, which stops it, and goes on with one for all. All the while the
journal is looked at from outside: what was spent, held and set aside is never more than the budget of that moment.

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

WRITE_USD, JUDGE_USD = 1800 * 2.0 / 1e6 + 700 * 12.0 / 1e6, 3100 * 2.0 / 1e6 + 900 * 12.0 / 1e6

SCARCE_USD, AMPLE_USD = 0.11, 1.0
"""Of budget for each task, of which one comes to 0.22 in the mean: what stops the build half-way, what lets it end."""

ROOM_USD = 50.0
"""Of the ample budget, for what is set aside while calls are in flight."""

OUT_OF_MONEY = 3
"""Exit code of a build that its budget stopped."""


def priced(scratch: Path, tasks: int, *, scarce: bool = False) -> Recipe:
    """The build's recipe, with prices and a budget."""
    from plantain.pipeline.recipe import Recipe

    told = recipe_for(scratch / "catalogue").model_dump()
    told["limits"]["budget_usd"] = SCARCE_USD * tasks if scarce else AMPLE_USD * tasks + ROOM_USD
    told["providers"]["simulated"]["prices"] = {"all": PRICES}
    return Recipe.model_validate(told)


def build(scratch: Path, name: str, address: str, tasks: int, *, scarce: bool = False) -> int:
    """The build, on the cluster at an address; on this machine's processes for "" ."""
    from plantain.pipeline.method import Method
    from plantain.pipeline.recipe import Recipe
    from plantain.pipeline.run import run_build
    from plantain.rubrics import MED_BANANA

    recipe = priced(scratch, tasks, scarce=scarce)
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
    if summary.stopped is None:
        return 0
    return OUT_OF_MONEY if summary.stopped.startswith("limits.budget_usd") else 1


class BudgetWatch:
    """Looks from outside at what a run has spent, holds for lost calls and has set aside for those in flight."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self.looks = 0
        self.most: dict[str, float] = {}

    def look(self, recipe: Recipe) -> None:
        """Keeps the largest part of the budget, by `status`'s own reckoning and by the journal's rows alone."""
        from plantain.journal import JournalReader
        from plantain.runs.money.spending import budget_of

        if not (self._run / "journal.sqlite").exists():
            return
        assert recipe.limits.budget_usd is not None
        with JournalReader.open(self._run) as reader:
            told = budget_of(recipe.limits, reader).committed_usd
            (rows,) = reader.connection.execute(ROWS_USD, BILLED).fetchone()
        for name, usd in (("status", told), ("rows", rows)):
            self.most[name] = max(usd / recipe.limits.budget_usd, self.most.get(name, 0.0))
        self.looks += 1

    @property
    def holds(self) -> bool:
        """Whether the budget was nearly used up, and never exceeded."""
        return self.looks > 0 and all(0.9 < most <= 1.0 + 1e-9 for most in self.most.values())


BILLED = {"edit": EDIT_USD, "write": WRITE_USD, "judge": JUDGE_USD}
ROWS_USD = """
SELECT TOTAL(CASE WHEN state = 'started' THEN reserved_usd WHEN cost_usd IS NULL AND reserved_usd IS NOT NULL
  THEN CASE step WHEN 'edit' THEN :edit WHEN 'write' THEN :write ELSE :judge END ELSE cost_usd END) FROM call
"""
"""Calls in flight at the most that they can cost, lost ones at what such a call costs, others at what they did cost."""


def lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def workers() -> list[int]:
    found = psutil.process_iter(["cmdline"])
    return [one.pid for one in found if "RemoteWorker" in " ".join(one.info["cmdline"] or ())]


def killed(
    scratch: Path, tasks: int, actors: int, nodes: int, dice: random.Random, watch: BudgetWatch
) -> bool:
    """Builds on a cluster and kills so many workers and nodes, spread over the build.

    Returns:
        Whether the build was stopped by its first budget alone, and was done with its second.
    """
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
    scarce, ample = priced(scratch, tasks, scarce=True), priced(scratch, tasks)
    recipe, first, process = scarce, None, subprocess.Popen([*command, "--scarce"])
    whom = ["worker"] * actors + ["node"] * nodes
    dice.shuffle(whom)
    every = tasks / (len(whom) + 1)
    done: list[str] = []
    try:
        while True:
            if (ended := process.poll()) is not None:
                if first is not None or ended != OUT_OF_MONEY:
                    break
                first, recipe, process = ended, ample, subprocess.Popen(command)
            watch.look(recipe)
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
    return first == OUT_OF_MONEY and process.returncode == 0


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
        edits = [costs for (_, step), costs in costs_of(reader).items() if step is Step.EDIT]
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
    parser.add_argument("--scarce", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    scratch: Path = args.scratch.absolute()
    if args.step:
        return build(scratch, args.step[0], args.step[1], args.tasks, scarce=args.scarce)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    make_catalogue(scratch / "catalogue", args.tasks)
    pictures(scratch / "pictures", PICTURES)
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=str(Path(__file__).parent))
    run = scratch / "killed"
    watch = BudgetWatch(run)
    ended = killed(scratch, args.tasks, args.workers, args.nodes, random.Random(args.seed), watch)
    ended &= build(scratch, "whole", "", args.tasks) == 0
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
    parts = ", ".join(f"{most:.4f} of it by {name}" for name, most in watch.most.items())
    print(f"looked at the budget {watch.looks:,} times: never more than {parts}")
    paid = money(run, priced(scratch, args.tasks), served, lost)
    good = (
        paid
        and ended
        and watch.holds
        and edits == recorded + lost
        and recorded <= served <= edits
        and not unfinished
        and same
    )
    print("targets met" if good else "a target was MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
