"""`plantain demo`: the whole build, offline, on real images, ending with a page to look at."""

from __future__ import annotations

import asyncio
import resource
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from plantain.audit.asking import asking
from plantain.audit.gate import CLEAN
from plantain.audit.pictures import pictures_in
from plantain.audit.run import AuditPlan, run_audit
from plantain.cli.build import build_watched, print_end
from plantain.cli.terminal.application import application
from plantain.cli.terminal.stages import StageProgress
from plantain.findings import load_taxonomy
from plantain.journal import JournalReader
from plantain.journal.cards import as_json as card_json
from plantain.journal.cards import cards_of, keep_card
from plantain.journal.questions.telemetry import costs, status_summary
from plantain.offline.workers import close_workers
from plantain.pipeline.demo import FINDINGS, SEED, demo_recipe, fill_demo_catalogue, peak_rss_mb
from plantain.report.page import make_report
from plantain.report.terminal import table_one
from plantain.runs.settings.terms import Terms

app = application()
CARD_PAIRS, CARD_KINDS = 4, (CLEAN, "blob")
"""A few edits of each kind: the demo shows what a card is, and four people's pictures can show no more."""

NOTICE = """\
Real images, offline models: a template writer, a procedural editor and an instrument judge (an instrument, not an
expert). The chest radiograph is not healthy, the brain template is a population average, and some findings were
rendered by plantain so that there is something to remove. Research only; everything edited is synthetic."""


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="made or resumed")] = Path("demo-run"),
    limit: Annotated[int | None, typer.Option(min=1, help="close at most this many tasks")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Builds a small dataset of judged edits offline. Kill it and type it again: it goes on.

    Example: plantain demo
    """
    begun = time.monotonic()
    if not as_json:
        print(NOTICE, file=sys.stderr)
    fill_demo_catalogue(folder / "catalogue")
    run = folder / "run"
    summary = build_watched(demo_recipe(folder), run, limit=limit, quiet=as_json)
    if summary.stopped is None:
        _card(folder, run, quiet=as_json)
    written = make_report(run)
    with JournalReader.open(run) as reader:
        status = status_summary(reader)
        steps = {cost.step: cost.mean_latency_s for cost in costs(reader)}
    if as_json:
        extra = {
            "report": str(written.path),
            "cards": [card_json(card) for card in cards_of(run)],
            "seconds": round(time.monotonic() - begun, 3),
            "peak_rss_mb": round(peak_rss_mb(), 1),
            "peak_rss_mb_worker": round(peak_rss_mb(resource.RUSAGE_CHILDREN), 1),
            "seconds_per_call": steps,
        }
        print(orjson.dumps({**status, **extra}, option=orjson.OPT_INDENT_2).decode())
    else:
        Console().print(table_one(run, written.numbers.composition))
        for card in cards_of(run):
            print(f"judge's card: {card.line}")
        print(f"Look at it: {written.path}")
    return print_end(summary, shlex.join(["plantain", "demo", str(folder)]))


def _card(folder: Path, run: Path, *, quiet: bool) -> None:
    """A small card of the demo's judge: what it says of clean edits and of one blob, on the demo's own pictures."""
    if cards_of(run):
        return
    taxonomy, judge = load_taxonomy(), "offline/instruments"
    plan = AuditPlan(
        CARD_PAIRS, seed=SEED, split="the demo's own pictures", findings=FINDINGS, kinds=CARD_KINDS
    )

    async def audited() -> None:
        terms = Terms((judge,))
        with StageProgress(quiet=quiet) as progress:
            async with asking(judge, terms, folder / "audit", SEED, progress) as asked:
                card, _ = await run_audit(asked, pictures_in(run, taxonomy), taxonomy, plan)
                if not asked.opened.stopping:
                    keep_card(run, card)

    try:
        asyncio.run(audited())
    finally:
        close_workers()
