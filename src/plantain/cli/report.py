"""`plantain report`: the tables and figures of a run as one HTML file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from plantain.cli.status import resume_lines, unjudged_lines
from plantain.cli.terminal.options import AsJson, RunArgument
from plantain.cli.terminal.progress import damage_named
from plantain.cli.terminal.tables import print_table
from plantain.journal import JournalReader
from plantain.journal.cards import standings_of
from plantain.journal.questions.status import unsuccessful
from plantain.journal.questions.tasks import corrected_edits, corrections_line
from plantain.records.messages import COMMANDS, next_line, with_settings


def report(
    run: RunArgument,
    to: Path | None = typer.Option(None, metavar="FILE", help="The page; default: report.html in the run."),
    as_json: AsJson = False,
) -> int:
    """Write tables, figures and images as one HTML file that opens from disk.

    Example: plantain report runs/demo
    """
    if sys.stderr.isatty() and not as_json:
        print(f"  writing the report of {run} ...", file=sys.stderr)
    from plantain.report.page import make_report

    written = make_report(run, to)
    path = written.path
    if as_json:
        numbers = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        lost = {"damaged": written.damaged}
        typer.echo(json.dumps({"report": str(path), **numbers, **lost}, indent=1, sort_keys=True))
        return damage_named(written.damaged, "not shown")
    from plantain.report.terminal import table_one

    print_table(table_one(run, written.numbers.composition))
    with JournalReader.open(run) as reader:
        for line in unsuccessful(reader).lines(run):
            print(line)
        for one in standings_of(reader):
            print(f"judge's card: {with_settings(one.line, run, reader.meta(COMMANDS), 'build')}")
        if corrected := corrections_line(corrected_edits(reader)):
            print(corrected)
        print(
            *unjudged_lines(reader),
            *resume_lines(reader),
            f"report: {path}",
            next_line("view", run),
            sep="\n",
        )
    return damage_named(written.damaged, "not shown")
