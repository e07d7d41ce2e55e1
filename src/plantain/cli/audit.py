"""`plantain audit`: how far a judge can be trusted, by planted defects."""

from __future__ import annotations

import asyncio
import difflib
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from plantain.audit import AuditPlan, AuditReport, run_audit
from plantain.audit.asking import asking
from plantain.audit.pictures import TrialPicture, package_pictures
from plantain.audit.published import Opinion, is_published_tree, opinions_of, published_edits
from plantain.audit.rates import AuditRate
from plantain.audit.run_pictures import run_pictures
from plantain.cli.runs.build import tell_end
from plantain.cli.terminal.application import application
from plantain.findings import Taxonomy, load_taxonomy
from plantain.offline.workers import close_workers
from plantain.records import Criterion, InputError
from plantain.rubrics import MED_BANANA
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
            help="a run, whose originals are used, or a published Med-Banana tree; default: the package images",
        ),
    ] = None,
    judge_name: Annotated[str, typer.Option("--judge", metavar="MODEL")] = "offline/instruments",
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="the audit's own folder; needed by judges that are paid"),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="[limits], [providers.NAME] and [consent], in TOML")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="pairs for each defect, and clean edits")] = 100,
    amplitude: Annotated[Amplitude, typer.Option(help="how plainly the defects show")] = Amplitude.STRONG,
    seed: Annotated[int, typer.Option(help="of the edits and defects")] = 0,
    findings: Annotated[str, typer.Option(help="names of findings, separated by commas; default: all")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Plants ten kinds of defect in clean edits and counts how often the judge sees them, and how often it
    cries wolf. The run that is looked at is only read; what the judge says is kept in --run, and never asked twice.

    Example: plantain audit --judge offline/instruments --pairs 20
    """
    terms = load_terms(settings, (judge_name,))
    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give a run or a published tree")
    if run is None and not runs_here(judge_name):
        raise InputError(
            f"--run: name a folder for what {judge_name} says: its answers are kept, and paid for once"
        )
    with tempfile.TemporaryDirectory() as temporary, AuditProgress(quiet=as_json) as progress:
        own = run or Path(temporary) / "audit"
        try:
            if folder is not None and is_published_tree(folder):
                summary = asyncio.run(_published(judge_name, terms, own, folder, as_json, progress))
            else:
                pictures = package_pictures("held-out") if folder is None else run_pictures(folder)
                plan = AuditPlan(
                    pairs,
                    pairs,
                    amplitude.value,
                    seed,
                    "held-out" if folder is None else str(folder),
                    findings=_findings(findings, load_taxonomy()),
                )
                summary = asyncio.run(_planted(judge_name, terms, own, pictures, plan, as_json, progress))
        finally:
            close_workers()
    return tell_end(summary, "plantain audit (the same options)")


async def _planted(
    judge: str,
    terms: Terms,
    run: Path,
    pictures: list[TrialPicture],
    plan: AuditPlan,
    as_json: bool,
    progress: ProgressObserver,
) -> RunSummary:
    async with asking(judge, terms, run, plan.seed, progress) as asked:
        report, _ = await run_audit(asked, pictures, load_taxonomy(), MED_BANANA, plan)
    if as_json:
        print(orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        print_report(report, Console())
    return asked.opened.summary


def _findings(text: str, taxonomy: Taxonomy) -> tuple[str, ...]:
    wanted = tuple(name.strip() for name in text.split(",") if name.strip())
    known = [finding.name for finding in taxonomy.findings if not finding.normal]
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
            raise InputError(f"--findings: no finding {name!r}{hint}")
    return wanted


def print_report(report: AuditReport, console: Console) -> None:
    """The report as tables for a person."""
    table = Table(
        title=f"{report.judge} on planted defects, {report.amplitude} amplitude, seed {report.seed}"
    )
    for heading in ("defect", "caught", "95 % interval", "pairs", "pictures", "by modality"):
        table.add_column(heading, justify="left" if heading in ("defect", "by modality") else "right")
    for rates in report.defects:
        spread = ", ".join(f"{m} {_share(r)} of {r.n}" for m, r in rates.by_modality.items())
        table.add_row(
            rates.defect,
            _share(rates.caught),
            _interval(rates.caught),
            str(rates.caught.n),
            str(rates.pictures),
            spread,
        )
    console.print(table)
    alarms = Table(title="False alarms on clean edits")
    for heading in ("criterion", "failed", "95 % interval", "edits"):
        alarms.add_column(heading, justify="left" if heading == "criterion" else "right")
    rows = [("any of the four", report.clean_any)]
    rows += [(criterion.replace("_", " "), rate) for criterion, rate in report.clean.failed.items()]
    rows += [(f"any, {modality}", rate) for modality, rate in report.clean_by_modality.items()]
    for name, rate in rows:
        alarms.add_row(name, _share(rate), _interval(rate), str(rate.n))
    console.print(alarms)
    print(
        "Caught: every criterion that the defect violates failed. Intervals (Wilson) treat edits of one picture as "
        "independent; they are not quite."
    )
    for reason, n in report.not_made:
        print(f"left out {n} times: {reason}")


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
        _print_opinions(asked.judge.name, opinions)
    return asked.opened.summary


def _print_opinions(judge: str, opinions: list[Opinion]) -> None:
    console = Console()
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
        marks = ["pass" if seen.criteria[criterion].passed else "fail" for criterion in Criterion]
        codes = sorted({code for result in seen.criteria.values() for code in result.codes})
        table.add_row(opinion.edit.path.stem, *marks, ", ".join(codes).replace("_", " "))
    console.print(table)
    unasked = [opinion for opinion in opinions if opinion.observations is None]
    for reason in sorted({opinion.reason for opinion in unasked}):
        print(f"not judged: {sum(o.reason == reason for o in unasked)} edits ({reason})")


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


class AuditProgress(ProgressObserver):
    """A bar on stderr that goes when the audit has ended."""

    def __init__(self, *, quiet: bool) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet)
        self._task: TaskID | None = None

    def __enter__(self) -> AuditProgress:
        return self

    def __exit__(self, *ended: object) -> None:
        if self._task is not None:  # a bar that never began would leave an empty line before what was wrong
            self._bar.stop()

    def begun(self, what: str, total: int) -> None:
        self._bar.start()
        self._task = self._bar.add_task(what, total=total)

    def advanced(self, stored: int) -> None:
        if self._task is not None:
            self._bar.update(self._task, advance=1)


def _share(rate: AuditRate) -> str:
    return "no pairs" if rate.share is None else f"{rate.share:.2f}"


def _interval(rate: AuditRate) -> str:
    low, high = rate.interval
    return f"{low:.2f} to {high:.2f}" if rate.n else ""
