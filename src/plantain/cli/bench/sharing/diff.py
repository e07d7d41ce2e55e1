"""`plantain bench diff`: what differs between two benchmarks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application

app = application()

SHOWN = 10
"""Samples of one kind that are named on the terminal; --json has every one."""


@app.command(epilog="Example: plantain bench diff bench-1.0 bench")
def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="The older benchmark.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The newer one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Name every sample, as JSON.")] = False,
) -> int:
    """Compare two benchmarks sample by sample. Exit code 1 where they differ.

    It says which number of the version has to grow, and with that whether their scores may be compared.
    """
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.edition.differing import VersionStep, differences

    found = differences(Benchmark.load(first), Benchmark.load(second))
    if as_json:
        document = {**asdict(found), "number_to_grow": found.step.value}
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return 0 if found.step is VersionStep.NONE else 1
    changed = tuple(f"{name} ({', '.join(fields)})" for name, fields in found.changed.items())
    for what, names in (("added", found.added), ("taken out", found.removed), ("changed", changed)):
        if names:
            more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
            typer.echo(f"{what} {len(names):,}: {', '.join(names[:SHOWN])}{more}")
    typer.echo(f"the same: {found.same:,}")
    if found.step is VersionStep.NONE:
        typer.echo("no difference")
        return 0
    typer.echo(f"of the version, the {found.step.value} number has to grow")
    return 1
