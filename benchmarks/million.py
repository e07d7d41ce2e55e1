"""A million tasks: what a call costs at the beginning, half-way and near the end, and what the commands then need.

Models are simulated (20 ms in the mean, 3 % broken calls, answers as long as hosted ones, pictures of 29 kB); all else
is real: catalogue, plan, loop, consent, admission, journal with synced commits. Three journals of one plan are
filled through the journal's own bulk writer to 0, 500,000 and 985,000 tasks done; windows of 5,000 tasks run in turn on
each, three times, every one in a process of its own. The last journal is then done, and read by every command.

Targets: processor per call and memory within 10 % over the windows (medians); going on at most 3 s and 300 MB; `report`
at most 60 s and 1 GB; `merge` makes one run of all tasks; every command at most 11 times the time of a run of a tenth,
which --tenth names.

Run: python benchmarks/million.py --scratch TENTH --tasks 100000
     python benchmarks/million.py --scratch FOLDER --tenth TENTH
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from plantain.pipeline.shards import Shard
from simulated.million import Simulated, counts_of, fill, make_catalogue, pictures, recipe_for
from simulated.releases import timed

PARTS = ("fill", "windows", "commands", "shards")
SHARDS = 4
REPEATS = 3
PICTURES = 2_000
LINEAR = 11.0
"""Times the time of a tenth of the tasks that a command may take."""

WITHIN, RESUME_S, RESUME_MB, REPORT_S, REPORT_MB = 1.10, 3.0, 300.0, 60.0, 1000.0


def window(run: Path, catalogue: Path, folder: Path, tasks: int) -> dict[str, float]:
    """Carries so many tasks; processor and calls count from the first call on."""
    from plantain.pipeline.method import Method
    from plantain.pipeline.run import run_build
    from plantain.rubrics import MED_BANANA

    began = time.time()
    model = Simulated([], 0.02 if tasks > 1 else 0.0)
    first: dict[str, float] = {}
    write = model.write

    async def noted(request: object) -> object:
        if not first:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            first.update(seconds=time.time() - began, cpu=time.process_time(), peak=peak)
            if tasks == 1:  # how soon a run goes on
                print(
                    json.dumps({"first_s": time.time() - float(os.environ["BEGUN"]), "first_mb": peak}),
                    flush=True,
                )
                os._exit(0)
        return await write(request)  # type: ignore[arg-type]

    model.write = noted  # type: ignore[method-assign,assignment]
    if tasks > 1:
        model.pictures = pictures(folder, PICTURES)
    method = Method(model, model, (model,), MED_BANANA, "all-pass", 0.7, 2, 0)
    begun = time.monotonic()
    summary = asyncio.run(run_build(recipe_for(catalogue), run, method=method, limit=tasks))
    cpu = time.process_time() - first["cpu"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert summary.stopped in (None, "limit"), summary.stopped
    return {
        "ms per call": 1000 * cpu / summary.made,
        "calls": summary.made,
        "calls per s": summary.made / (time.monotonic() - begun - first["seconds"]),
        "peak MB": peak,
        "first call after s": first["seconds"],
        "at first call MB": first["peak"],
    }


def step(*words: object) -> dict[str, float]:
    """One step in a process of its own; what it printed."""
    command = [sys.executable, __file__, "--step", *map(str, words)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "BEGUN": str(time.time())}
    )
    return dict(json.loads(done.stdout.splitlines()[-1])) if done.stdout.strip() else {}


def do_step(name: str, words: list[str]) -> None:
    scratch = Path(words[0])
    if name == "catalogue":
        make_catalogue(scratch / "catalogue", int(words[1]))
        pictures(scratch / "pictures", PICTURES)
    elif name == "fill":
        done, write = int(words[2]), words[3] == "1"
        asyncio.run(fill(scratch / words[1], scratch / "catalogue", done, write=write))
    elif name == "shard":
        shard = Shard.parse(words[1])
        run = scratch / f"shard-{shard.number}"
        asyncio.run(fill(run, scratch / "catalogue", None, write=True, shard=shard))
    elif name == "window":
        told = window(scratch / words[1], scratch / "catalogue", scratch / "pictures", int(words[2]))
        print(json.dumps(told))


def commands(scratch: Path, run: Path) -> list[tuple[str, float, float]]:
    """Seconds and peak memory of the commands that read a whole run."""
    out = scratch / "out"
    told = []
    for name, words in (
        ("status", ("status", str(run), "--json")),
        ("report", ("report", str(run))),
        (
            "export parquet",
            ("export", str(run), "--to", str(out), "--layout", "parquet", "--licence", "CC-BY-4.0"),
        ),
    ):
        seconds, peak = timed([sys.executable, "-m", "plantain", *words])
        told.append((name, seconds, peak))
        print(f"  {name:<16} {seconds:7.1f} s  {peak:6.0f} MB", flush=True)
    shutil.rmtree(out, ignore_errors=True)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--window", type=int, default=5_000)
    parser.add_argument("--only", choices=PARTS, nargs="*")
    parser.add_argument("--tenth", type=Path, help="scratch folder of a run of a tenth of the tasks")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        do_step(args.step[0], args.step[1:])
        return 0
    scratch: Path = args.scratch.absolute()
    scratch.mkdir(parents=True, exist_ok=True)
    only = args.only or PARTS
    filled = {"begun": 0, "half": args.tasks // 2, "last": args.tasks - REPEATS * args.window}
    good = True
    if "fill" in only:
        begun = time.time()
        step("catalogue", scratch, args.tasks)
        print(f"catalogue of {args.tasks:,} tasks in {time.time() - begun:.0f} s", flush=True)
        for name, done in filled.items():
            begun = time.time()
            step("fill", scratch, name, done, int(name == "last"))
            print(
                f"{name}: {done:,} done in {time.time() - begun:.0f} s: {counts_of(scratch / name)}",
                flush=True,
            )
    if "windows" in only:
        good &= windows(scratch, filled, args.window)
    if "commands" in only:
        print(f"last: {counts_of(scratch / 'last')}")  # the only one whose pictures lie there
        told = {what: (seconds, peak) for what, seconds, peak in commands(scratch, scratch / "last")}
        good &= told["report"][0] <= REPORT_S and told["report"][1] <= REPORT_MB
        if args.tenth:
            for what, seconds, peak in commands(args.tenth, args.tenth / "last"):
                more, memory = told[what][0] / seconds, told[what][1] / peak
                print(f"  {what:<16} {more:.1f} times the time and {memory:.2f} times the memory of a tenth")
                good &= more <= LINEAR
    if "shards" in only:
        good &= merged(scratch, args.tasks)
    print("targets met" if good else "a target was MISSED")
    return 0 if good else 1


def merged(scratch: Path, tasks: int) -> bool:
    """Makes the plan's shards, each done, and joins them. Whether the run holds every task once."""
    for number in range(1, SHARDS + 1):
        begun = time.time()
        step("shard", scratch, f"{number}/{SHARDS}")
        held = counts_of(scratch / f"shard-{number}")
        print(f"shard {number}/{SHARDS}: {held['task']:,} tasks in {time.time() - begun:.0f} s", flush=True)
    runs = [str(scratch / f"shard-{number}") for number in range(1, SHARDS + 1)]
    whole = scratch / "merged"
    shutil.rmtree(whole, ignore_errors=True)
    seconds, peak = timed([sys.executable, "-m", "plantain", "run", "merge", *runs, "--run", str(whole)])
    held, parts = counts_of(whole), [counts_of(Path(run)) for run in runs]
    print(f"  {'merge':<16} {seconds:7.1f} s  {peak:6.0f} MB: {held}", flush=True)
    return held["task"] >= tasks and all(
        held[table] == sum(part[table] for part in parts) for table in ("task", "call", "attempt", "verdict")
    )


def windows(scratch: Path, filled: dict[str, int], size: int) -> bool:
    """Runs the windows in turn and says how they compare."""
    step("window", scratch, "begun", 1)  # enumerates the plan once more and remembers it
    for name in ("half", "last"):
        step("window", scratch, name, 1)
    told: dict[str, list[dict[str, float]]] = {name: [] for name in filled}
    for _ in range(REPEATS):
        for name in filled:
            again = step("window", scratch, name, 1)
            told[name].append(step("window", scratch, name, size) | again)
            print(f"  {name}: " + ", ".join(f"{k} {v:.3g}" for k, v in told[name][-1].items()), flush=True)
    good = True
    least: dict[str, float] = {}
    for name, rows in told.items():
        middle = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        least = least or middle
        cost, memory = middle["ms per call"] / least["ms per call"], middle["peak MB"] / least["peak MB"]
        good &= cost <= WITHIN and memory <= WITHIN
        good &= middle["first_s"] <= RESUME_S and middle["first_mb"] <= RESUME_MB
        print(
            f"{filled[name]:>9,} done: {middle['ms per call']:.2f} ms a call ({cost:.2f}x), {middle['peak MB']:.0f} MB "
            f"({memory:.2f}x), {middle['calls per s']:.0f} calls/s; goes on after {middle['first_s']:.2f} s with "
            f"{middle['first_mb']:.0f} MB",
            flush=True,
        )
    return good


if __name__ == "__main__":
    sys.exit(main())
