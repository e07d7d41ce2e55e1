"""`plantain audit`: a judge's card, which says how far its verdicts can be trusted."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from plantain.audit.asking import asking
from plantain.audit.card_page import between, in_words, write_card_pages
from plantain.audit.gate import thresholds
from plantain.audit.jury import models_of
from plantain.audit.pictures import TrialPicture, folder_pictures, package_pictures
from plantain.audit.planning import AuditForecast, forecast, forecast_published
from plantain.audit.published import Opinion, is_published_tree, opinions_of, published_edits
from plantain.audit.run import AuditPlan, run_audit
from plantain.audit.run_pictures import catalogue_pictures, is_catalogue, run_pictures
from plantain.audit.trials import chosen_kinds
from plantain.cli.runs.build import print_end
from plantain.cli.terminal.application import application
from plantain.cli.terminal.stages import StageProgress
from plantain.cli.terminal.tables import print_table
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import JournalReader
from plantain.journal.cards import as_json as card_json
from plantain.journal.cards import keep_card, write_card
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.offline.workers import close_workers
from plantain.pipeline.piloting.decision import PEOPLE
from plantain.records import Criterion, Figure, InputError, JudgeCard, Rubric, TaskKind
from plantain.records.counts import counted
from plantain.records.suggestions import suggest
from plantain.rubrics import MED_BANANA, MEDEBENCH, recorded, rubric_named
from plantain.runs.consent import runs_here
from plantain.runs.observer import ProgressObserver
from plantain.runs.settings.terms import Terms, load_terms
from plantain.runs.summary import RunSummary

app = application()


class Amplitude(StrEnum):
    """How plainly a defect shows."""

    WEAK = "weak"
    STRONG = "strong"


@app.command()
def audit(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="pictures to draw on: a run (which keeps the card), a catalogue, a folder <modality>/<name>.png, or a "
            "published Med-Banana tree; default: the package images",
        ),
    ] = None,
    judge_name: Annotated[
        str, typer.Option("--judge", metavar="MODEL", help="several, separated by commas, are a panel")
    ] = "offline/instruments",
    beside: Annotated[
        list[str] | None, typer.Option("--beside", metavar="MODEL", help="another judge to compare it with")
    ] = None,
    people: Annotated[
        list[Path] | None,
        typer.Option("--people", metavar="STUDY", help="a reader study of the run DIR, to compare it with"),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="the audit's own folder; needed by judges that are paid"),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="[limits], [providers.NAME] and [consent], in TOML")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="edits of each kind")] = 40,
    amplitude: Annotated[Amplitude, typer.Option(help="how plainly the defects show")] = Amplitude.STRONG,
    seed: Annotated[int, typer.Option(help="of the edits and defects")] = 0,
    findings: Annotated[str, typer.Option(help="names of findings, separated by commas; default: all")] = "",
    kinds: Annotated[
        str, typer.Option(help="names of controls and defects, separated by commas; default: all")
    ] = "",
    rubric: Annotated[
        str | None, typer.Option(help="by which it judges; default: that of the run DIR, else med-banana")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="for card.html, card.md and card.json")
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="say what would be asked and its cost")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Makes a judge's card: controls, planted defects, repeats, agreement, and what its verdicts may be used for.

    A run that is looked at is only read, and gets the card beside its journal; `plantain report` and `plantain bench
    table` print its line. What the judge says is kept in --run, and never asked twice.

    Example: plantain audit --judge offline/instruments --pairs 5
    """
    others = tuple(beside or ())
    named = tuple(model for name in (judge_name, *others) for model in models_of(name))
    for readers in (name for name in named if name.startswith(PEOPLE)):
        raise InputError(
            f"--judge {readers}: readers judged only the edits that they saw, no planted ones: `plantain audit RUN "
            f"--judge MODEL --people {readers.removeprefix(PEOPLE)}` puts them beside a judge, `plantain rejudge RUN "
            f"--judge {readers}` takes their verdicts"
        )
    terms = load_terms(settings, named)
    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give a run, a catalogue or pictures")
    if run is None and not plan_only and not all(map(runs_here, named)):
        raise InputError(
            f"--run: name a folder for the answers of {judge_name} : they are kept, and paid for once"
        )
    by_people = _with_people(people or [], folder, judge_name)
    taxonomy = load_taxonomy()
    published = folder is not None and is_published_tree(folder)
    wish = AuditPlan(
        pairs, amplitude.value, seed, _set(folder), _findings(findings, taxonomy), chosen_kinds(kinds)
    )
    pictures = [] if published else _pictures(folder, taxonomy)
    if plan_only:
        if published and folder is not None:
            found = forecast_published(published_edits(folder, taxonomy), models_of(judge_name), terms)
        else:
            beside_it = list(map(models_of, others))
            found = forecast(pictures, taxonomy, wish, models_of(judge_name), beside_it, terms)
        return _print_plan(judge_name, found, as_json, makes_card=not published)
    with tempfile.TemporaryDirectory() as temporary, StageProgress(quiet=as_json) as progress:
        own = run or Path(temporary) / "audit"
        try:
            if published and folder is not None:
                summary = asyncio.run(_published(judge_name, terms, own, folder, as_json, progress))
                return print_end(summary, "plantain audit (the same options)")
            card, summary = asyncio.run(
                _carded(
                    judge_name,
                    others,
                    terms,
                    own,
                    pictures,
                    taxonomy,
                    wish,
                    _rubric(rubric, folder),
                    progress,
                )
            )
        finally:
            close_workers()
    card = replace(card, agreement={**card.agreement, **by_people})
    if summary.stopped is None:
        _keep(card, folder, run, to)
    if as_json:
        print(orjson.dumps(card_json(card), option=orjson.OPT_INDENT_2).decode())
    else:
        print_card(card)
    return print_end(summary, "plantain audit (the same options)")


async def _carded(
    judge: str,
    beside: tuple[str, ...],
    terms: Terms,
    run: Path,
    pictures: list[TrialPicture],
    taxonomy: Taxonomy,
    plan: AuditPlan,
    rubric: Rubric,
    progress: ProgressObserver,
) -> tuple[JudgeCard, RunSummary]:
    images = [picture.image for picture in pictures]
    async with asking(
        judge, terms, run, plan.seed, progress, rubric=rubric, beside=beside, images=images
    ) as asked:
        card, _ = await run_audit(asked, pictures, taxonomy, plan)
    return card, asked.opened.summary


def _with_people(studies: list[Path], folder: Path | None, judge: str) -> dict[str, Figure]:
    """How far the judge's verdicts in the run are those of the studies' readers."""
    from plantain.review.judge_agreement import agreement_with_people

    if studies and (folder is None or not (folder / JOURNAL_NAME).is_file()):
        raise InputError(
            f"--people {studies[0]}: name the run that the study was made from, before the options"
        )
    found: dict[str, Figure] = {}
    for study in studies:
        found |= agreement_with_people(study, Path(folder or "."), judge)
    return found


def _keep(card: JudgeCard, folder: Path | None, run: Path | None, to: Path | None) -> None:
    """Puts the card beside the run that was looked at and the audit's own, and its pages where they are wanted."""
    for home in (folder, run):
        if home is not None and (home / JOURNAL_NAME).is_file():
            keep_card(home, card)
    pages = to or run
    if pages is not None:
        write_card(pages / "card.json", card)
        print(f"card: {write_card_pages(pages, card)}", file=sys.stderr)


def _set(folder: Path | None) -> str:
    return "pictures that arrive with the packages, held out" if folder is None else folder.name


def _pictures(folder: Path | None, taxonomy: Taxonomy) -> list[TrialPicture]:
    if folder is None:
        return package_pictures("held-out")
    if (folder / JOURNAL_NAME).is_file():
        return run_pictures(folder, taxonomy)
    if is_catalogue(folder):
        return catalogue_pictures(folder, taxonomy)
    return folder_pictures(folder)


def _rubric(name: str | None, folder: Path | None) -> Rubric:
    """The rubric named; else that of the run: a benchmark's is MedEBench's."""
    if name is not None:
        return rubric_named(name)
    if folder is None or not (folder / JOURNAL_NAME).is_file():
        return MED_BANANA
    with JournalReader.open(folder) as reader:
        bench = any(reader.counts(TaskKind.BENCH).values())
        return MEDEBENCH if bench else recorded(reader.header.frozen)


def _print_plan(judge: str, found: AuditForecast, as_json: bool, *, makes_card: bool) -> int:
    if as_json:
        print(orjson.dumps(found.as_json(judge), option=orjson.OPT_INDENT_2).decode())
        return 0
    spread = ", ".join(f"{n} of {modality}" for modality, n in found.pictures.items())
    print(
        f"{judge}: at most {counted(found.edits, 'edit')} on {spread or 'no pictures'} ({found.independent} "
        f"independent)"
    )
    for model, n in found.calls.items():
        print(f"{model}: at most {counted(n, 'call')}")
    cost = found.cost_usd
    print(
        "cost: unknown, a price is missing" if cost is None else f"cost: {cost[0]:.2f} to {cost[1]:.2f} USD"
    )
    if makes_card and found.independent < thresholds().rank["pictures"].least:
        print(
            f"the card will say neither: it has {counted(found.independent, 'independent picture')}, too few for any "
            "other answer"
        )
    return 0


def _findings(text: str, taxonomy: Taxonomy) -> tuple[str, ...]:
    wanted = tuple(name.strip() for name in text.split(",") if name.strip())
    known = [finding.name for finding in taxonomy.findings if not finding.normal]
    for name in wanted:
        if name not in known:
            raise InputError(f"--findings: no finding {name!r}; {suggest(name, known)}")
    return wanted


def print_card(card: JudgeCard) -> None:
    """The card as tables for a person."""
    print(card.line)
    for reason in card.gate.why:
        print(f"  {reason}")
    for title in ("controls", "defects", "repeats", "agreement", "drift"):
        rows = getattr(card, title)
        if rows:
            print_table(_table(f"{card.judge}: {title}", rows))
    gaps = {f"{m}, {c.replace('_', ' ')}": f for m, own in card.gaps.items() for c, f in own.items()}
    print_table(_table("right minus wrong, by modality and criterion", gaps))
    for reason, n in card.left_out.items():
        print(f"left out {counted(n, 'time')}: {reason}")


def _table(title: str, rows: Mapping[str, Figure]) -> Table:
    table = Table(title=title)
    for heading in ("", "value", "95 % interval", "n", "pictures"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, figure in rows.items():
        table.add_row(name, in_words(figure), between(figure), str(figure.n), str(figure.pictures))
    return table


async def _published(
    judge: str, terms: Terms, run: Path, folder: Path, as_json: bool, progress: ProgressObserver
) -> RunSummary:
    edits = published_edits(folder, load_taxonomy())
    async with asking(judge, terms, run, 0, progress) as asked:
        opinions = await opinions_of(asked, edits, MED_BANANA)
    if as_json:
        rows = [_opinion_json(folder, opinion) for opinion in opinions]
        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
    else:
        _print_opinions(asked.jury.name, opinions)
    return asked.opened.summary


_WORDS = {True: "pass", False: "fail", None: "unscored"}


def _print_opinions(judge: str, opinions: list[Opinion]) -> None:
    table = Table(title=f"{judge} on published edits (originals stood in for by what their edits share)")
    table.add_column("edit", no_wrap=True)
    for criterion in Criterion:
        words = criterion.value.split("_")
        table.add_column(words[0] if criterion is Criterion.FIDELITY_PRESERVATION else words[-1])
    table.add_column("why not")
    for opinion in opinions:
        seen = opinion.observations
        if seen is None:
            continue
        marks = [_WORDS[seen.criteria[criterion].passed] for criterion in Criterion]
        codes = sorted({code for result in seen.criteria.values() for code in result.codes})
        table.add_row(opinion.edit.path.stem, *marks, ", ".join(codes).replace("_", " "))
    print_table(table)
    unasked = [opinion for opinion in opinions if opinion.observations is None]
    for reason in sorted({opinion.reason for opinion in unasked}):
        print(f"not judged: {counted(sum(o.reason == reason for o in unasked), 'edit')} ({reason})")


def _opinion_json(folder: Path, opinion: Opinion) -> dict[str, object]:
    seen = opinion.observations
    return {
        "edit": str(opinion.edit.path.relative_to(folder)),
        "finding": opinion.edit.finding.name,
        "direction": opinion.edit.direction.value,
        "passed": None if seen is None else {c: r.passed for c, r in seen.criteria.items()},
        "codes": [] if seen is None else sorted({k for r in seen.criteria.values() for k in r.codes}),
        "reason": opinion.reason,
    }
