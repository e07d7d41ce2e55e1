"""The page of Table 7: an editor trained on n samples of each task, and the study with demonstrations next to it."""

from __future__ import annotations

import json
from pathlib import Path

from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.export import csv_text
from plantain.bench.leaderboard.figures import shots_figure
from plantain.bench.leaderboard.learning import learning_of
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.studies import ShotRow, shot_studies
from plantain.bench.leaderboard.tables import make_table
from plantain.pages.drawing import printed
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.records import InputError
from plantain.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "learning.html"


def write_learning(run: Path, to: Path, title: str, few_shot: Path | None = None) -> Path:
    """Write Table 7 and the figure of (a) as one HTML page, and as JSON, CSV and SVG; return the page's path.

    Args:
        run: of the trained models.
        to: a folder.
        title: of the page.
        few_shot: scored run with demonstrations in the prompt, for Table 7 (b); None leaves that open.

    Raises:
        InputError: as `learning_of`; or the folder cannot be written to.
    """
    target = html_target(to / PAGE)
    with BenchRun.open(run) as opened:
        learning = learning_of(read_scores(opened))
    studies: dict[str, list[ShotRow]] = {}
    if few_shot is not None:
        with BenchRun.open(few_shot) as opened:
            studies = shot_studies(make_table(read_scores(opened)))
        if not studies:
            raise InputError(
                f"--few-shot {few_shot}: no study with several numbers of demonstrations (--shots)"
            )
    figure = shots_figure("trained", learning.rows, learning.measures, "training samples of each task")
    records = [_record(row) for row in learning.rows]
    write_page(target.with_suffix(".json"), json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    write_page(target.with_suffix(".csv"), csv_text(records))
    write_page(target.with_suffix(".svg"), printed(figure))
    environment = page_environment(TEMPLATES, "")
    tasks = list(dict.fromkeys(row.task for row in learning.rows))
    page = environment.get_template("learning.html.j2").render(
        learning=learning, studies=studies, figure=figure, title=title, tasks=tasks, version=__version__
    )
    write_page(target, page)
    return target


def _record(row: ShotRow) -> dict[str, object]:
    mean, change = row.estimate, row.change
    return {
        "task": row.task or "all",
        "n": row.shots,
        "metric": row.metric,
        "value": mean.value,
        "low": mean.low,
        "high": mean.high,
        "samples": mean.n,
        "sources": mean.clusters,
        "change_value": change and change.value,
        "change_low": change and change.low,
        "change_high": change and change.high,
        "p_holm": row.p_holm,
    }
