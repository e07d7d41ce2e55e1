"""`plantain review results`, `export` and `import`: the answers of a study."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from plantain.cli.terminal.options import AsJson, StudyArgument
from plantain.cli.terminal.tables import print_json
from plantain.records.messages import counted, next_line
from plantain.review.answers import import_ratings
from plantain.review.ratings import Ratings
from plantain.review.results.analysis import analyse
from plantain.review.results.rows import rows_of
from plantain.review.results.writing import write_results
from plantain.review.study import open_study

JUDGE = {
    "agreement": "reader and judge agree",
    "strict": "judge too strict: rejects accepted edits",
    "lenient": "judge too lenient: accepts rejected edits",
}
"""Outcomes of the comparison with the run's judge (Med-Banana-50K, human validation)."""


def results(
    study: StudyArgument,
    to: Path | None = typer.Option(None, metavar="FILE.html", help="Page; default: STUDY/results.html."),
    as_json: AsJson = False,
) -> None:
    """Analyse acceptance, scores, strengths, accuracy and agreement, with readers and cases random.

    Example: plantain review results studies/pilot --to results.html
    """
    opened = open_study(study)
    with closing(Ratings.open(opened)) as ratings:
        rows = rows_of(opened, ratings)
    found = analyse(opened, rows)
    if as_json:
        print_json(found)
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
    print(next_line("review", "export", study))


def _interval(one: Mapping[str, Any]) -> str:
    value = "-" if one["value"] is None else f"{one['value']:z.2f}"
    bounds = one["reason"] if one["low"] is None else f"{one['low']:z.2f} to {one['high']:z.2f}"
    return f"{value}  {bounds}"


def export(
    study: StudyArgument,
    to: Path | None = typer.Option(None, metavar="DIR", help="Folder; default: STUDY/export."),
    as_json: AsJson = False,
) -> None:
    """Write answers as CSV with their dictionary, drawn regions, and the frozen study with its hash.

    Example: plantain review export studies/pilot --to answers
    """
    from plantain.review.results.writing import write_export

    opened = open_study(study)
    with closing(Ratings.open(opened)) as ratings:
        target = to or study / "export"
        names, answers = write_export(opened, ratings, target), len(ratings.current())
    if as_json:
        document = {"to": str(target), "files": names, "answers": answers, "hash": opened.digest}
        print_json(document)
        return
    print(f"{target}: {counted(answers, 'answer')}; {', '.join(name for name in names if '/' not in name)}")
    print(next_line("view", study))


def import_(
    study: StudyArgument,
    files: list[Path] = typer.Argument(
        ...,
        metavar="FILE...",
        help="CSV: source or case, model, reader, and a column per criterion (yes or no if the task is accept).",
    ),
    as_json: AsJson = False,
) -> None:
    """Import ratings into a study as imported readers. Importing the same file again changes nothing.

    Example: plantain review import studies/pilot ana.csv ben.csv
    """
    opened = open_study(study)
    with closing(Ratings.open(opened)) as ratings:
        found = import_ratings(opened, ratings, files)
    if as_json:
        print_json({"imported": found})
        return
    for reader, answers in found.items():
        print(f"{reader}: {counted(answers, 'answer')}")
    print(next_line("review", "results", study))
