"""`plantain review invite`: links for readers."""

from __future__ import annotations

import typer

from plantain.cli.terminal.options import AsJson, StudyArgument
from plantain.review.ratings import Ratings
from plantain.review.study import open_study


def invite(
    study: StudyArgument,
    readers: int = typer.Option(1, min=1, max=1000, help="How many new readers."),
    url: str = typer.Option(
        "http://127.0.0.1:8765", metavar="URL", help="Where the study is served, as readers reach it."
    ),
    as_json: AsJson = False,
) -> None:
    """Make each new reader a link of their own. A link is shown once: only its hash is kept.

    Example: plantain review invite studies/pilot --readers 5
    """
    from plantain.review.serving import link

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
