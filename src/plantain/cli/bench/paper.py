"""`plantain bench table --paper`: MedEBench's Tables 2, 3, 4 and 7 by name, their missing parts and the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable

from plantain.bench.benchmark.medebench import ORGANS
from plantain.bench.leaderboard.attention_page import (
    GroundingRow,
    failure_rows,
    grounding_rows,
    missing_maps,
)
from plantain.bench.leaderboard.export import shot_grid
from plantain.bench.leaderboard.humans import read_ratings
from plantain.bench.leaderboard.learning import learning_of
from plantain.bench.leaderboard.measures import ATTENTION
from plantain.bench.leaderboard.page import reasons_of
from plantain.bench.leaderboard.published import published_files, read_published
from plantain.bench.leaderboard.ranking import rank as compare
from plantain.bench.leaderboard.studies import ShotRow, shot_studies
from plantain.bench.leaderboard.tables import OVERALL, Table
from plantain.cli.bench.rank import correlations
from plantain.cli.terminal.tables import print_table
from plantain.pages.wording import decimal, plain
from plantain.records import InputError
from plantain.records.messages import command_line


def print_rest_of_paper(runs: Sequence[Path], made: Table, judge: str | None) -> None:
    """Print the missing parts of Table 2, then Tables 3, 4 and 7, or why one of them is missing."""
    for line in _missing_of_table_two(runs, made):
        print(f"missing from Table 2: {line}")
    _print_table_three(runs, made)
    _print_table_four(runs, made, judge)
    _print_table_seven(runs, made, judge)


def _missing_of_table_two(runs: Sequence[Path], made: Table) -> Iterator[str]:
    if absent := [organ for organ in ORGANS if organ not in made.scores.organs]:
        yield f"{', '.join(absent)}: the benchmark has no sample of them"
    if made.judge is None:
        yield "EA, VQ: no judge has scored; bench score --judge adds one"
    elif not any(one.name.startswith(("EA", "Accuracy_")) for one in made.main):
        yield f"EA: {plain(made.judge)} scored no output; {command_line('bench', 'score', runs[0])} prints the reasons"
    if made.measure("CP") is None:
        line = "CP: no output has a masked SSIM, which needs a region"
        score = command_line("bench", "score", runs[0], "--metrics", "cp_reference")
        yield line if published_files(runs[0]) else f"{line}; {score}"
    for arm in made.general:
        for measure in made.main:
            cell = made.cell(arm.label, OVERALL, measure.name)
            if cell is None or not (lost := cell.samples - cell.scored):
                continue
            counted = reasons_of(cell, made.scores, measure.stored)
            why = ", ".join(f"{plain(reason)} ({n})" for reason, n in counted) or "not scored yet"
            yield f"{plain(arm.label)}, {measure.name}: {lost} of {cell.samples} outputs: {why}"


def _print_table_three(runs: Sequence[Path], made: Table) -> None:
    ranks = [file for run in runs for file in published_files(run) if read_published(file).ranks]
    if not ranks:
        print("Table 3: missing: the runs contain no ranks by raters; bench rank --ratings reads them")
        return
    samples, models = [s.id for s in made.scores.samples], [arm.label for arm in made.scores.arms]
    shown = correlations(compare(made, read_ratings(ranks, samples, models)))
    print(shown.title)
    shown.title = None
    print_table(shown)


def _print_table_four(runs: Sequence[Path], made: Table, judge: str | None) -> None:
    rows = grounding_rows(made.scores)
    if not rows:
        open_editors = any(arm.model.startswith("diffusers/") for arm in made.scores.arms)
        advice = command_line("bench", "attention", runs[0])
        why = f"not measured yet; {advice}" if open_editors else "no outputs of an open editor (diffusers/…)"
        print(f"Table 4: missing: {why}")
        return
    print("Table 4: attention and region")
    print_table(grounding_table(rows))
    for arm, reason, count in missing_maps(made.scores):
        print(f"missing from Table 4: {plain(arm)}: {count} without a map: {plain(reason)}")
    for row in failure_rows(made.scores, judge):
        print(plain(row.split_line))


def grounding_table(rows: Sequence[GroundingRow]) -> RichTable:
    """Return Table 4 for a terminal: the mean of each measure of attention, overall and per organ."""
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("model", overflow="fold")
    shown.add_column("organ")
    for heading in ("n", *(short for short, _ in ATTENTION.values())):
        shown.add_column(heading, justify="right")
    for row in rows:
        if not row.task:
            means = (decimal(row.estimates[name].value, 3) for name in ATTENTION)
            shown.add_row(plain(row.arm), row.organ, str(row.estimates["iou"].n), *means)
    return shown


def _print_table_seven(runs: Sequence[Path], made: Table, judge: str | None) -> None:
    try:
        _print_shots("Table 7 (a): training samples of each task", learning_of(made.scores, judge).rows)
    except InputError:
        print(
            "Table 7 (a): missing: no models trained on different numbers of samples; train finetune makes them"
        )
    studies = shot_studies(made)
    for name, rows in studies.items():
        _print_shots(f"Table 7 (b): demonstrations in the prompt of {plain(name)}", rows)
    if not studies:
        print(
            "Table 7 (b): missing: no arms with different numbers of demonstrations; bench generate --shots adds them"
        )


def _print_shots(title: str, rows: Sequence[ShotRow]) -> None:
    numbers, metrics, cells = shot_grid(rows)
    print(title)
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("task")
    for number in numbers:
        shown.add_column(str(number), justify="right")
    for task, row in cells.items():
        shown.add_row(plain(task) or "all", *row)
    print_table(shown)
    print(f"{' / '.join(metrics)}; *: differs from the fewest after Holm's correction")
