"""`plantain review results`: what a study's answers say."""

from __future__ import annotations

from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, AsLatex, StudyArgument
from plantain.records.counts import counted
from plantain.review.ratings import Ratings
from plantain.review.results.analysis import analyse
from plantain.review.results.page import results_latex, write_results
from plantain.review.results.rows import imported_readers, rows_of
from plantain.review.study import open_study


def results(
    study: StudyArgument,
    to: Path | None = typer.Option(None, metavar="FILE.html", help="Page; default: STUDY/results.html."),
    as_json: AsJson = False,
    as_latex: AsLatex = False,
    include_imported: bool = typer.Option(
        True, "--imported/--no-imported", help="Answers that came by `review import`, too."
    ),
) -> None:
    """Acceptance, scores, strengths, accuracy, agreement, regions and times, readers and cases random.

    Example: plantain review results studies/pilot --to results.html
    """

    opened = open_study(study)
    ratings = Ratings.open(opened)
    try:
        left_out = set() if include_imported else imported_readers(ratings)
        rows = [row for row in rows_of(opened, ratings) if row.reader not in left_out]
    finally:
        ratings.close()
    found = analyse(opened, rows)
    if as_json:
        import orjson

        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    if as_latex:
        print(results_latex(found), end="")
        return
    page = write_results(found, to or study / "results.html")
    for block in found["blocks"]:
        print(
            f"{block['title']}: {counted(block['judged'], 'answer')} by {counted(block['readers'], 'reader')}"
        )
        for name, one in (
            block.get("models") or block.get("strengths") or block.get("by_model") or {}
        ).items():
            value = "-" if one["value"] is None else f"{one['value']:z.2f}"
            bounds = (
                one.get("reason", "") if one["low"] is None else f"{one['low']:z.2f} to {one['high']:z.2f}"
            )
            print(f"  {name:<40} {value}  {bounds}")
    print(f"page: {page}")
