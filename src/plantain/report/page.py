"""Write a run's report and a task's page as self-contained HTML files, and the report's numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plantain.journal import JournalReader, RunHeader, TaskRow
from plantain.journal.cards import Standing, consistency, standings_of
from plantain.journal.questions.accepted import AcceptedRow, TurnRow, accepted_rows, turn_rows
from plantain.journal.questions.status import Unsuccessful, costs, status_summary, unsuccessful
from plantain.journal.questions.tables import (
    Composition,
    FindingRow,
    Judged,
    OutcomeRow,
    RoundRow,
    by_finding,
    call_outcomes,
    rounds_to_success,
    table1,
    table2,
)
from plantain.journal.questions.tasks import (
    CorrectedEdit,
    ImagesUsed,
    corrected_edits,
    corrections_line,
    images_used,
)
from plantain.journal.questions.units import snapshot
from plantain.journal.verdicts import PERSON
from plantain.journal.verify import places_of
from plantain.metrics.statistics.clusters import Rate
from plantain.pages.drawing import ACCENT, FAILED, SUCCESS, percent_axis, row_axis, svg
from plantain.pages.publishing import html_target, page_environment, restriction, write_page
from plantain.records import TaskKind, state_after
from plantain.records.messages import InputError, command_line
from plantain.report import labels
from plantain.report.gallery import PAGE, PAIR, PAIRS, THUMBNAIL, Selection, leading, select, story_of
from plantain.rubrics import recorded

TEMPLATES = Path(__file__).parent / "templates"
GALLERY = 60
"""Tasks that a report shows by default."""

LISTED = 100
"""Most tasks that the page lists for each state other than success."""


@dataclass(frozen=True, slots=True)
class ReportNumbers:
    """All numbers of a report, without telemetry such as cost and time.

    Attributes:
        composition, judged: Tables 1 and 2 of Med-Banana-50K for this run.
        rounds, findings, outcomes: tasks by round of success and by finding; calls by outcome.
        sources, unsuccessful: images used by dataset; failed, undecided and stopped tasks, at most 100 of each.
        corrections, accepted, turns: readers' corrections; progress of `accepted_per_finding`; tasks by turn.
    """

    composition: Composition
    judged: Judged
    rounds: tuple[RoundRow, ...]
    findings: tuple[FindingRow, ...]
    outcomes: tuple[OutcomeRow, ...]
    sources: tuple[ImagesUsed, ...]
    unsuccessful: Unsuccessful
    corrections: tuple[CorrectedEdit, ...] = ()
    accepted: tuple[AcceptedRow, ...] = ()
    turns: tuple[TurnRow, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report's HTML file, its numbers, and the damaged images that it does not show."""

    path: Path
    numbers: ReportNumbers
    damaged: tuple[str, ...] = ()


def write_report(run: Path, to: Path | None = None) -> Path:
    """Write the report of a run as `make_report` does; return the path of the HTML file."""
    return make_report(run, to).path


def make_report(run: Path, to: Path | None = None) -> WrittenReport:
    """Write the report of a run, also while a build writes to it.

    Args:
        run: folder of the run.
        to: the HTML file; default `report.html` in the run. Numbers are written to the same name with `.json`; values
            that differ between equal runs (cost, latency, tries, sessions) to `.telemetry.json`.

    Returns:
        The HTML file and the numbers in it.

    Raises:
        InputError: the folder is not a run or a benchmark's run, or the page cannot be written.
    """
    target = html_target(to if to is not None else run / "report.html")
    reader = JournalReader.open(run)
    if any(reader.counts(TaskKind.BENCH).values()):
        raise InputError(
            f"{run} is a benchmark's run; its page: {command_line('bench', 'table', run, '--to', 'leaderboard')}"
        )
    with snapshot(reader):
        numbers = gather(reader)
        judges = standings_of(reader)
        selection = select(reader, GALLERY, reader.header.seed)
        first = leading(reader, selection.ids, min(PAIRS, GALLERY))
        pairs = [story_of(reader, reader.task(task), PAIR) for task in first]
        stories = [story_of(reader, reader.task(task), THUMBNAIL) for task in selection.ids]
        damaged = tuple(places_of(reader, reader.blobs.damaged))
        status, spent, sessions = status_summary(reader), costs(reader), reader.sessions()
    html = (
        environment()
        .get_template("report.html.j2")
        .render(
            run=_run(reader.header),
            numbers=numbers,
            selection=selection,
            pairs=pairs,
            stories=stories,
            judges=judges,
            consistency=consistency(judges),
            corrected=corrections_line(numbers.corrections),
            figure3=figure_three(numbers.findings),
            in_run=target.parent == run,
            telemetry_name=target.with_suffix(".telemetry.json").name,
            json_name=target.with_suffix(".json").name,
        )
    )
    write_page(target.with_suffix(".json"), _json(_document(reader.header, numbers, selection, judges)))
    telemetry = {
        "status": status,
        "costs": [asdict(row) for row in spent],
        "sessions": [asdict(row) for row in sessions],
    }
    write_page(target.with_suffix(".telemetry.json"), _json(telemetry))
    write_page(target, html, [(row.dataset, row.licence) for row in numbers.sources], damaged)
    return WrittenReport(target, numbers, damaged)


def write_story(reader: JournalReader, task: TaskRow, to: Path) -> Path:
    """Write one task's page, with larger images and every call of every generation; return its path `to`."""
    story, calls = story_of(reader, task, PAGE, whole=True), reader.calls(task.id)
    template = environment().get_template("task.html.j2")
    html = template.render(run=_run(reader.header), story=story, calls=calls)
    lost = places_of(reader, reader.blobs.damaged)
    write_page(html_target(to), html, [(story.image.dataset, story.image.licence)], lost)
    return to


def story_html(reader: JournalReader, task: TaskRow) -> str:
    """Return a task as HTML with inline styles and no script, for a notebook."""
    story = story_of(reader, task, THUMBNAIL)
    line = restriction([(story.image.dataset, story.image.licence)])
    return line + environment().get_template("notebook.html.j2").render(story=story)


def gather(reader: JournalReader) -> ReportNumbers:
    """Compute the numbers of all tables of a run's report from its journal."""
    weights = {c.name: c.weight for c in recorded(reader.header.frozen).criteria}
    return ReportNumbers(
        composition=table1(reader),
        judged=table2(reader, weights),
        rounds=rounds_to_success(reader),
        findings=by_finding(reader),
        outcomes=call_outcomes(reader),
        sources=tuple(images_used(reader)),
        unsuccessful=unsuccessful(reader, LISTED),
        corrections=corrected_edits(reader),
        accepted=accepted_rows(reader),
        turns=turn_rows(reader),
    )


def _run(header: RunHeader) -> dict[str, object]:
    """Return the run's facts for a page: no random id and no folder, so that equal runs have equal pages."""
    return {"name": header.name, "seed": header.seed, "frozen": header.frozen, "version": header.code_version}


def _document(
    header: RunHeader, numbers: ReportNumbers, selection: Selection, judges: Sequence[Standing]
) -> dict[str, object]:
    counted = asdict(numbers)
    if not numbers.turns:
        del counted["turns"]
    return {
        "format": "plantain report",
        "format_version": 1,
        "run": _run(header),
        "counts": {
            "composition": "tasks",
            "judged": "attempts",
            "rounds": "tasks",
            "findings": "tasks in success, failed, other and rate; attempts in judged and qualified rates",
            "outcomes": "calls",
        },
        **counted,
        "judges": [{"judge": one.judge, "card": one.line, "qualifies": one.qualifies} for one in judges],
        "gallery": asdict(selection),
    }


def _json(document: object) -> str:
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the Jinja environment for the pages of reports and tasks, with its filters."""
    environment = page_environment(TEMPLATES, (TEMPLATES / "filters.js").read_text(encoding="utf-8"))
    environment.filters |= {
        "interval": labels.interval,
        "judge_name": labels.judge_name,
        "fact_words": labels.fact_words,
        "command": labels.command,
        "badge": labels.badge,
        "state_after": state_after,
        "person": lambda judge: judge.removeprefix(PERSON),
    }
    environment.globals |= {
        "STATES": labels.STATES,
        "DECISIONS": labels.DECISIONS,
        "DIRECTIONS": labels.DIRECTIONS,
        "model_note": labels.model_note,
        "LISTED": LISTED,
    }
    return environment


DIRECTION_MARKERS = {"add": "o", "remove": "D"}


def figure_three(rows: Sequence[FindingRow]) -> str:
    """Draw successful and failed tasks by finding as SVG, with the share of attempts accepted by weighted score."""
    ordered = sorted(rows, key=lambda row: (row.modality, row.finding, row.direction), reverse=True)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
        for index, row in enumerate(ordered):
            left.barh(index, row.success, color=SUCCESS, height=0.62)
            left.barh(index, row.failed, left=row.success, color=FAILED, height=0.62)
            _dot(right, index, row.qualified_weighted, row.direction)
        row_axis(left, [_finding_label(row) for row in ordered])
        left.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
        left.set_xlabel("tasks:\nsuccess, failed")
        right.tick_params(axis="y", length=0)
        percent_axis(right)
        right.set_xlabel("attempts qualified\n(weighted)")

    return svg("figure3", 6.4, 1.3 + 0.3 * max(1, len(ordered)), draw)


def _dot(axes: Axes, y: int, rate: Rate, direction: str) -> None:
    if rate.value is None or rate.low is None or rate.high is None:
        return
    axes.plot([rate.low, rate.high], [y, y], color=ACCENT, lw=1.4, solid_capstyle="round", alpha=0.7)
    axes.plot([rate.value], [y], color=ACCENT, marker=DIRECTION_MARKERS.get(direction, "s"), markersize=5.5)


def _finding_label(row: FindingRow) -> str:
    name = row.finding if len(row.finding) <= 26 else row.finding[:25] + "…"
    return f"{name}, {row.direction}"
