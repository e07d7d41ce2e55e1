"""`plantain bench table`: the leaderboard as terminal table or JSON, or as a folder with HTML, CSV and LaTeX.

With --paper MedEBench's Tables 2, 3, 4 and 7 by name, their missing parts and the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from rich.table import Table as RichTable
from rich.text import Text

from plantain.bench.benchmark.medebench import ORGANS
from plantain.bench.leaderboard.attention_page import (
    failure_rows,
    grounding_rows,
    missing_maps,
    recorded_arms,
)
from plantain.bench.leaderboard.export import difference_text, table_json
from plantain.bench.leaderboard.humans import read_ratings
from plantain.bench.leaderboard.learning import trained_rows
from plantain.bench.leaderboard.measures import ATTENTION, STRICTER
from plantain.bench.leaderboard.page import read_tables, reasons_of, write_leaderboard
from plantain.bench.leaderboard.published import published_files, published_scores, read_published
from plantain.bench.leaderboard.ranking import rank as compare
from plantain.bench.leaderboard.scores import is_baseline, is_given_region
from plantain.bench.leaderboard.studies import ShotRow, shot_studies
from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell, make_table
from plantain.cli.bench.rank import correlations
from plantain.cli.terminal.options import AsJson, BenchPath, ScoringJudge
from plantain.cli.terminal.tables import TerminalConsole, folded, print_json, print_table, right
from plantain.journal import JournalReader
from plantain.pages.wording import DASH, decimal, percent, plain
from plantain.records import InputError
from plantain.records.messages import (
    COMMANDS,
    command_line,
    counted,
    next_line,
    settings_typed,
    typed,
    with_settings,
)


def table(
    runs: list[Path] = typer.Argument(
        ..., metavar="RUN...", help="Runs of one benchmark; published JSON files alone, or after runs."
    ),
    as_json: AsJson = False,
    judge: ScoringJudge = None,
    to: Path | None = typer.Option(None, metavar="DIR", help="Folder for page, figures, CSV and LaTeX."),
    benchmark: BenchPath = None,
    against: str = typer.Option("copy-input", metavar="MODEL", help="The arm to compare the others with."),
    paper: bool = typer.Option(
        False, "--paper", help="MedEBench's Tables 2, 3, 4 and 7, and their missing parts."
    ),
) -> None:
    """Make the leaderboard: means with intervals and coverage, per organ, per task and overall.

    Several runs of the same benchmark share one table and one page. Published scores get a table of their own.

    Example: plantain bench table runs/bench --to leaderboard
    """
    if as_json and paper:
        raise InputError("--json and --paper exclude each other: choose one")
    if len({run.resolve() for run in runs}) < len(runs):
        raise InputError("bench table: the same run is given twice")
    published = [] if published_files(runs[0]) else [path for path in runs if published_files(path)]
    if published and (as_json or to is not None):
        raise InputError(f"{published[0]}: published scores with a run are only printed in the terminal")
    runs = [run for run in runs if run not in published]

    if to is not None:
        path = write_leaderboard(runs, to, judge=judge, benchmark=benchmark, against=against)
        typer.echo(f"leaderboard: {path}", err=as_json)
        if not as_json:
            if not published_files(runs[0]):
                typer.echo(next_line("view", runs[0]))
            return
    made = make_table(read_tables(runs), judge, against)
    if as_json:
        print_json(table_json(made.cells.values(), made))
    elif paper:
        print("Table 2: by organ, then overall")
        for organ in made.scores.organs:
            print_table(leaderboard(made, organ))
        _print(runs, made)
        for line in _missing_of_table_two(runs, made):
            print(f"missing from Table 2: {line}")
        _print_table_three(runs, made)
        _print_table_four(runs, made)
        _print_table_seven(made)
    else:
        _print(runs, made)
        scored = any(cell.estimate.value is not None for cell in made.cells.values())
        if not published:
            print(f"next: {typed.get()} --to leaderboard" if scored else next_line("bench", "score", runs[0]))
    if published:
        _print(published, make_table(published_scores(*published)))


def _commands(run: Path) -> str | None:
    """Return the commands recorded in a run; None for published scores."""
    if published_files(run):
        return None
    with JournalReader.open(run) as reader:
        return reader.meta(COMMANDS)


def _print(runs: list[Path], made: Table) -> None:
    print_table(leaderboard(made))
    for line in made.blind.values():
        TerminalConsole().print(Text(line, style="bold red"), soft_wrap=True)
    if made.against and made.main:
        print_table(differences(made))
    for line in made.card_lines:
        print(f"judge's card: {with_settings(line, runs[0], _commands(runs[0]), 'bench score')}")
    if made.barred:
        print(f"no best and no ranks by {', '.join(sorted(made.barred))}: the judge has not passed its gate")
    for remark in made.scores.remarks:
        print(remark)


def leaderboard(made: Table, organ: str = OVERALL) -> RichTable:
    """Format one organ's or the overall Table 2 for a terminal: means with intervals, baselines below a line."""
    samples = [sample for sample in made.scores.samples if organ in (OVERALL, sample.organ)]
    name = plain(made.scores.benchmark if organ == OVERALL else organ)
    ranked = made.ranked
    shown = RichTable(
        *right(*(["rank"] if ranked else [])),
        *folded("model"),
        *right(*(measure.name for measure in made.main), "coverage"),
        title=f"{name}: {counted(len(samples), 'sample')}",
        caption="\n".join(_caption(made)) if organ == OVERALL else None,
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )
    for arms in made.groups.values():
        for arm in arms:
            cells = [made.cell(arm.label, organ, measure.name) for measure in made.main]
            coverage = min((cell.coverage for cell in cells if cell), default=None)
            own = made.cell(arm.label, organ, ranked.name) if ranked else None
            name = plain(arm.label) + " (receives the region)" * is_given_region(arm)
            shown.add_row(
                *([own.rank_text if own else ""] if ranked else []),
                Text(name, style="dim" if is_baseline(arm) else ""),
                *map(_number, cells),
                percent(coverage),
            )
        shown.add_section()
    return shown


def differences(made: Table) -> RichTable:
    """Format each model's difference from the reference over all samples, with interval and p, for a terminal."""
    shown = RichTable(
        *folded("model"),
        *right(*(measure.name for measure in made.main)),
        title=f"minus {plain(made.reference)}, sample by sample",
        caption="difference, its 95 % interval, and p after Holm's correction over the models",
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )
    for arm in made.general:
        pairs = [made.against.get((arm.label, measure.name)) for measure in made.main]
        if any(pairs):
            shown.add_row(plain(arm.label), *map(difference_text, pairs))
    return shown


def _caption(made: Table) -> list[str]:
    synthetic, truths = made.scores.truths
    unsure = made.why_no_interval()
    published = [measure.name for measure in made.main if measure.name.startswith(("Accuracy_", "Quality_"))]
    judged = f"{', '.join(published)}, published protocol" if published else "EA, VQ"
    lines = [
        f"{judged}: {made.judge}"
        if made.judge
        else "no judge has scored this run: bench score --judge adds EA and VQ" * bool(made.scores.origins),
        STRICTER if made.measure("CP (strict)") else "",
        f"synthetic: {synthetic} of {counted(truths, 'true image')}" if synthetic else "",
        "mean and 95 % interval; bold: best, underlined: second, where significant",
        f"no interval: {'; '.join(unsure)}" if unsure else "",
        ""
        if made.ranked or made.blind or not made.main
        else "in recorded order: no difference between models is significant",
    ]
    return [line for line in lines if line]


def _number(cell: TableCell | None) -> Text:
    if cell is None or cell.estimate.value is None:
        return Text("–", style="dim")
    found = cell.estimate
    bounds = "" if found.low is None else f" {found.low:z.2f}–{found.high:z.2f}"
    style = {"best": "bold", "second": "underline"}.get(cell.mark, "")
    return Text.assemble((f"{found.value:.2f}", style), (bounds, "dim"))


def _missing_of_table_two(runs: Sequence[Path], made: Table) -> Iterator[str]:
    if absent := [organ for organ in ORGANS if organ not in made.scores.organs]:
        yield f"{', '.join(absent)}: the benchmark has no sample of them"
    if made.judge is None:
        yield "EA, VQ: no judge has scored" + "; bench score --judge adds one" * bool(made.scores.origins)
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


def _print_table_four(runs: Sequence[Path], made: Table) -> None:
    if not recorded_arms(made.scores):
        why = "no outputs of an open editor (diffusers/…)"
        if any(arm.model.startswith("diffusers/") for arm in made.scores.arms):
            settings = settings_typed(_commands(runs[0]), "bench generate", "bench attention")
            why = f"not measured yet; {command_line('bench', 'attention', runs[0], *settings)}"
        print(f"Table 4: missing: {why}")
        return
    print("Table 4: attention and region")
    print_grounding(made)


def print_grounding(made: Table) -> None:
    """Print Table 4: the mean of each measure of attention, overall and per organ; missing maps, and failures."""
    names = [short for short, _ in ATTENTION.values()]
    shown = RichTable(*folded("model"), "organ", *right("n", *names))
    for row in grounding_rows(made):
        if not row[0].task:
            means = (decimal(cell.estimate.value, 3) for cell in row)
            shown.add_row(plain(row[0].model), row[0].organ, str(row[0].estimate.n), *means)
    print_table(shown)
    for arm, reason, count in missing_maps(made.scores):
        print(f"missing from Table 4: {plain(arm)}: {count} without a map: {plain(reason)}")
    for failures in failure_rows(made):
        print(plain(failures.split_line))


def _print_table_seven(made: Table) -> None:
    if rows := trained_rows(made):
        _print_shots("Table 7 (a): training samples of each task", rows)
    else:
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
    numbers, metrics = sorted({row.shots for row in rows}), list(dict.fromkeys(row.metric for row in rows))
    found = {(row.task, row.shots, row.metric): row for row in rows}
    print(title)
    shown = RichTable("task", *right(*map(str, numbers)))
    for task in sorted({row.task for row in rows}, key=lambda task: (task == "", task)):
        cells = (" / ".join(_shot(found.get((task, n, m))) for m in metrics) for n in numbers)
        shown.add_row(plain(task) or "all", *cells)
    print_table(shown)
    print(f"{' / '.join(metrics)}; *: differs from the fewest after Holm's correction")


def _shot(row: ShotRow | None) -> str:
    if row is None or row.estimate.value is None:
        return DASH
    return f"{row.estimate.value:z.2f}" + "*" * row.differs
