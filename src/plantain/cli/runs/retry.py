"""`plantain retry`: makes tasks pending again by how they ended; `plantain build` then goes on with them."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from plantain.bench.generate.runfile import BENCH
from plantain.cli.terminal.application import application
from plantain.cli.terminal.tables import print_table
from plantain.journal import Journal, JournalReader
from plantain.pipeline.retry import ENDINGS, RetryChoice, ended_tasks
from plantain.records import InputError, Step
from plantain.records.counts import counted
from plantain.runs.limits import costs_of

app = application()


@app.command()
def retry(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="a run's folder")],
    outcome: Annotated[
        str, typer.Option("--outcome", help=f"how the tasks ended, separated by commas: {', '.join(ENDINGS)}")
    ] = "",
    step: Annotated[str, typer.Option("--step", help="of which call: write, edit, judge; default all")] = "",
    finding: Annotated[
        list[str] | None, typer.Option("--finding", help="only this finding; may be repeated")
    ] = None,
    start: Annotated[
        str,
        typer.Option("--from", help="of stopped tasks: make their last round again from here: edit or write"),
    ] = "",
    settle_held: Annotated[
        float | None,
        typer.Option(
            "--settle-held",
            metavar="USD",
            min=0.0,
            help="Record what the calls whose answer is unknown cost together, by the provider's bill; 0 for nothing",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say which")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> None:
    """Goes on with the tasks that ended so, and with no others.

    A task that an outcome stopped stays in its generation: the call that failed is tried again, and nothing that was
    answered is asked for or paid for twice. A task that was closed (no round qualified, not applicable) opens a new
    generation; what it gave stays, marked superseded.

    --settle-held releases the money that is held for calls without an answer: it is spent as stated, evenly among them.

    Example: plantain retry runs/cxr-pilot --outcome refused,malformed --step edit --finding Pneumothorax
    """
    if settle_held is not None:
        _settle_held(run, settle_held, only_say=dry_run)
        if not outcome:
            return
    if start not in ("", Step.EDIT, Step.WRITE):
        raise InputError(
            f"--from {start!r}: choose edit or write; without it the call that failed is made again"
        )
    choice = RetryChoice(_words(outcome), _words(step), tuple(finding or ()))
    if not choice.endings:
        raise InputError(f"--outcome: name at least one of {', '.join(ENDINGS)}")
    with JournalReader.open(run) as reader:
        if reader.meta(BENCH) is not None:
            raise InputError(
                f"{run}: the run of a benchmark, whose tasks hold several outputs each: plantain bench generate BENCH "
                f"--run {run} --retry {','.join(choice.endings)} asks again for those outputs and leaves the others"
            )
        choice.check(reader)
        chosen = list(ended_tasks(reader, choice))
    continued, reopened = (
        (0, 0) if dry_run else asyncio.run(_retry(run, [ended.task_id for ended in chosen], start))
    )
    counts = Counter((ended.ending, ended.step, ended.finding, ended.direction) for ended in chosen)
    if as_json:
        document = {
            "matched": len(chosen),
            "continued": continued,
            "reopened": reopened,
            "tasks": [ended.task_id for ended in chosen],
            "by": [
                {"outcome": o, "step": s, "finding": f, "direction": d, "tasks": n}
                for (o, s, f, d), n in sorted(counts.items())
            ],
        }
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    if not chosen:
        print("no task ended so")
        return
    table = Table(title=f"{'to be ' if dry_run else ''}pending again: {counted(len(chosen), 'task')}")
    for heading in ("ended as", "step", "finding", "direction"):
        table.add_column(heading)
    table.add_column("tasks", justify="right")
    for key, n in sorted(counts.items()):
        table.add_row(*key, str(n))
    print_table(table)
    if continued or reopened:
        print(
            f"{continued} go on where they stopped, {reopened} begin anew; `plantain build` with the run's recipe "
            "goes on with them."
        )


def _settle_held(run: Path, usd: float, *, only_say: bool) -> None:
    if not math.isfinite(usd):
        raise InputError(f"--settle-held {usd}: not an amount of dollars")
    with JournalReader.open(run) as reader:
        costs = costs_of(reader).values()
    held, lost = sum(cost.held_usd for cost in costs), sum(cost.lost for cost in costs)
    if lost and not only_say:
        asyncio.run(_settle(run, usd))
    if not lost:
        print("no money is held", file=sys.stderr)
        return
    verb = "would be" if only_say else "are"
    print(
        f"${held:.4f} held for {counted(lost, 'call')} {verb} released; ${usd:.4f} {verb} recorded as spent",
        file=sys.stderr,
    )


async def _settle(run: Path, usd: float) -> None:
    async with Journal.open(run) as journal:
        await journal.settle_lost(usd)


async def _retry(run: Path, ids: list[str], start: str) -> tuple[int, int]:
    """How many tasks go on in their generation, and how many begin a new one."""
    if not ids:
        return 0, 0
    async with Journal.open(run) as journal:
        continued = set(await journal.continue_tasks(ids, Step(start) if start else None))
        return len(continued), await journal.reopen_tasks(id for id in ids if id not in continued)


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for raw in text.split(",") if (word := raw.strip())))
