"""`plantain bench demo`: a benchmark of real images, editors of known quality, and their leaderboard."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path

import typer

from plantain.bench.demo import Demo, bench_demo
from plantain.bench.leaderboard.export import table_json
from plantain.cli.bench.table import leaderboard
from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.progress import BuildProgress, StageProgress, print_stop
from plantain.cli.terminal.tables import print_json, print_table
from plantain.journal import JournalReader
from plantain.journal.questions.status import status_summary
from plantain.records.messages import next_line

NOTICE = """\
Real images from four sources, findings rendered by plantain, and an instrument judge (not an expert). Each editor
planted/… damages the ground truth in one stated way, so its rank is known and the benchmark must recover it.
Research only; every edited image is synthetic."""


def demo(
    context: typer.Context,
    folder: Path = typer.Argument(Path("bench-demo"), metavar="[DIR]", help="Folder; created or resumed."),
    as_json: AsJson = False,
) -> int:
    """Run a whole benchmark offline and make its leaderboard. Rerun the same command to resume.

    Example: plantain bench demo bench-demo
    """
    if not as_json:
        print(NOTICE, file=sys.stderr)
    generating = BuildProgress(quiet=as_json, what="generate")
    with generating, StageProgress(quiet=as_json) as scoring:
        made = asyncio.run(bench_demo(folder, generating=generating, scoring=scoring))
    if as_json:
        print_json(_as_dict(made))
    else:
        print_table(leaderboard(made.table))
        for recovery in made.recoveries:
            print(recovery.line)
        print(f"leaderboard: {made.report}\n{next_line('view', made.run)}")
    return 0 if made.stopped is None else print_stop(context, made.stopped)


def _as_dict(made: Demo) -> dict[str, object]:
    with JournalReader.open(made.run) as reader:
        status = status_summary(reader)
    return {
        **status,
        "run": str(made.run),
        "report": str(made.report),
        "samples": len(made.table.scores.samples),
        "rows": table_json(made.table.cells.values(), made.table),
        "recovered": [asdict(recovery) for recovery in made.recoveries],
        "stopped": made.stopped,
    }
