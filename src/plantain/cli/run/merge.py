"""`plantain run merge`: the runs of all shards become one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application
from plantain.pipeline.merge import Merged, merge
from plantain.records.counts import counted
from plantain.release.register import copy_register

app = application()


@app.command(name="merge", epilog="Example: plantain run merge runs/part-* --run runs/all")
def merge_runs(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="the runs of all shards")],
    run: Annotated[
        Path, typer.Option("--run", metavar="DIR", help="new folder for the run of the whole plan")
    ],
    accept_model_change: Annotated[
        bool, typer.Option("--accept-model-change", help="join shards that other served models answered")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print what was made as JSON")] = False,
) -> None:
    """Join the runs of `plantain build --shard` into one and verify it. The shards are not changed."""
    merged = merge(runs, run, accept_model_change=accept_model_change)
    for part in runs:
        copy_register(part, run)
    if as_json:
        print(orjson.dumps({"run": str(run), **asdict(merged)}, option=orjson.OPT_INDENT_2).decode())
    else:
        print(_in_words(run, merged))


def _in_words(run: Path, merged: Merged) -> str:
    states = ", ".join(f"{n:,} {state}" for state, n in merged.tasks.items() if n)
    line = (
        f"{run}: {counted(sum(merged.tasks.values()), 'task')} of {counted(merged.shards, 'shard')} ({states}); "
        f"{counted(merged.blobs, 'image')} "
        f"({merged.linked:,} linked, not copied), all of them verified; ${merged.spent_usd:,.2f} spent"
    )
    pending = merged.tasks.get("pending", 0)
    return line + (f"\ncontinue the pending tasks with: plantain build RECIPE --run {run}" if pending else "")
