"""`plantain review export`: a study's answers as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

app = application()


@app.command(epilog="Example: plantain review export studies/pilot --to answers")
def export(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="Folder of the study; it may be being served.")
    ],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Folder; default: STUDY/export.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write answers as CSV and Parquet with their dictionary, drawn regions, and the frozen study with its hash."""
    from plantain.review.ratings import Ratings
    from plantain.review.results.export import write_export
    from plantain.review.study import open_study

    opened = open_study(study)
    ratings = Ratings.open(opened)
    target = to or study / "export"
    try:
        names, answers = write_export(opened, ratings, target), len(ratings.current())
    finally:
        ratings.close()
    if as_json:
        import orjson

        document = {"to": str(target), "files": names, "answers": answers, "hash": opened.digest}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    print(f"{target}: {counted(answers, 'answer')}; {', '.join(name for name in names if '/' not in name)}")
