"""`plantain bench leakage`: images of a benchmark that also occur in what an editor may have been trained on."""

from __future__ import annotations

from pathlib import Path

import orjson
import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.leakage import find_leakage
from plantain.cli.terminal.options import AsJson, BenchArgument
from plantain.cli.terminal.progress import progress_bar

SHOWN = 10
"""Pairs shown on the terminal; --json prints all."""


def leakage(
    path: BenchArgument,
    places: list[Path] = typer.Argument(
        ..., metavar="PLACE...", help="Catalogues, releases, or folders of images."
    ),
    as_json: AsJson = False,
) -> None:
    """Find near duplicates between a benchmark's images and those of other places.

    Counts originals (samples of one original once) and samples.

    Example: plantain bench leakage bench release catalogue
    """

    bench = Benchmark.load(path)
    found = []
    for place in places:
        with progress_bar(f"images of {place.name}") as progress:
            found.append(find_leakage(bench, place, progress))
    if as_json:
        typer.echo(orjson.dumps([one.as_json() for one in found], option=orjson.OPT_INDENT_2).decode())
        return
    for one in found:
        typer.echo(one.line)
        for pair in one.pairs[:SHOWN]:
            typer.echo(f"  {pair.sample} ({pair.shown}): {pair.other}, {pair.bits} of 256 bits differ")
        if len(one.pairs) > SHOWN:
            typer.echo(f"  and {len(one.pairs) - SHOWN:,} more (--json prints all)")
