"""`plantain review results`: the results of a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

app = application()

JUDGE = {
    "agreement": "reader and judge agree",
    "strict": "judge too strict: rejects what is accepted",
    "lenient": "judge too lenient: accepts what is not",
}
"""Outcomes of the comparison with the run's judge (Med-Banana-50K, human validation)."""


@app.command(epilog="Example: plantain review results studies/pilot --to results.html")
def results(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of the study.")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE.html", help="Page; default: STUDY/results.html.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every number as JSON.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print the tables as LaTeX (booktabs).")] = False,
    include_imported: Annotated[
        bool, typer.Option("--imported/--no-imported", help="Answers that came by `review import`, too.")
    ] = True,
) -> None:
    """Acceptance, scores, strengths, accuracy, agreement, regions and times, readers and cases random."""
    from plantain.review.ratings import Ratings
    from plantain.review.results.analysis import analyse
    from plantain.review.results.page import results_latex, write_results
    from plantain.review.results.rows import imported_readers, rows_of
    from plantain.review.study import open_study

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
        readers = counted(block["readers"], "reader")
        print(f"{block['title']}: {counted(block['judged'], 'answer')} by {readers}")
        entries = block["models"] or block["strengths"] or block["by_model"] or {}
        for name, one in entries.items():
            print(f"  {name:<40} {_interval(one)}")
        if block["agreement"]["spearman"]:
            print(f"  {'readers, mean Spearman correlation':<40} {_interval(block['agreement']['spearman'])}")
        for name, words in JUDGE.items() if block["judge"] else ():
            print(f"  {words:<40} {_interval(block['judge'][name])}")
    print(f"page: {page}")


def _interval(one: Mapping[str, Any]) -> str:
    value = "-" if one["value"] is None else f"{one['value']:z.2f}"
    bounds = one["reason"] if one["low"] is None else f"{one['low']:z.2f} to {one['high']:z.2f}"
    return f"{value}  {bounds}"
