"""`plantain bench table`: the leaderboard of a run for a terminal, a paper, a spreadsheet, a script, a browser."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records import InputError
from plantain.records.counts import counted

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from plantain.bench.leaderboard.table_rows import Scores
    from plantain.bench.leaderboard.tables import Table
    from plantain.metrics.statistics.bradley_terry import Comparison

app = application()


@app.command(epilog="Example: plantain bench table runs/bench --to leaderboard")
def table(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or of published scores.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Rows as JSON, one per model, organ and metric.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="The same rows and those by task and by size of the region, as CSV.")
    ] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Table 2 as LaTeX (booktabs).")] = False,
    as_html: Annotated[bool, typer.Option("--html", help="Write the page (the default with --to).")] = False,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            help="Rows by organ, task or region (its size), for --json; pairs: strengths, two at a time.",
        ),
    ] = "organ",
    judge: Annotated[
        str | None,
        typer.Option("--judge", metavar="NAME", help="Whose EA and VQ. Default: the best informed one."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Folder for page, JSON, CSV, LaTeX and figures."),
    ] = None,
    benchmark: Annotated[
        Path | None, typer.Option("--bench", metavar="PATH", help="Where the benchmark is now, for pictures.")
    ] = None,
    cards: Annotated[
        list[Path] | None,
        typer.Option("--card", metavar="FILE", help="A judge's card.json, kept beside the run."),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option("--study", metavar="STUDY", help="A reader study of this run: what people preferred."),
    ] = None,
    gallery: Annotated[int, typer.Option("--gallery", min=0, help="Samples to show at most.")] = 8,
) -> None:
    """Make the leaderboard: means with intervals, coverage and bounds, per organ, per task and overall."""
    if sum((as_json, as_csv, as_latex)) > 1:
        raise InputError("--json, --csv and --latex print one thing each: choose one")
    if by not in ("organ", "task", "region", "pairs"):
        raise InputError(f"--by {by}: organ, task, region or pairs")
    from plantain.journal.cards import keep_cards

    keep_cards(run, cards or ())
    compared = _compared(study)
    path = None
    if as_html or to is not None:
        from plantain.bench.leaderboard.pages import write_leaderboard

        path = write_leaderboard(
            run, to, judge=judge, benchmark=benchmark, gallery=gallery, compared=compared
        )
        typer.echo(f"leaderboard: {path}", err=as_json or as_csv or as_latex)
    if path is not None and not (as_json or as_csv or as_latex):
        return
    from plantain.bench.leaderboard.tables import make_table

    made = make_table(_scores(run), judge)
    if by == "pairs":
        _print_pairs(made, compared, as_json=as_json, as_csv=as_csv, as_latex=as_latex)
        return
    _print(run, made, as_json=as_json, as_csv=as_csv, as_latex=as_latex, by=by)
    if not (as_json or as_csv or as_latex):
        _print_pairwise(made, compared)


def _compared(study: Path | None) -> list[Comparison]:
    """What a study's readers said of two arms side by side."""
    if study is None:
        return []
    from plantain.cli.bench.study_ratings import study_pairs

    return study_pairs(study)


def _print_pairs(
    made: Table, compared: Sequence[Comparison], *, as_json: bool, as_csv: bool, as_latex: bool
) -> None:
    """Strengths of models alone, in the form that was asked for."""
    from plantain.bench.leaderboard.latex import csv_text, table_pairwise
    from plantain.bench.leaderboard.pairwise import pairwise_rows, pairwise_tables

    tables = pairwise_tables(made, compared)
    rows = list(pairwise_rows(tables))
    if as_json:
        import orjson

        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
    elif as_csv:
        sys.stdout.write(csv_text(rows))
    elif as_latex:
        sys.stdout.write(table_pairwise(tables))
    elif tables:
        _print_pairwise(made, compared)
    if not tables:
        typer.echo("nobody has compared two models, and no judge has scored two", err=True)


def _print_pairwise(made: Table, compared: Sequence[Comparison]) -> None:
    """Strengths of models below their scores: nothing where nobody compared two."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    from plantain.bench.leaderboard.pairwise import pairwise_rows, pairwise_tables
    from plantain.cli.terminal.tables import print_table
    from plantain.pages.wording import DASH, plain

    for found in pairwise_tables(made, compared):
        shown = RichTable(
            title=f"two at a time, by {plain(found.source)}",
            caption="Bradley-Terry strength in logits, mean 0, and 95 % interval\n"
            f"{found.strengths.comparisons:,} comparisons, {found.rule}"
            + (f"\n{found.lacking}" if found.lacking else ""),
            caption_justify="left",
            box=SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        shown.add_column("rank", justify="right")
        shown.add_column("model", overflow="fold")
        shown.add_column("strength", justify="right")
        for row in pairwise_rows([found]):
            low, high = row["rank_low"], row["rank_high"]
            bounds = "" if row["low"] is None else f" ({row['low']:+z.2f} to {row['high']:+z.2f})"
            shown.add_row(
                DASH if low is None else str(low) if low == high else f"{low} to {high}",
                plain(str(row["model"])),
                f"{row['strength']:+z.2f}{bounds}",
            )
        print_table(shown)


def _scores(run: Path) -> Scores:
    from plantain.bench.generate.runfile import BenchRun
    from plantain.bench.leaderboard.published import is_published, published_scores
    from plantain.bench.leaderboard.table_rows import read_scores

    if is_published(run):
        return published_scores(run)
    with BenchRun.open(run) as opened:
        return read_scores(opened)


def _print(run: Path, made: Table, *, as_json: bool, as_csv: bool, as_latex: bool, by: str) -> None:
    from plantain.bench.leaderboard.latex import table_csv, table_two
    from plantain.bench.leaderboard.table_json import table_json

    kinds = {"organ": made.cells.values(), "task": made.tasks.values(), "region": made.regions.values()}
    cells = list(kinds[by])
    if as_json:
        import orjson

        print(orjson.dumps(table_json(cells, made), option=orjson.OPT_INDENT_2).decode())
    elif as_csv:
        sys.stdout.write(
            table_csv([*made.cells.values(), *made.tasks.values(), *made.regions.values()], made)
        )
    elif as_latex:
        sys.stdout.write(table_two(made))
    else:
        from plantain.bench.leaderboard.published import is_published, plain_against_published
        from plantain.cli.terminal.tables import print_table

        if made.unfinished:
            again = shlex.join(["plantain", "bench", "score", str(run)])
            print(f"scoring is not finished: {made.unfinished} - `{again}` goes on")
        print_table(leaderboard(made))
        for line in made.card_lines:
            print(f"judge's card: {line}")
        if made.barred:
            print(
                f"no best and no ranks by {', '.join(sorted(made.barred))}: the judge has not passed its gate"
            )
        if is_published(run):
            print(plain_against_published(made.scores).line)


def leaderboard(made: Table) -> RichTable:
    """Table 2 for a terminal: overall means with intervals, models by rank if they have one, baselines below a line."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    from plantain.bench.leaderboard.table_rows import baseline, given_region
    from plantain.bench.leaderboard.tables import OVERALL, places_of_rank, why_no_interval
    from plantain.pages.wording import plain

    judged = f"EA, VQ: {made.judge}" if made.judge else "no judge has scored this run"
    synthetic, truths = made.scores.truths
    if synthetic:
        judged += f"\nsynthetic: {synthetic} of {counted(truths, 'true image')}"
    shown = RichTable(
        title=f"{plain(made.scores.benchmark)}: {counted(len(made.scores.samples), 'sample')}",
        caption=f"{judged}\nmean and 95 % interval; bold: best, underlined: second, where told apart",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    unsure = why_no_interval(made, OVERALL)
    if unsure:
        shown.caption = f"{shown.caption}\nno interval: {'; '.join(unsure)}"
    ranked = made.ranked
    if ranked is None:
        shown.caption = f"{shown.caption}\nrows stand as recorded: no order of models is told apart"
    else:
        shown.add_column("rank", justify="right")
    shown.add_column("model", overflow="fold")
    for measure in made.main:
        shown.add_column(measure.name, justify="right")
    shown.add_column("coverage", justify="right")
    everyone = made.general
    for place, arm in enumerate(everyone):
        cells = [made.cell(arm.label, OVERALL, measure.name) for measure in made.main]
        texts = []
        for cell in cells:
            if cell is None or cell.estimate.value is None:
                texts.append(Text("–", style="dim"))
                continue
            found = cell.estimate
            bounds = "" if found.low is None else f" {found.low:z.2f}–{found.high:z.2f}"
            style = {"best": "bold", "second": "underline"}.get(cell.mark, "")
            texts.append(Text.assemble((f"{cell.estimate.value:.2f}", style), (bounds, "dim")))
        coverage = min((cell.coverage for cell in cells if cell), default=None)
        after = everyone[place + 1 : place + 2]
        last = any((baseline(one), given_region(one)) != (baseline(arm), given_region(arm)) for one in after)
        own = made.cell(arm.label, OVERALL, ranked.name) if ranked else None
        shown.add_row(
            *([places_of_rank(own)] if ranked else []),
            Text(
                plain(arm.label) + " (told where)" * given_region(arm), style="dim" if baseline(arm) else ""
            ),
            *texts,
            "–" if coverage is None else f"{100 * coverage:.0f} %",
            end_section=last,
        )
    return shown
