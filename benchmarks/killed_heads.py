"""A build on two Ray nodes of this machine whose head is killed again and again, held to one that was not.

Workers leave their pictures in a shared folder (--blobs of `plantain build`). Shown after each kill: no worker is left,
and nothing that was recorded is lost; at the end: no task is lost or stopped, what came too late for its head is gone,
and every picture is the one of an undisturbed run.

Run: python benchmarks/killed_heads.py --scratch FOLDER [--kills 200]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from lost_workers import PICTURES, build, count, lines, workers
from simulated.million import make_catalogue, pictures

TASKS_A_KILL = 8
GONE_WITHIN_S = 60.0
SEEN = "attempt WHERE edited IS NOT NULL"


def pictures_of(run: Path) -> list[tuple[str, ...]]:
    """Every attempt's picture."""
    with closing(sqlite3.connect(run / "journal.sqlite")) as database:
        return list(database.execute(f"SELECT task, round, edited, raw FROM {SEEN} ORDER BY task, round"))


def killed_once(command: list[str], log: Path, dice: random.Random) -> bool:
    """One head, killed soon after its workers began to answer. Whether it ended by itself before."""
    before, wanted = lines(log), dice.randint(1, 6)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and lines(log) < before + wanted:
        time.sleep(0.01)
    time.sleep(dice.random() * 0.05)
    ended = process.poll() is not None
    process.kill()
    process.wait()
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    args = parser.parse_args()
    scratch: Path = args.scratch.absolute()
    if args.address:
        return build(scratch, "killed", args.address, TASKS_A_KILL * args.kills)
    from ray.cluster_utils import Cluster

    from plantain.journal.disk.blobs import keep_blobs_in

    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "shared").mkdir(parents=True)
    make_catalogue(scratch / "catalogue", TASKS_A_KILL * args.kills)
    pictures(scratch / "pictures", PICTURES)
    keep_blobs_in(scratch / "killed", scratch / "shared")
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=os.pathsep.join(filter(None, paths)))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    command = [sys.executable, __file__, "--scratch", str(scratch), "--kills", str(args.kills)]
    command += ["--address", cluster.address]
    dice, run = random.Random(args.seed), scratch / "killed"
    kills = left = lost = recorded = 0
    try:
        for _ in range(args.kills):
            if killed_once(command, scratch / "killed.log", dice):
                break
            kills += 1
            until = time.monotonic() + GONE_WITHIN_S
            while workers() and time.monotonic() < until:
                time.sleep(0.05)
            left += len(workers())
            there = count(run, "call WHERE final = 1") if (run / "journal.sqlite").exists() else 0
            lost += max(0, recorded - there)
            recorded = there
            if kills % 20 == 0:
                print(
                    f"{kills} kills: {recorded:,} calls recorded, {left} workers left, {lost} lost",
                    flush=True,
                )
        ended = build(scratch, "killed", cluster.address, TASKS_A_KILL * args.kills)
    finally:
        cluster.shutdown()
    ended |= build(scratch, "whole", "", TASKS_A_KILL * args.kills)
    served, asked = lines(scratch / "killed.log"), count(run, "call WHERE step = 'edit'")
    late = len(list((scratch / "shared").glob("*/arriving/*")))
    same = pictures_of(run) == pictures_of(scratch / "whole")
    unfinished = count(run, "task WHERE state IN ('pending', 'stopped')")
    print(
        f"{kills} kills: {left} workers left behind, {lost} recorded calls lost, {unfinished} tasks unfinished, {late} "
        f"late pictures left; edits asked {asked:,}, done {served:,}; pictures {'equal' if same else 'DIFFER'}"
    )
    good = not (ended or left or lost or late or unfinished) and same and served <= asked
    print("targets met" if good else "a target was MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
