"""`plantain demo`: the whole build, offline, on real images, ending with a page to look at."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import typer

from plantain.audit.gate import CLEAN
from plantain.audit.images import images_in
from plantain.audit.run import AuditPlan, run_audit
from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.progress import BuildProgress, StageProgress, print_end, run_to_end
from plantain.cli.terminal.tables import print_json, print_table
from plantain.findings import load_taxonomy
from plantain.journal import JournalReader
from plantain.journal.cards import as_json as card_json
from plantain.journal.cards import cards_of, keep_card
from plantain.journal.questions.status import status_summary
from plantain.pipeline.demo import FINDINGS, SEED, demo_recipe, fill_demo_catalogue
from plantain.pipeline.run import run_build
from plantain.records.messages import command_line
from plantain.report.page import make_report
from plantain.report.terminal import table_one
from plantain.runs.terms import Terms

CARD_PAIRS, CARD_KINDS = 4, (CLEAN, "blob")
"""Edits of each kind: enough to show a card; four images cannot validate a judge."""

NOTICE = """\
Real images, offline models: a template writer, a procedural editor and an instrument judge (an instrument, not an
expert). The chest radiograph is not healthy, the brain template is a population average, and some findings were
rendered by plantain so that there is something to remove. Research only; everything edited is synthetic."""


def demo(
    context: typer.Context,
    folder: Path = typer.Argument(Path("demo-run"), metavar="[DIR]", help="Folder; created or resumed."),
    limit: int | None = typer.Option(None, min=1, help="Close at most N tasks."),
    as_json: AsJson = False,
) -> int:
    """Build a small dataset of judged edits offline. Rerun the same command to resume.

    Example: plantain demo
    """
    started = time.monotonic()
    if not as_json:
        print(NOTICE, file=sys.stderr)
    fill_demo_catalogue(folder / "catalogue")
    run = folder / "run"
    with BuildProgress(quiet=as_json) as progress:
        summary = run_to_end(run_build(demo_recipe(folder), run, limit=limit, observer=progress))
    if summary.stopped is None:
        _card(folder, run, quiet=as_json)
    written = make_report(run)
    with JournalReader.open(run) as reader:
        status = status_summary(reader)
    if as_json:
        extra = {
            "report": str(written.path),
            "cards": [card_json(card) for card in cards_of(run)],
            "seconds": round(time.monotonic() - started, 3),
        }
        print_json({**status, **extra})
    else:
        print_table(table_one(run, written.numbers.composition))
        for card in cards_of(run):
            print(f"judge's card: {card.line}")
        print(f"report: {written.path}")
        print(f"next: {command_line('view', run)}")
    return print_end(context, summary)


def _card(folder: Path, run: Path, *, quiet: bool) -> None:
    """Audit the demo's judge on the demo's images: clean edits and one blob."""
    if cards_of(run):
        return
    taxonomy, judge = load_taxonomy(), "offline/instruments"
    plan = AuditPlan(
        judge,
        pairs=CARD_PAIRS,
        seed=SEED,
        split="images of the demo",
        kinds=CARD_KINDS,
    )
    images = images_in(run, taxonomy)
    drawn = replace(taxonomy, findings=tuple(one for one in taxonomy.findings if one.name in FINDINGS))
    with StageProgress(quiet=quiet) as progress:
        audited = run_to_end(run_audit(plan, Terms((judge,)), folder / "audit", images, drawn, progress))
    if audited.summary.stopped is None:
        keep_card(run, audited.card)
