"""`plantain review invite`: links for readers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application

app = application()


@app.command(epilog="Example: plantain review invite studies/pilot --readers 5")
def invite(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="Folder of the study; it may be being served.")
    ],
    readers: Annotated[int, typer.Option(min=1, max=1000, help="How many new readers.")] = 1,
    url: Annotated[
        str, typer.Option(metavar="URL", help="Where the study is served, as readers reach it.")
    ] = "http://127.0.0.1:8765",
    as_json: Annotated[bool, typer.Option("--json", help="Print the links as JSON.")] = False,
) -> None:
    """Make each new reader a link of their own. A link is shown once: only its hash is kept."""
    from plantain.review.ratings import Ratings
    from plantain.review.serving import link
    from plantain.review.study import open_study

    ratings = Ratings.open(open_study(study))
    try:
        made = [ratings.invite() for _ in range(readers)]
    finally:
        ratings.close()
    links = [{"reader": reader.code, "link": link(url, token)} for reader, token in made]
    if as_json:
        import orjson

        print(orjson.dumps({"invited": links}, option=orjson.OPT_INDENT_2).decode())
        return
    for one in links:
        print(f"{one['reader']}  {one['link']}")
