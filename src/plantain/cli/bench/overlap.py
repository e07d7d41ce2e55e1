"""`plantain bench overlap`: what a benchmark shares with something that an editor may have learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application
from plantain.records import InputError

app = application()

SHOWN = 10
"""Pairs that are named on the terminal; --json has every one."""


@app.command(epilog="Example: plantain bench overlap bench release --record runs/bench --editor mine")
def overlap(
    path: Annotated[Path, typer.Argument(metavar="BENCH", help="The benchmark's folder.")],
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="PLACE...", help="Catalogues, runs, releases, benchmarks, or folders of pictures."
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Option("--record", metavar="RUN", help="Keep it in a bench run, whose table says it."),
    ] = None,
    editor: Annotated[
        str,
        typer.Option(
            "--editor", metavar="LABEL", help="With --record: the arm that learned from the places."
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print every pair as JSON.")] = False,
) -> None:
    """Find near duplicates between a benchmark's pictures and those of other places.

    Samples of one original are counted once as originals, and each as samples.
    """
    import asyncio

    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.benchmark.overlap import overlap as compared
    from plantain.bench.benchmark.overlap import record
    from plantain.bench.generate.runfile import BenchRun
    from plantain.cli.terminal.bar import progress_bar

    bench = Benchmark.load(path)
    if (run is None) != (not editor):
        raise InputError("--record RUN and --editor LABEL go together: whose training pictures these are")
    if run is not None:
        with BenchRun.open(run) as opened:
            if editor not in opened.arms:
                raise InputError(f"--editor {editor}: no such arm in {run}; it has {', '.join(opened.arms)}")
            if opened.header.digest != bench.digest:
                raise InputError(f"{run}: is of another benchmark than {path}, or of another version of it")
    found = []
    for place in places:
        with progress_bar(f"pictures of {place.name}") as bar:
            found.append(compared(bench, place, bar))
        if run is not None:
            asyncio.run(record(found[-1], run, editor))
    if as_json:
        typer.echo(orjson.dumps([one.as_json() for one in found], option=orjson.OPT_INDENT_2).decode())
        return
    for one in found:
        typer.echo(one.in_words())
        for pair in one.pairs[:SHOWN]:
            typer.echo(f"  {pair.sample} ({pair.shown}): {pair.other}, {pair.bits} of 256 bits")
        if len(one.pairs) > SHOWN:
            typer.echo(f"  and {len(one.pairs) - SHOWN:,} more (--json names them)")
