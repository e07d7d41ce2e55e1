"""A run in the terminal: Table 1, a list of tasks, and one task's history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from plantain.journal import CallRow, JournalReader, StoredVerdict, TaskRow
from plantain.journal.cards import consistency, standings_of
from plantain.journal.questions.status import ListedTask
from plantain.journal.questions.tables import Composition, table1
from plantain.journal.questions.tasks import SET, anything_judged
from plantain.journal.questions.units import snapshot
from plantain.journal.verdicts import JUDGED_AGAIN, PERSON
from plantain.pages.wording import count, decimal, percent, plain, words
from plantain.records import Attempt, CriterionResult, SourceImage, Verdict, state_after
from plantain.report.gallery import absence, came_back_from, published_in, remark
from plantain.report.labels import DECISIONS, DIRECTIONS, STATES, fact_words, interval, judge_name, modality

STATE_STYLES = {"success": "green", "failed": "red", "undecided": "magenta", "stopped": "yellow"}
UNJUDGED = """nothing was judged in this run: success is the label that its authors published, and edits that they
left out are missing, so it gives no rate (survivorship)"""


def table_one(run: Path, numbers: Composition | None = None) -> Table:
    """Return Table 1 of a run, which counts tasks, as a rich table; `numbers` avoids counting again."""
    with JournalReader.open(run) as reader, snapshot(reader):
        numbers = numbers or table1(reader)
        judged = anything_judged(reader)
        behind = consistency(standings_of(reader)) if judged else " (as published)"
    weighted, unweighted = decimal(numbers.mean_rounds_weighted), decimal(numbers.mean_rounds_unweighted)
    table = Table(
        title="Table 1 (counts tasks)",
        caption=("" if judged else f"{UNJUDGED}\n")
        + f"rate{behind}: success of success and failed, with 95 % interval; other: undecided, not applicable, "
        "stopped, pending\n"
        f"mean rounds of successful tasks: {weighted} over all tasks (last row), {unweighted} as the mean of the rows",
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )
    for heading in ("modality", "task"):
        table.add_column(heading)
    for heading in ("findings", "success", "failed", "other", "rate", "interval", "rounds"):
        table.add_column(heading, justify="right", no_wrap=heading == "rate")
    for row in (*numbers.rows, numbers.total):
        if row is numbers.total:
            table.add_section()
        other = row.undecided + row.not_applicable + row.stopped + row.pending
        table.add_row(
            _text(modality(row.modality)),
            DIRECTIONS.get(row.direction, row.direction),
            *(count(n) for n in (row.findings, row.success, row.failed, other)),
            percent(row.rate.value),
            interval(row.rate),
            decimal(row.mean_rounds),
        )
    return table


def task_table(tasks: Sequence[ListedTask]) -> Table:
    """Return tasks as a rich table that fits a terminal of 80 columns."""
    table = Table(padding=(0, 1, 0, 0))
    table.add_column("task", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("round", justify="right")
    table.add_column("what", max_width=60)
    table.add_column("why not", overflow="fold", max_width=60)
    for task in tasks:
        state = Text(task.state.replace("_", " "), style=STATE_STYLES.get(task.state, ""))
        what = _text(f"{task.direction} {task.finding}")
        table.add_row(task.id, state, str(task.round or ""), what, _text(task.why))
    return table


def story(reader: JournalReader, task: TaskRow) -> RenderableType:
    """Format a task's whole history for rich: every round of all generations with verdict and files, then calls."""
    image = reader.image(task.task.image_id)
    parts: list[RenderableType] = [
        _heading(task, image),
        *([_path("original", reader, image.prepared_sha256, image)] if image.prepared_sha256 else []),
    ]
    attempts = reader.attempts(task.id)
    for attempt in attempts:
        parts.append(_attempt(reader, attempt, image, came_back_from(attempt, attempts)))
        for stored in reader.verdicts(task.id, attempt.generation):
            if stored.round == attempt.round and not stored.decisive:
                parts.append(_other_verdict(stored))
    parts.append(_calls(reader.calls(task.id)))
    return Group(*parts)


def _heading(task: TaskRow, image: SourceImage) -> Panel:
    state = task.state.value
    lines = Text()
    lines.append(f"{STATES[state]}", style=f"bold {STATE_STYLES.get(state, '')}".strip())
    lines.append(f", round {task.round}, generation {task.generation}")
    if task.reason:
        lines.append(f"\n{plain(task.reason)}")
    lines.append(f"\n\nimage    {plain(image.id)} from {plain(image.dataset)}, {image.licence.value}")
    for note in (image.note, remark(task, image)):
        if note:
            lines.append(f"\nnote     {plain(note)}", style="yellow")
    title = _text(
        f"{task.id}  {task.task.finding}, {task.task.direction.value}, {modality(task.task.modality)}"
    )
    return Panel(lines, title=title, title_align="left")


def _attempt(reader: JournalReader, attempt: Attempt, image: SourceImage, same_as: int) -> RenderableType:
    superseded = ", superseded" if attempt.superseded else ""
    text = Text(f"\nGeneration {attempt.generation}, round {attempt.round}{superseded}\n", style="bold")
    text.append(plain(attempt.instruction), style="not bold")
    for name, outcome in (("edit", attempt.edit_outcome), ("judge", attempt.judge_outcome)):
        if outcome is not None and not outcome.ok:
            text.append(f"\n{name}: {outcome.kind.value}: {plain(outcome.reason)}", style="not bold yellow")
    if same_as:
        text.append(f"\ncame back unchanged: the image of round {same_as}", style="not bold yellow")
    paths = [
        _path(name, reader, sha, image)
        for name, sha in (("edited", attempt.edited), ("raw", attempt.raw), ("mask", attempt.mask))
        if sha is not None
    ]
    verdict = [_verdict(attempt.verdict)] if attempt.verdict else []
    published = published_in(reader, attempt)
    return Group(text, *paths, *verdict, *([_verdict(published)] if published else []))


def _path(name: str, reader: JournalReader, sha: str, image: SourceImage) -> Text:
    """Return a line with a blob's path, never broken, so that it can be copied; or the source of a missing one."""
    if why := absence(reader, name, sha, image):
        return Text(f"{name:<8} {plain(why)}", style="dim yellow")
    return Text(f"{name:<8} {reader.blob_path(sha)}", style="dim", no_wrap=True, overflow="ignore")


def _verdict(verdict: Verdict, prefix: str = "") -> Group:
    text = Text(prefix)
    text.append(DECISIONS[verdict.qualified], style=STATE_STYLES[state_after(verdict).value])
    opinion = verdict.observations.opinion
    own = "none" if opinion is None else "qualified" if opinion else "not qualified"
    score = "none" if verdict.score is None else f"{verdict.score:.2f}"
    text.append(
        f", score {score}, all-pass {_yes(verdict.qualified_all_pass)}, "
        f"weighted {_yes(verdict.qualified_weighted)}, own opinion {own}, by {judge_name(plain(verdict.judge))}"
    )
    table = Table(show_header=True, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "criterion", "codes", "evidence"):
        table.add_column(heading, style="dim" if heading == "evidence" else None)
    for criterion, result in verdict.observations.criteria.items():
        table.add_row(
            _mark(result),
            words(criterion),
            ", ".join(code.replace("_", " ") for code in result.codes),
            _text(result.evidence),
        )
    seen = [f"{fact_words(name)}: {_yes(fact)}; " for name, fact in verdict.observations.facts.items()]
    return Group(text, table, Text(f"{''.join(seen)}{plain(verdict.observations.reason)}"))


def _mark(result: CriterionResult) -> Text:
    """Return a mark for passed, failed or unscored, with the number if the criterion has a scale."""
    if result.passed is None:
        return Text("?", style="dim")
    number = "" if result.value is None else f" {result.value:g}"
    return Text(f"✓{number}", style="green") if result.passed else Text(f"✗{number}", style="red")


def _calls(calls: list[CallRow]) -> Table:
    table = Table(
        title="\nCalls: every try", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for heading in ("gen", "round", "try", "step", "model", "served by", "outcome"):
        table.add_column(heading, overflow="fold")
    for heading in ("s", "USD"):
        table.add_column(heading, justify="right", no_wrap=True)
    for call in calls:
        outcome = (
            "open" if call.outcome is None else f"{call.outcome.kind.value} {call.outcome.reason}".strip()
        )
        table.add_row(
            str(call.key.generation),
            str(call.key.round),
            str(call.tries),
            f"{call.key.step.value} {call.key.draw or ''}".strip(),
            _text(call.model),
            _text(call.usage.served_model),
            _text(outcome),
            decimal(call.latency_s),
            decimal(call.cost_usd, 4),
        )
    return table


def _text(text: str) -> Text:
    """Text without markup and control characters."""
    return Text(plain(text))


def _other_verdict(stored: StoredVerdict) -> RenderableType:
    """Return a verdict that does not decide: of a panel's member, a repeated judge, or a reader's correction."""
    verdict = stored.verdict
    if not verdict.judge.startswith(PERSON):
        who = "panel member" if stored.draw < JUDGED_AGAIN else "judged again, does not decide"
        return _verdict(verdict, f"{who}: ")
    text = Text(f"corrected by hand by {plain(verdict.judge.removeprefix(PERSON))}: ")
    text.append(SET[bool(verdict.qualified)], style="green" if verdict.qualified else "red")
    text.append(f": {plain(verdict.observations.reason)}")
    return text


def _yes(value: bool | None) -> str:
    return "undecided" if value is None else "yes" if value else "no"
