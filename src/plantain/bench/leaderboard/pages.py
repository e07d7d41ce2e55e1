"""Writes a leaderboard: one HTML file, complete in itself, with its numbers beside it as JSON, CSV, LaTeX and SVG."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.arms import Arm
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard import figures
from plantain.bench.leaderboard.demonstrated import ShotRow, shot_rows, studies
from plantain.bench.leaderboard.gallery import GridStory, SampleStory, sample_stories, sweep_stories
from plantain.bench.leaderboard.latex import csv_text, table_csv, table_pairwise, table_seven, table_two
from plantain.bench.leaderboard.measures import MAIN
from plantain.bench.leaderboard.pairwise import PairwiseTable, pairwise_rows, pairwise_tables
from plantain.bench.leaderboard.published import (
    is_published,
    plain_against_published,
    published_scores,
    published_stories,
)
from plantain.bench.leaderboard.sweeps import Sweep, sweeps
from plantain.bench.leaderboard.table_json import table_json
from plantain.bench.leaderboard.table_rows import Scores, baseline, given_region, read_scores
from plantain.bench.leaderboard.tables import (
    MACRO,
    OVERALL,
    Table,
    TableCell,
    make_table,
    places_of_rank,
    region_size,
    why_no_interval,
)
from plantain.bench.leaderboard.what_was_run import EditorRun, editor_runs
from plantain.journal.questions.benchmark import edit_records
from plantain.metrics.statistics.bradley_terry import Comparison
from plantain.metrics.statistics.means import Estimate
from plantain.pages.drawing import printed
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pages.wording import DASH
from plantain.records import InputError
from plantain.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
GALLERY = 8
"""Samples that a leaderboard shows unless told otherwise."""

REASONS = 3
"""Of outputs without a score, that a cell names."""

PAGE = "leaderboard.html"


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Everything that a page shows.

    Attributes:
        table: the numbers.
        shots: rows of each few-shot study by name; sweeps: of parameters.
        figures: SVG by name.
        samples, grids: with pictures; empty where the benchmark's folder is not there, and `absent` says so.
        remarks: what else a reader should know, a line each.
        pairwise: strengths of models, by people and by what each judge's scores imply.
        editors: what was run as each open editor.
    """

    table: Table
    shots: dict[str, list[ShotRow]]
    sweeps: list[Sweep]
    figures: dict[str, str]
    samples: list[SampleStory]
    grids: list[GridStory]
    absent: str = ""
    remarks: tuple[str, ...] = ()
    pairwise: tuple[PairwiseTable, ...] = ()
    editors: tuple[EditorRun, ...] = ()


def write_leaderboard(
    run: Path,
    to: Path | None = None,
    *,
    judge: str | None = None,
    benchmark: Path | None = None,
    gallery: int = GALLERY,
    remarks: Sequence[str] = (),
    compared: Sequence[Comparison] = (),
) -> Path:
    """Writes the leaderboard of a bench run; works while it is being scored.

    Args:
        run: folder of the run, or of MedEBench's published scores.
        to: a folder; default the run itself.
        judge: whose scores are EA and VQ, see `make_table`.
        benchmark: where the benchmark's pictures are; default where the run found them.
        gallery: samples to show at most.
        remarks: lines for the top of the page.
        compared: people's comparisons of its arms, two at a time.

    Returns:
        Path of the HTML file. Beside it stand `leaderboard.json`, `.csv`, `.tex` and the figures as SVG.

    Raises:
        InputError: not a bench run, no such judge, or the folder cannot be written to.
    """
    folder = to if to is not None else run
    target = html_target(folder / PAGE)
    if is_published(run):
        table = make_table(published_scores(run), judge)
        board = replace(gather(table, None, None, 0), samples=published_stories(run, table, gallery))
        remarks = (*remarks, plain_against_published(table.scores).line)
    else:
        with BenchRun.open(run) as opened:
            table = make_table(read_scores(opened), judge)
            board = gather(table, opened, benchmark, gallery)
    pairwise = tuple(pairwise_tables(table, compared))
    board = replace(board, remarks=tuple(remarks), pairwise=pairwise)
    for path, text in _files(board, target).items():
        write_page(path, text)
    return target


def gather(table: Table, run: BenchRun | None, benchmark: Path | None, gallery: int) -> Leaderboard:
    """Everything that the page of a table shows; without a run there are no pictures."""
    shots = {name: shot_rows(table, name, arms) for name, arms in studies(table).items()}
    found = sweeps(table)
    drawn = _figures(table, shots)
    if run is None:
        return Leaderboard(table, shots, found, drawn, [], [], "these scores came without pictures")
    editors = editor_runs(edit_records(run.reader))
    try:
        pictured = Benchmark.load(benchmark if benchmark is not None else run.benchmark_root)
    except InputError as error:
        return Leaderboard(table, shots, found, drawn, [], [], str(error), editors=editors)
    samples = sample_stories(table, run, pictured, gallery)
    absent = "" if samples or not gallery else f"{pictured.root} no longer has the samples of this run"
    grids = sweep_stories(table, run, pictured, found)
    return Leaderboard(table, shots, found, drawn, samples, grids, absent, editors=editors)


def _figures(table: Table, shots: dict[str, list[ShotRow]]) -> dict[str, str]:
    drawn = {"scatter": figures.scatter(table)}
    for measure in table.main:
        drawn[f"heat-{measure.name}"] = figures.heat_map(table, measure)
        drawn[f"radar-{measure.name}"] = figures.radar(table, measure)
    for name, rows in shots.items():
        shown = [m for m in table.measures if any(row.metric == m.name for row in rows)]
        drawn[f"shots-{name}"] = figures.shots_figure(name, rows, shown)
    return {name: figure for name, figure in drawn.items() if figure}


def _files(board: Leaderboard, target: Path) -> dict[Path, str]:
    """The page and what stands beside it."""
    table = board.table
    files = {
        target.with_suffix(".json"): document(board),
        target.with_suffix(".csv"): table_csv(
            [*table.cells.values(), *table.tasks.values(), *table.regions.values()], table
        ),
        target.with_suffix(".tex"): "\n".join(
            [
                table_two(table),
                *(table_seven(*one) for one in board.shots.items()),
                *([table_pairwise(board.pairwise)] if board.pairwise else []),
            ]
        ),
    }
    if board.pairwise:
        files[target.with_suffix(".pairs.csv")] = csv_text(list(pairwise_rows(board.pairwise)))
    for name, figure in board.figures.items():
        safe = "".join(c if c.isalnum() else "-" for c in name.lower())
        files[target.parent / "figures" / f"{safe}.svg"] = printed(figure)
    files[target] = page(board)
    return files


def document(board: Leaderboard) -> str:
    """All numbers of a page as JSON."""
    table = board.table
    return (
        json.dumps(
            {
                "format": "plantain leaderboard",
                "format_version": 1,
                "run": table.scores.run,
                "benchmark": table.scores.benchmark,
                "samples": len(table.scores.samples),
                "judge": table.judge,
                "unfinished": table.unfinished,
                "judges": list(table.judges),
                "rows": table_json(table.cells.values(), table),
                "tasks": table_json(table.tasks.values(), table),
                "regions": table_json(table.regions.values(), table),
                "differences": {
                    name: [asdict(pair) for pair in pairs] for name, pairs in table.differences.items()
                },
                "pairwise": list(pairwise_rows(board.pairwise)),
                "distances": [asdict(distance) for distance in table.scores.distances],
                "few_shot": {name: [asdict(row) for row in rows] for name, rows in board.shots.items()},
                "sweeps": [_sweep_document(sweep) for sweep in board.sweeps],
                "what_was_run": [asdict(editor) for editor in board.editors],
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


def _sweep_document(sweep: Sweep) -> dict[str, object]:
    return {
        "arm": sweep.arm.label,
        "points": [
            {
                "parameters": dict(point.parameters),
                "k": point.k,
                "means": {name: asdict(estimate) for name, estimate in point.estimates.items()},
            }
            for point in sweep.points.values()
        ],
    }


def page(board: Leaderboard) -> str:
    """The page itself."""
    table = board.table
    clusters = len(set(table.scores.clusters))
    return (
        _environment()
        .get_template("leaderboard.html.j2")
        .render(
            board=board,
            table=table,
            scores=table.scores,
            models=[arm for arm in table.general if not baseline(arm)],
            finders=[arm for arm in table.general if not (baseline(arm) or given_region(arm))],
            informed=[arm for arm in table.general if given_region(arm)],
            baselines=[arm for arm in table.general if baseline(arm)],
            clusters=clusters,
            ranked=table.ranked,
            repeated=any(c.draws_sd is not None or c.outputs_sd is not None for c in table.cells.values()),
            region_sizes=Counter(size for s in table.scores.samples if (size := region_size(s.roi_share))),
            unsure=why_no_interval(table, OVERALL),
            licences=sorted({s.licence for s in table.scores.samples} - {"open", "attribution"}),
            distances={(d.arm, d.metric): d for d in table.scores.distances},
            distance_names=sorted({d.metric for d in table.scores.distances}),
            partial=[cell for cell in table.cells.values() if cell.organ == OVERALL and _partial(cell)],
            measured=[
                measure
                for measure in table.measures
                if any(_has(table.cell(arm.label, OVERALL, measure.name)) for arm in table.general)
            ],
            tasks=list(dict.fromkeys((organ, task) for _, organ, task, _ in table.tasks)),
            version=__version__,
        )
    )


def _has(cell: TableCell | None) -> bool:
    return cell is not None and cell.estimate.value is not None


def _partial(cell: TableCell) -> bool:
    """Whether a score with bounds was left out: other metrics have no worst and best."""
    return cell.metric in MAIN and cell.scored < cell.outputs


def interval(estimate: Estimate, digits: int = 2) -> str:
    """The bounds of an estimate, e.g. "0.41 to 0.78"; a word where there are none."""
    if estimate.low is None or estimate.high is None:
        return "no interval" if estimate.reason else DASH
    return f"{estimate.low:z.{digits}f} to {estimate.high:z.{digits}f}"


def number(value: float | None, digits: int = 2) -> str:
    """A number with a true minus sign, none on a zero; a dash where there is no number."""
    return DASH if value is None else f"{value:z.{digits}f}".replace("-", "\u2212")


def signed(value: float | None, digits: int = 2) -> str:
    """A difference with its sign, none where it is rounded to zero; a dash where there is no difference."""
    if value is not None and float(f"{value:.{digits}f}") == 0:
        return number(value, digits)
    return DASH if value is None else f"{value:+.{digits}f}".replace("-", "\u2212")


def p_value(value: float | None) -> str:
    """A p value as a reader needs it."""
    if value is None:
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def arm_note(arm: Arm, scores: Scores) -> str:
    """What a reader must know of an arm beside its label."""
    synthetic, truths = scores.truths
    notes = {
        "copy-input": "returns the input: keeps everything, edits nothing",
        "resize-only": "to a model's working size and back",
        "jpeg-75": "one JPEG at quality 75",
        "ground-truth": f"the image after, {synthetic} of {truths} synthetic: the ceiling"
        if synthetic
        else "the real image after: the ceiling",
    }
    if arm.label in notes:
        return notes[arm.label]
    parts = [f"prompt: {arm.prompt.value}"] if arm.prompt.value != "original" else []
    if given_region(arm):
        parts.append("told the region: it did not have to find the place")
    if len(arm.grid) > 1:
        parts.append(
            f"{len(arm.grid)} outputs a sample, " + ("mean of all" if arm.rule == "mean" else "first scored")
        )
    if arm.model.startswith("offline/"):
        parts.append("offline: rules and image processing, no learned model")
    return "; ".join(parts)


def reasons_of(cell: TableCell, scores: Scores, stored: str) -> list[tuple[str, int]]:
    """Why outputs of a cell are unscored: the commonest reasons with how many, then all others as one."""
    counted = sorted(scores.missing.get((cell.model, stored), {}).items(), key=lambda one: (-one[1], one[0]))
    rest = counted[REASONS:]
    others = [(f"{len(rest)} other reasons", sum(n for _, n in rest))] if rest else []
    return counted[:REASONS] + others


def _by_task_and_metric(rows: list[ShotRow]) -> list[tuple[tuple[str, str], list[ShotRow]]]:
    groups: dict[tuple[str, str], list[ShotRow]] = {}
    for row in rows:
        groups.setdefault((row.task, row.metric), []).append(row)
    return list(groups.items())


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = page_environment(TEMPLATES, (TEMPLATES / "leaderboard.js").read_text(encoding="utf-8"))
    environment.filters |= {
        "bounds": interval,
        "number": number,
        "signed": signed,
        "p": p_value,
        "arm_note": arm_note,
        "reasons": reasons_of,
        "places_of_rank": places_of_rank,
        "pairwise_rows": pairwise_rows,
        "groupby_pairs": _by_task_and_metric,
    }
    environment.globals |= {"OVERALL": OVERALL, "MACRO": MACRO}
    return environment
