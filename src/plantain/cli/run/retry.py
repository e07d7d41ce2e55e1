"""`plantain run retry`: make ended tasks pending again."""

from __future__ import annotations

import asyncio
import math
import shlex
import sys
from collections import Counter
from pathlib import Path

import typer
from rich.table import Table

from plantain.bench.generate.runfile import BENCH
from plantain.cli.terminal.options import AsJson, DryRun, RunArgument, chosen_words
from plantain.cli.terminal.tables import print_json, print_table, right
from plantain.journal import Journal, JournalReader
from plantain.journal.questions.tasks import EndedTask, ended_without_success
from plantain.records import InputError, OutcomeKind, TaskState
from plantain.records.messages import COMMANDS, counted, next_line, typed_before
from plantain.runs.terms import costs_of

OUTCOMES = (
    OutcomeKind.REFUSED.value,
    OutcomeKind.MALFORMED.value,
    OutcomeKind.NO_IMAGE.value,
    OutcomeKind.TRANSPORT.value,
    OutcomeKind.RATE_LIMITED.value,
)
"""Outcomes of the last call of a stopped task that can be tried again."""

STATES = (TaskState.FAILED.value, TaskState.NOT_APPLICABLE.value, TaskState.STOPPED.value)
"""States of tasks that can be opened again; not undecided, since a run keeps its judge."""


def retry(
    run: RunArgument,
    outcome: str = typer.Option(
        "", metavar="NAMES", help=f"Stopped by these outcomes: {', '.join(OUTCOMES)}."
    ),
    state: str = typer.Option("", metavar="STATES", help=f"In these states: {', '.join(STATES)}."),
    settle_held: float | None = typer.Option(
        None, metavar="USD", min=0.0, help="Record the total cost of calls whose cost is unknown."
    ),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make ended tasks pending again, chosen by outcome or state; `plantain build` then continues them.

    A stopped task keeps its generation: the call that failed is tried again, and recorded answers are reused. A failed
    or not applicable task starts a new generation; the old one stays, marked superseded.

    --settle-held records the cost of calls without an answer, divided evenly among them, and releases the held money.

    Example: plantain run retry runs/cxr-pilot --outcome refused,malformed
    """
    if settle_held is not None:
        _settle_held(run, settle_held, dry_run=dry_run)
        if not outcome and not state:
            return
    outcomes = chosen_words("--outcome", outcome.split(","), OUTCOMES)
    states = chosen_words("--state", state.split(","), STATES)
    with JournalReader.open(run) as reader:
        if reader.meta(BENCH) is not None:
            raise InputError(
                f"{run}: the run of a benchmark, whose tasks have several outputs each: retry them by bench generate "
                f"with --retry {','.join(outcomes) or 'refused'}, or a judge's answers by bench score with --retry"
            )
        if not outcomes and not states:
            raise InputError(f"--outcome, --state: name at least one of {', '.join((*OUTCOMES, *STATES))}")
        chosen = [
            task for task in ended_without_success(reader) if task.ending in outcomes or task.state in states
        ]
        again = [f"next: {line}" for line in typed_before(reader.meta(COMMANDS), run, "build", "demo")]
    continued, reopened = (0, 0) if dry_run else asyncio.run(_retry(run, chosen))
    counts = Counter((ended.ending, ended.step or "", ended.finding, ended.direction) for ended in chosen)
    if as_json:
        document = {
            "matched": len(chosen),
            "continued": continued,
            "reopened": reopened,
            "tasks": [ended.id for ended in chosen],
            "by": [
                {"outcome": o, "step": s, "finding": f, "direction": d, "tasks": n}
                for (o, s, f, d), n in sorted(counts.items())
            ],
        }
        print_json(document)
        return
    if not chosen:
        print(f"no task matches\n{next_line('show', run)}")
        raise typer.Exit
    title = f"{'to be ' if dry_run else ''}pending again: {counted(len(chosen), 'task')}"
    table = Table("ended as", "step", "finding", "direction", *right("tasks"), title=title)
    for key, n in sorted(counts.items()):
        table.add_row(*key, str(n))
    print_table(table)
    if continued or reopened:
        print(f"{continued} continue where they stopped, {reopened} start again")
        print((again or [f"build its recipe with --run {shlex.quote(str(run))} to continue them"])[0])


def _settle_held(run: Path, usd: float, *, dry_run: bool) -> None:
    if not math.isfinite(usd):
        raise InputError(f"--settle-held {usd}: not an amount of dollars")
    with JournalReader.open(run) as reader:
        costs = costs_of(reader).values()
    held, lost = sum(cost.held_usd for cost in costs), sum(cost.lost for cost in costs)
    if lost and not dry_run:

        async def settle() -> None:
            async with Journal.open(run) as journal:
                await journal.settle_lost(usd)

        asyncio.run(settle())
    if not lost:
        print("no money is held", file=sys.stderr)
        return
    verb = "would be" if dry_run else "are"
    print(
        f"${held:.4f} held for {counted(lost, 'call')} {verb} released; ${usd:.4f} {verb} recorded as spent",
        file=sys.stderr,
    )


async def _retry(run: Path, chosen: list[EndedTask]) -> tuple[int, int]:
    """Return how many tasks continue their generation, and how many start a new one."""
    if not chosen:
        return 0, 0
    stopped, others = (
        [one.id for one in chosen if (one.state == TaskState.STOPPED) is yes] for yes in (True, False)
    )
    async with Journal.open(run) as journal:
        return await journal.continue_tasks(stopped), await journal.reopen_tasks(others)
