"""Write a leaderboard: one HTML file, complete in itself, and its numbers as JSON, CSV, LaTeX and SVG."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import Arm, BenchRun
from plantain.bench.leaderboard.export import table_against, table_csv, table_json, table_two
from plantain.bench.leaderboard.figures import all_figures, slug
from plantain.bench.leaderboard.gallery import Gallery
from plantain.bench.leaderboard.measures import MAIN, STRICTER
from plantain.bench.leaderboard.published import published_files, published_scores
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.scores import Scores, is_baseline, is_given_region
from plantain.bench.leaderboard.studies import SweepPoint, shot_studies, sweeps
from plantain.bench.leaderboard.tables import OVERALL, UNEDITED, Table, TableCell, make_table
from plantain.files.opening import open_folder
from plantain.metrics.statistics.means import Estimate
from plantain.pages.drawing import printed
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pages.wording import DASH
from plantain.records import InputError
from plantain.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "leaderboard.html"

GALLERY = 8
"""Most samples that a leaderboard shows."""


def write_leaderboard(
    runs: Sequence[Path],
    to: Path | None = None,
    *,
    judge: str | None = None,
    benchmark: Path | None = None,
    against: str = UNEDITED,
    remarks: Sequence[str] = (),
) -> Path:
    """Write the leaderboard of runs of one benchmark, also while they are being scored.

    Args:
        runs: folders of the runs, or MedEBench's published files or folders with them.
        to: the folder to write to; default: the first run.
        judge: the judge whose scores are EA and VQ, see `make_table`.
        benchmark: folder with the benchmark's images; default: the one that the first run recorded.
        against: label of the arm that the others are compared with.
        remarks: lines for the top of the page.

    Returns:
        Path of the HTML file; `leaderboard.json`, `.csv`, `.tex` and the figures as SVG are in its folder.

    Raises:
        InputError: not a bench run, runs of different benchmarks, no such judge, or the folder cannot be written to.
    """
    folder = runs[0].parent if runs[0].is_file() else runs[0]
    target = html_target((to or folder) / PAGE)
    table = make_table(read_tables(runs), judge, against)
    lines, figures = [*remarks, *table.scores.remarks], all_figures(table)
    shots, swept = shot_studies(table), sweeps(table)
    document = _document(table) | {
        "remarks": lines,
        "few_shot": {name: [asdict(row) for row in rows] for name, rows in shots.items()},
        "sweeps": {label: [asdict(point) for point in points] for label, points in swept.items()},
    }
    files = {
        target.with_suffix(".json"): json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        target.with_suffix(".csv"): table_csv(table),
        target.with_suffix(".tex"): table_two(table) + "\n" + table_against(table),
    }
    for name, figure in figures.items():
        files[target.parent / "figures" / f"{slug(name)}.svg"] = printed(figure)
    images = {"samples": (), "swept": {}} | _images(table, swept, runs, benchmark)
    board = {"remarks": lines, "figures": figures, "shots": shots, "sweeps": swept}
    files[target] = _page(table, board | images)
    shows = [(table.scores.benchmark, sample.licence) for sample in table.scores.samples]
    for path, text in files.items():
        open_folder(target.parent, str(path.parent.relative_to(target.parent)))
        write_page(path, text, shows)
    return target


def read_tables(runs: Sequence[Path]) -> Scores:
    """Read the scores of runs, or of published files. Raise InputError as `write_leaderboard`."""
    if published_files(runs[0]):
        return published_scores(*runs)
    with ExitStack() as stack:
        return read_scores(*(stack.enter_context(BenchRun.open(run)) for run in runs))


def _images(
    table: Table, swept: Mapping[str, Sequence[SweepPoint]], runs: Sequence[Path], benchmark: Path | None
) -> dict[str, object]:
    """Return the example "samples", one sample of each "swept" arm, and in "absent" why there is none."""
    if published_files(runs[0]):
        return {"absent": "published files contain numbers only"}
    with ExitStack() as stack:
        opened = [stack.enter_context(BenchRun.open(run)) for run in runs]
        try:
            images = Gallery(table, opened, Benchmark.load(benchmark or opened[0].benchmark_root))
        except InputError as error:
            return {"absent": str(error)}
        return {
            "samples": images.stories(GALLERY),
            "swept": {label: images.sweep(label, points) for label, points in swept.items()},
            "absent": "the benchmark's folder no longer has the samples of this run",
        }


def _document(table: Table) -> dict[str, object]:
    return {
        "format": "plantain leaderboard",
        "format_version": 1,
        "runs": list(table.scores.runs),
        "benchmark": table.scores.benchmark,
        "samples": len(table.scores.samples),
        "judge": table.judge,
        "judges": list(table.judges),
        "warnings": list(table.blind.values()),
        "rows": table_json(table.cells.values(), table),
        "tasks": table_json(table.tasks.values(), table),
        "differences": {name: [asdict(pair) for pair in pairs] for name, pairs in table.differences.items()},
        "distances": [asdict(distance) for distance in table.scores.distances],
    }


def _page(table: Table, board: Mapping[str, object]) -> str:
    overall = [cell for cell in table.cells.values() if cell.organ == OVERALL]
    scored = {cell.metric for cell in overall if cell.estimate.value is not None}
    environment = page_environment(TEMPLATES, (TEMPLATES / "leaderboard.js").read_text(encoding="utf-8"))
    environment.filters |= {
        "bounds": interval,
        "number": number,
        "signed": signed,
        "p": p_value,
        "arm_note": arm_note,
        "reasons": reasons_of,
        "groupby_pairs": lambda rows: [
            (key, list(found)) for key, found in groupby(rows, attrgetter("task", "metric"))
        ],
    }
    environment.globals |= {"OVERALL": OVERALL, "STRICTER": STRICTER}
    first: dict[str, Arm] = {}
    measured = [distance for distance in table.scores.distances if distance.value is not None]
    return environment.get_template("leaderboard.html.j2").render(
        board=board,
        table=table,
        scores=table.scores,
        models=[arm for arm in table.general if not is_baseline(arm)],
        variants=[arm for arm in table.general if first.setdefault(arm.model, arm) is not arm],
        clusters=len(set(table.scores.clusters)),
        ranked=table.ranked,
        unsure=table.why_no_interval(),
        distances={(d.arm, d.metric): d for d in table.scores.distances},
        distance_names=sorted({d.metric for d in measured}),
        distance_features=sorted({f"{d.metric}: {d.features}" for d in measured}),
        partial=[cell for cell in overall if cell.metric in MAIN and cell.scored < cell.samples],
        measured=[measure for measure in table.measures if measure.name in scored],
        tasks=list(dict.fromkeys((organ, task) for _, organ, task, _ in table.tasks)),
        version=__version__,
    )


def interval(estimate: Estimate, digits: int = 2) -> str:
    """Format an estimate's interval, e.g. "0.41 to 0.78"; "" without an interval."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{estimate.low:z.{digits}f} to {estimate.high:z.{digits}f}"


def number(value: float | None, digits: int = 2) -> str:
    """Format a number with a typographic minus sign and no sign on zero; a dash for None."""
    return DASH if value is None else f"{value:z.{digits}f}".replace("-", "\u2212")


def signed(value: float | None, digits: int = 2) -> str:
    """Format a difference with its sign, e.g. "+0.12", no sign if it rounds to zero; a dash for None."""
    if value is None or float(f"{value:.{digits}f}") == 0:
        return number(value, digits)
    return f"{value:+.{digits}f}".replace("-", "\u2212")


def p_value(value: float | None) -> str:
    if value is None:
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def arm_note(arm: Arm, scores: Scores) -> str:
    """Return the note below an arm's label; "" if there is none."""
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
    if is_given_region(arm):
        parts.append("receives the region: it does not have to find the place")
    if len(arm.grid) > 1:
        parts.append(f"{len(arm.grid)} outputs a sample, first scored")
    if arm.model.startswith("offline/"):
        parts.append("offline: rules and image processing, no learned model")
    return "; ".join(parts)


def reasons_of(cell: TableCell, scores: Scores, stored: str) -> list[tuple[str, int]]:
    """Return (reason, count) for the unscored outputs of a cell, by its metric's stored name, the commonest first."""
    missing = scores.missing.get((cell.model, stored), Counter())
    return sorted(missing.items(), key=lambda one: (-one[1], one[0]))
