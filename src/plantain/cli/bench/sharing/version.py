"""`plantain bench version`: what version a benchmark is, and giving it the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records import InputError

app = application()


@app.command(
    epilog='Example: plantain bench version bench --set 1.1.0 --note "20 fundus samples more" --from bench-1.0'
)
def version(
    path: Annotated[Path, typer.Argument(metavar="BENCH", help="The benchmark's folder.")],
    wanted: Annotated[
        str, typer.Option("--set", metavar="MAJOR.MINOR.PATCH", help="Give its content this version.")
    ] = "",
    note: Annotated[str, typer.Option("--note", help="What it changes, for the changelog.")] = "",
    before: Annotated[
        Path | None,
        typer.Option("--from", metavar="BENCH", help="A copy of its newest version, to see what changed."),
    ] = None,
) -> None:
    """Say a benchmark's versions, or name a new one: scores of two versions never share a column.

    The first number grows where samples were changed or taken out, the second where some were added.
    """
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.edition.versions import editions, name_edition

    if not wanted and (note or before is not None):
        raise InputError("--note and --from describe a new version: give --set too")
    bench = Benchmark.load(path)
    if wanted:
        edition = name_edition(bench, wanted, note, Benchmark.load(before) if before is not None else None)
        typer.echo(f"{bench.name} {edition.version} ({edition.digest[:12]}): {edition.note}")
        return
    typer.echo(f"{bench.name} {bench.edition or 'without a version'} ({bench.digest[:12]})")
    for edition in reversed(editions(bench) if bench.edition else []):
        typer.echo(f"  {edition.version} ({edition.digest[:12]}): {edition.note}")
