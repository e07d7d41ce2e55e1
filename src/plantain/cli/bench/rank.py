"""`plantain bench rank`: agreement of metrics with raters, and of raters with each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer
from rich.table import Table as RichTable

from plantain.bench.leaderboard.humans import DIMENSIONS, HumanRatings, read_ratings
from plantain.bench.leaderboard.page import read_tables
from plantain.bench.leaderboard.published import published_files, read_published
from plantain.bench.leaderboard.ranking import Correlation, Ranking, ranking_json
from plantain.bench.leaderboard.ranking import rank as compare
from plantain.bench.leaderboard.tables import make_table
from plantain.cli.terminal.options import AsJson, ScoringJudge
from plantain.cli.terminal.tables import print_json, print_table, right
from plantain.pixels.arrays import Floats
from plantain.records import InputError
from plantain.records.messages import command_line, counted, next_line
from plantain.review.results.rows import Row, judged_rows
from plantain.review.study import ReaderTask, open_study
from plantain.rubrics import MEDEBENCH


def rank(
    run: Path = typer.Argument(..., metavar="RUN", help="A scored run, or published scores (JSON)."),
    more: list[Path] | None = typer.Argument(None, metavar="[FILE]...", help="Further files of ratings."),
    ratings: list[Path] | None = typer.Option(
        None, metavar="FILE", help="A rater's CSV, or published ranks."
    ),
    study: Path | None = typer.Option(None, metavar="STUDY", help="A reader study of this run, not files."),
    judge: ScoringJudge = None,
    as_json: AsJson = False,
) -> None:
    """Compare metrics with raters, image by image (Table 3), and raters with each other.

    A rater's CSV has the columns sample, model, and EA, CP, VQ (higher is better) or EA_rank, CP_rank, VQ_rank.

    Example: plantain bench rank runs/bench --ratings ana.csv --ratings ben.csv
    """
    files = [*(ratings or []), *(more or [])]
    sources = [run]
    if published := [file for path in (run, *files) for file in published_files(path)]:
        ranks = [file for file in published if read_published(file).ranks]
        files = [*ranks, *(file for file in files if not published_files(file))]
        if published_files(run):
            sources = [*(file for file in published if file not in ranks), *ranks]
    if not files and study is None:
        if published:
            raise InputError(
                f"{published[0]}: has scores of metrics and judges, no ranks by people; add a file of ranks "
                "(published: human_ranked_scores.json) or a rater's CSV. To compare these scores with a run: "
                + command_line("bench", "table", "RUN", published[0])
            )
        raise InputError(
            "--ratings: name a CSV file for each rater or published ranks (JSON); or --study: a reader study, made by "
            + command_line("review", "new", "STUDY", "--from", run, "--task", "rank")
        )
    if files and study is not None:
        raise InputError("--study replaces --ratings; give only one of them")

    scores = read_tables(sources)
    samples, models = [s.id for s in scores.samples], [arm.label for arm in scores.arms]
    if study is not None:
        given = study_ratings(study, samples, models)
    else:
        given = read_ratings(files, samples, models)
    found = compare(make_table(scores, judge), given)
    if not found.rows and not found.agreement:
        raise InputError(f"{run}: has ranks by one rater only; add a run or published scores to compare")
    if as_json:
        print_json(ranking_json(found))
        return
    print_table(correlations(found))
    if len({row.organ for row in found.organs}) > 1:
        print_table(_by_organ(found))
    for remark in found.remarks:
        print(remark)
    for name, pairs in found.agreement.items():
        for raters, agreed in pairs.items():
            print(f"agreement of {' and '.join(raters)} in {name}: {_correlation(agreed)}")
    if not found.agreement:
        print("one rater: no agreement between raters")
    if not published_files(run):
        print(next_line("bench", "table", run))


def study_ratings(folder: Path, samples: Sequence[str], models: Sequence[str]) -> HumanRatings:
    """Read a study's ratings of this run's models: main answers to `rate` by MedEBench's rubric, and to `rank`.

    Raises:
        InputError: not a study, or none of its answers orders this run's models.
    """
    rows = judged_rows(open_study(folder), ReaderTask.RATE, ReaderTask.RANK)
    if not rows:
        raise InputError(
            f"--study {folder}: no answers to rank or rate yet: {command_line('review', 'serve', folder)}"
        )
    place, arm = {name: i for i, name in enumerate(samples)}, {name: i for i, name in enumerate(models)}
    readers = sorted({row.reader for row in rows})
    tables = {name: np.full((len(readers), len(samples), len(models)), np.nan) for name in DIMENSIONS}
    for row in rows:
        if row.source in place:
            _enter(tables, row, (readers.index(row.reader), place[row.source]), arm)
    ratings = HumanRatings.of(readers, models, tables)
    if not ratings.values:
        raise InputError(
            f"--study {folder}: none of its answers orders this run's outputs; make it with --from the run and "
            "--task rank, or --task rate --rubric medebench"
        )
    return ratings


def _enter(tables: dict[str, Floats], row: Row, at: tuple[int, int], arm: dict[str, int]) -> None:
    """Enter one answer at (reader, sample), of the arms that it rates."""
    if row.task is ReaderTask.RANK:
        for model, rank in zip(row.slots, row.value["ranks"], strict=True):
            if model in arm:
                tables[row.dimension][*at, arm[model]] = -rank
    elif row.model in arm:
        for criterion in MEDEBENCH.criteria:
            score = row.value["scores"].get(criterion.name)
            if criterion.short in tables and score is not None:
                tables[criterion.short][*at, arm[row.model]] = score


def correlations(found: Ranking) -> RichTable:
    """Format the correlations of metrics with raters (MedEBench's Table 3) for a terminal."""
    dimensions = list(found.images)
    shown = RichTable(
        "metric",
        *right(*dimensions),
        title="Table 3: rank correlation with raters, mean over images",
        caption=f"{counted(len(found.raters), 'rater')}, {counted(len(found.models), 'model')}; images "
        + ", ".join(f"{name} {n}" for name, n in found.images.items())
        + "\nSpearman's rho, tie-corrected, and its 95 % interval / rho by the paper's formula (1), which ignores ties"
        "\n(expected over ties broken at random)",
        caption_justify="left",
    )
    by_metric: dict[str, dict[str, str]] = {}
    for row in found.rows:
        by_metric.setdefault(row.name, {})[row.dimension] = _correlation(row.found)
    for metric, cells in by_metric.items():
        shown.add_row(metric, *(cells[name] for name in dimensions))
    return shown


_OWN = {"EA": ("EA", "Accuracy_D", "Accuracy_P"), "CP": ("CP",), "VQ": ("VQ", "Quality_D", "Quality_P")}
"""Columns of Table 2 by dimension: by our judge, or by the published protocol."""


def _by_organ(found: Ranking) -> RichTable:
    """Return each dimension by its own column of Table 2, organ by organ; the JSON has all metrics."""
    title = "By organ: EA, CP and VQ with raters"
    shown = RichTable("organ", *right(*found.images), title=title)
    own = [row for row in reversed(found.organs) if row.metric in _OWN[row.dimension]]
    cells = {(row.organ, row.dimension): row for row in own}
    for organ in dict.fromkeys(row.organ for row in found.organs):
        rows = [cells.get((organ, name)) for name in found.images]
        shown.add_row(organ, *(_correlation(row.found) if row else "–" for row in rows))
    return shown


def _correlation(found: Correlation) -> str:
    rho, plain = found.spearman, found.formula_1.value
    if rho.value is None:
        return "–"
    bounds = "" if rho.low is None else f" ({rho.low:+z.2f} to {rho.high:+z.2f})"
    return f"{rho.value:+z.2f}{bounds} / {'–' if plain is None else f'{plain:+z.2f}'}"
