"""`plantain review import`: ratings that were made elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

app = application()


@app.command(epilog="Example: plantain review import studies/pilot ana.csv ben.csv")
def import_(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="Folder of a study with a rate or accept block.")
    ],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="CSV: source or case, model, one column for each criterion, and reader (default: the file's name).",
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print how many answers each reader has as JSON.")
    ] = False,
) -> None:
    """Take ratings made elsewhere into a study, as imported readers; the same file again changes nothing."""
    from plantain.review.importing import import_ratings
    from plantain.review.ratings import Ratings
    from plantain.review.study import open_study

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
