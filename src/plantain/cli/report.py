"""`plantain report`: the tables and figures of a run as one HTML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application

app = application()


@app.command(epilog="Example: plantain report runs/demo --gallery 100")
def report(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the run; it may still be building.")],
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="The HTML file. Default: report.html in the run."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print paths and tables as JSON.")] = False,
    cards: Annotated[
        list[Path] | None,
        typer.Option("--card", metavar="FILE", help="A judge's card.json, kept beside the run."),
    ] = None,
    gallery: Annotated[
        int, typer.Option("--gallery", min=0, help="Tasks to show at most, a seeded sample per outcome.")
    ] = 60,
) -> None:
    """Write tables, figures and a gallery as one HTML file that opens from disk."""
    from plantain.journal.cards import keep_cards, standings_of
    from plantain.report.page import make_report

    keep_cards(run, cards or ())
    written = make_report(run, to, gallery=gallery)
    path = written.path
    if as_json:
        numbers = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        typer.echo(json.dumps({"report": str(path), **numbers}, indent=1, sort_keys=True))
        return
    from plantain.cli.status import NAMED, print_unsuccessful
    from plantain.cli.terminal.tables import print_table
    from plantain.journal import JournalReader
    from plantain.journal.questions.corrections import corrected_edits, corrections_line
    from plantain.report.task_list import unsuccessful
    from plantain.report.terminal import table_one

    print_table(table_one(run, written.numbers.composition))
    with JournalReader.open(run) as reader:
        print_unsuccessful(unsuccessful(reader, NAMED), run)
        for one in standings_of(reader):
            print(f"judge's card: {one.line}")
        if corrected := corrections_line(corrected_edits(reader)):
            print(corrected)
    print(f"report: {path}")
