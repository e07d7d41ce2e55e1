"""`plantain train separability`: whether edits can be told from re-encoded originals by their traces alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from plantain.cli.terminal.application import application
from plantain.cli.terminal.tables import print_table
from plantain.cli.train.probe import interval
from plantain.records.counts import counted
from plantain.train.probe.edits import MOST, made_edits
from plantain.train.probe.page import write_separability_page
from plantain.train.probe.separability import separabilities

app = application()


@app.command()
def separability(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN|RELEASE", help="whose successful edits are looked at")
    ],
    originals: Annotated[
        Path | None,
        typer.Option(help="run or catalogue with a release's originals; default: those that it carries"),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="for separability.html and .json")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="edits that are looked at, drawn by hash above it")] = MOST,
    seed: Annotated[int, typer.Option(min=0, help="of the folds")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Says how well each editor's edits are told from originals that were encoded as they were: AUC with an interval.

    Grain, spectrum, blocks and rounding are measured over the whole picture, and outside the edit alone; a regression
    that learned from other pictures tells them apart. One half is what nobody can tell. A model that trains on edits
    which give themselves away may learn the editor instead of the disease.

    Example: plantain train separability runs/pilot --to figures
    """
    found = separabilities(made_edits(folder, originals, most), seed)
    page = write_separability_page(found, folder.name, to) if to is not None else None
    if as_json:
        print(orjson.dumps({"editors": [asdict(row) for row in found]}, option=orjson.OPT_INDENT_2).decode())
        return 0
    table = Table(title="edits against re-encoded originals, AUC (0.50: cannot be told)")
    for heading in ("editor", "edits", "whole picture", "outside the edit"):
        table.add_column(heading, justify="left" if heading == "editor" else "right")
    for row in found:
        areas = [interval(area.auc, area.low, area.high) for area in (row.whole, row.outside)]
        table.add_row(row.editor, str(row.edits), *areas)
    print_table(table)
    for row in found:
        if row.why_not:
            print(f"{row.editor}: no result: {row.why_not}")
        elif row.left_out:
            print(
                f"{row.editor}: {counted(row.left_out, 'edit')} left too little of the picture untouched to compare"
            )
    if page is not None:
        print(f"page: {page}")
    return 0
