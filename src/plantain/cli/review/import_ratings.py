"""`plantain review import`: ratings that were made elsewhere."""

from __future__ import annotations

from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, StudyArgument
from plantain.records.counts import counted
from plantain.review.importing import import_ratings
from plantain.review.ratings import Ratings
from plantain.review.study import open_study


def import_(
    study: StudyArgument,
    files: list[Path] = typer.Argument(
        ...,
        metavar="FILE...",
        help="CSV (source or case, model, criteria, reader), or ImagenHub's TSV, one a rater.",
    ),
    as_json: AsJson = False,
) -> None:
    """Take ratings made elsewhere into a study, as imported readers; the same file again changes nothing.

    Example: plantain review import studies/pilot ana.csv ben.csv
    """

    opened = open_study(study)
    ratings = Ratings.open(opened)
    try:
        found = import_ratings(opened, ratings, files)
    finally:
        ratings.close()
    if as_json:
        import orjson

        print(orjson.dumps({"imported": found}, option=orjson.OPT_INDENT_2).decode())
        return
    for reader, answers in found.items():
        print(f"{reader}: {counted(answers, 'answer')}")
