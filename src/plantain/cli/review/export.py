"""`plantain review export`: a study's answers as tables."""

from __future__ import annotations

from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, StudyArgument
from plantain.records.counts import counted
from plantain.review.ratings import Ratings
from plantain.review.study import open_study


def export(
    study: StudyArgument,
    to: Path | None = typer.Option(None, metavar="DIR", help="Folder; default: STUDY/export."),
    as_json: AsJson = False,
) -> None:
    """Write answers as CSV and Parquet with their dictionary, drawn regions, and the frozen study with its hash.

    Example: plantain review export studies/pilot --to answers
    """
    from plantain.review.results.export import summary_of, write_export

    opened = open_study(study)
    ratings = Ratings.open(opened)
    target = to or study / "export"
    try:
        names, answers = write_export(opened, ratings, target), len(ratings.current())
    finally:
        ratings.close()
    if as_json:
        print(summary_of(names, target, answers, opened).decode())
        return
    print(f"{target}: {counted(answers, 'answer')}; {', '.join(name for name in names if '/' not in name)}")
