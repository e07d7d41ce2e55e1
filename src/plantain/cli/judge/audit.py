"""`plantain judge audit`: make a judge's card, which states the uses that its verdicts are fit for."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from plantain.audit.gate import thresholds
from plantain.audit.images import images_in
from plantain.audit.jury import jury_of, models_of
from plantain.audit.pages import between, in_words, write_card_page
from plantain.audit.planning import forecast
from plantain.audit.run import AuditPlan, run_audit
from plantain.audit.trials import Trial, chosen_kinds
from plantain.cli.terminal.options import AsJson, DryRun, Seed, SettingsFile
from plantain.cli.terminal.progress import StageProgress, confirm, print_end, run_to_end
from plantain.cli.terminal.tables import print_json, print_table, right
from plantain.findings import load_taxonomy
from plantain.journal import JournalReader
from plantain.journal.cards import as_json as card_json
from plantain.journal.cards import keep_card, write_card
from plantain.journal.connect import JOURNAL_NAME
from plantain.records import Figure, InputError, JudgeCard, Rubric, TaskKind
from plantain.records.messages import command_line, counted, next_line
from plantain.review.people import PREFIX, agreement_with_people
from plantain.rubrics import MED_BANANA, MEDEBENCH, recorded, rubric_named
from plantain.runs.consent import runs_here
from plantain.runs.setup import RunSetup
from plantain.runs.terms import load_terms

LONG = 500
"""Calls above which an audit asks for confirmation; about two minutes of the offline judge."""


def audit(
    context: typer.Context,
    folder: Path | None = typer.Argument(
        None,
        metavar="[DIR]",
        help="Images to draw on: a run (which stores the card) or a catalogue; default: images of installed packages.",
    ),
    judge: str = typer.Option(
        "offline/instruments", metavar="MODEL", help="A judge, or a panel: names with commas."
    ),
    studies: list[Path] | None = typer.Option(
        None, "--study", metavar="STUDY", help="Study of the run DIR to compare with."
    ),
    run: Path | None = typer.Option(None, metavar="DIR", help="The audit's own run; hosted judges need one."),
    settings: SettingsFile = None,
    pairs: int = typer.Option(40, min=1, help="Edits of each kind."),
    seed: Seed = 0,
    kinds: str = typer.Option("", help="Controls and defects, separated by commas; default: all."),
    rubric: str | None = typer.Option(None, help="Default: that of the run DIR, else med-banana."),
    to: Path | None = typer.Option(None, metavar="FOLDER", help="Folder for card.html and card.json."),
    yes: bool = typer.Option(False, "--yes", help="Start a long audit without confirmation."),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Make a judge's card: controls, planted defects, repeats, agreement, and the uses that they support.

    The run DIR is not changed except for the card, which `plantain report` and `plantain bench table` then print.
    Answers are stored in --run and reused.

    Example: plantain judge audit --judge offline/instruments --pairs 5
    """
    named = models_of(judge)
    for readers in (name for name in named if name.startswith(PREFIX)):
        take = ("judge", "rejudge", *([folder] if folder is not None else []), "--judge", readers)
        raise InputError(
            f"--judge {readers}: readers judged no planted edits; compare a judge with them by --study "
            f"{readers.removeprefix(PREFIX)}, or take their verdicts by `{command_line(*take)}`"
        )
    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give a run or a catalogue")
    if run is None and not dry_run and not all(map(runs_here, named)):
        raise InputError(
            f"--run: name a folder for the answers of {judge}, so that finished calls are reused"
        )
    if run is not None and (run / JOURNAL_NAME).is_file():
        with JournalReader.open(run) as reader:
            if reader.header.frozen.get("kind") != "audit":
                line = command_line("judge", "audit", run, "--judge", judge, "--run", "AUDIT")
                raise InputError(f"--run {run}: not the run of an audit; to audit with its images: {line}")
    by_people = _with_people(studies or [], folder, judge)
    taxonomy = load_taxonomy()
    terms = load_terms(settings, named)
    split = "images of the packages, held out" if folder is None else folder.name
    judged_by, chosen = _rubric(rubric, folder), chosen_kinds(kinds)
    plan = AuditPlan(judge, judged_by, pairs, seed, split, chosen)
    trial_images = images_in(folder, taxonomy)
    found: dict[str, Any] = forecast(trial_images, taxonomy, plan, terms)
    if dry_run:
        return _print_forecast(found, as_json=as_json)
    if (calls := sum(found["calls"].values())) > LONG and not yes:
        jury_of(
            RunSetup(terms), judge, judged_by
        )  # an unknown name or a missing key fails before the question
        cost = found["cost_usd"]
        price = "at unknown cost" if cost is None else f"for ${cost[0]:.2f} to ${cost[1]:.2f}"
        time = f", about {2 * calls / LONG:.0f} minutes" if all(map(runs_here, named)) else ""
        confirm(f"judge audit: up to {counted(calls, 'call')} {price}{time}")
    with tempfile.TemporaryDirectory() as temporary, StageProgress(quiet=as_json) as progress:
        own = run or Path(temporary) / "audit"
        audited = run_to_end(run_audit(plan, terms, own, trial_images, taxonomy, progress))
    card = replace(audited.card, agreement={**audited.card.agreement, **by_people})
    if audited.summary.stopped is None:
        _keep(card, folder, run, to, audited.examples)
    if as_json:
        print_json(card_json(card))
    else:
        _print_card(card)
        if folder is not None and audited.summary.stopped is None:
            printed_by = ("bench", "table") if judged_by is MEDEBENCH else ("report",)
            print(next_line(*(printed_by if (folder / JOURNAL_NAME).is_file() else ("init",)), folder))
    return print_end(context, audited.summary)


def _with_people(studies: list[Path], folder: Path | None, judge: str) -> dict[str, Figure]:
    """Return the agreement of the judge's verdicts in the run with the studies' readers."""
    if studies and (folder is None or not (folder / JOURNAL_NAME).is_file()):
        raise InputError(f"--study {studies[0]}: give the run that the study was made from as DIR")
    found: dict[str, Figure] = {}
    for study in studies:
        found |= agreement_with_people(study, Path(folder or "."), judge)
    return found


def _keep(
    card: JudgeCard, folder: Path | None, run: Path | None, to: Path | None, examples: Mapping[str, Trial]
) -> None:
    """Store the card in the named run and in the audit's run, and write its page."""
    for home in (folder, run):
        if home is not None and (home / JOURNAL_NAME).is_file():
            keep_card(home, card)
    pages = to or run
    if pages is not None:
        write_card(pages / "card.json", card)
        print(f"card: {write_card_page(pages, card, examples)}", file=sys.stderr)


def _rubric(name: str | None, folder: Path | None) -> Rubric:
    """Return the rubric named; else that of the run: a benchmark's is MedEBench's."""
    if name is not None:
        return rubric_named(name)
    if folder is None or not (folder / JOURNAL_NAME).is_file():
        return MED_BANANA
    with JournalReader.open(folder) as reader:
        bench = any(reader.counts(TaskKind.BENCH).values())
        return MEDEBENCH if bench else recorded(reader.header.frozen)


def _print_forecast(found: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(found)
        return 0
    spread = ", ".join(f"{n} of {modality}" for modality, n in found["images"].items()) or "no images"
    edits, independent = counted(found["edits"], "edit"), found["independent"]
    print(f"{found['judge']}: at most {edits}; images: {spread}, of {independent} independent sources")
    print_bill(found, "at most ")
    needed = int(thresholds().rank["images"].least)
    if independent < needed:
        print(f"too few independent images for a pass: {needed} are needed")
    return 0


def print_bill(found: dict[str, Any], most: str = "") -> None:
    """Print the calls and cost in a forecast."""
    for model, n in found["calls"].items():
        print(f"{model}: {most}{counted(n, 'call')}")
    cost = found["cost_usd"]
    print("cost: unknown, a price is missing" if cost is None else f"cost: ${cost[0]:.2f} to ${cost[1]:.2f}")


def _print_card(card: JudgeCard) -> None:
    print(f"{card.judge}: {card.gate.verdict}")
    checks = Table("check", "result", "measured", title=f"{card.judge}: {card.gate.phrase}")
    for check in card.gate.checks:
        checks.add_row(check.name, check.result, check.found)
    print_table(checks)
    for title in ("controls", "defects", "repeats", "agreement"):
        if rows := getattr(card, title):
            print_table(_table(f"{card.judge}: {title}", rows))
    gaps = {f"{m}, {c.replace('_', ' ')}": f for m, own in card.gaps.items() for c, f in own.items()}
    print_table(_table("how much more often right edits pass than wrong ones", gaps))
    for reason, n in card.left_out.items():
        print(f"left out {counted(n, 'time')}: {reason}")


def _table(title: str, rows: Mapping[str, Figure]) -> Table:
    table = Table("", *right("value", "95 % interval", "n", "images"), title=title)
    for name, figure in rows.items():
        table.add_row(name, in_words(figure), between(figure), str(figure.n), str(figure.images))
    return table
