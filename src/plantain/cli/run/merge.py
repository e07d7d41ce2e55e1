"""`plantain run merge`: join the runs of all shards."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, ModelChange
from plantain.cli.terminal.tables import print_json
from plantain.pipeline.merge import Merged, merge
from plantain.records.messages import counted, next_line
from plantain.release.register import copy_register


def merge_runs(
    runs: list[Path] = typer.Argument(..., metavar="RUN...", help="Runs of all shards."),
    run: Path = typer.Option(..., metavar="DIR", help="New folder for the joined run."),
    accept_model_change: ModelChange = False,
    as_json: AsJson = False,
) -> None:
    """Join the runs of `plantain build --shard` into one and verify it. The shards are not changed.

    Example: plantain run merge runs/part-* --run runs/all
    """
    merged = merge(runs, run, accept_model_change=accept_model_change)
    for part in runs:
        copy_register(part, run)
    if as_json:
        print_json({"run": str(run), **asdict(merged)})
    else:
        print(_in_words(run, merged))


def _in_words(run: Path, merged: Merged) -> str:
    states = ", ".join(f"{n:,} {state}" for state, n in merged.tasks.items() if n)
    line = (
        f"{run}: {counted(sum(merged.tasks.values()), 'task')} of {counted(merged.shards, 'shard')} ({states}); "
        f"{counted(merged.blobs, 'image')}, all of them verified; ${merged.spent_usd:,.2f} spent"
    )
    if merged.tasks.get("pending", 0):
        return f"{line}\nbuild its recipe with --run {shlex.quote(str(run))} to continue the pending tasks"
    return f"{line}\n{next_line('report', run)}"
