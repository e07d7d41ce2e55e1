"""`plantain bench check` and `leakage`: problems of a benchmark, and images that also occur elsewhere."""

from __future__ import annotations

from pathlib import Path

import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.checking import check_benchmark
from plantain.bench.benchmark.leakage import find_leakage
from plantain.bench.benchmark.samples import BenchmarkProblem
from plantain.cli.terminal.options import AsJson, BenchArgument
from plantain.cli.terminal.progress import progress_bar
from plantain.cli.terminal.tables import print_json
from plantain.records.messages import counted, next_line

SHOWN = 10
"""Warnings and pairs that are named on the terminal; --json has every one."""


def check(path: BenchArgument, as_json: AsJson = False) -> int:
    """Read a benchmark with all its pixels and name every problem with its file and field.

    Exit code 1 when there is one; warnings do not count.

    Example: plantain bench check MedEBench/editing
    """
    with progress_bar("samples") as progress:
        checked = check_benchmark(path, progress)
    if as_json:
        document = {
            "ok": not checked.errors,
            "name": checked.name,
            "samples": len(checked.samples),
            "clusters": len({sample.cluster for sample in checked.samples}),
            "problems": [_as_dict(problem) for problem in checked.errors],
            "warnings": [_as_dict(problem) for problem in checked.warnings],
        }
        print_json(document)
        return 1 if checked.errors else 0
    for problem in checked.errors:
        typer.echo(str(problem))
    for problem in checked.warnings[:SHOWN]:
        typer.echo(f"warning: {problem}")
    if len(checked.warnings) > SHOWN:
        typer.echo(f"and {counted(len(checked.warnings) - SHOWN, 'more warning')} (--json names them)")
    usable = counted(len(checked.samples), "sample")
    if checked.errors:
        typer.echo(f"NOT OK: {counted(len(checked.errors), 'problem')}; {usable} could be read")
        return 1
    clusters = len({sample.cluster for sample in checked.samples})
    typer.echo(
        f"OK: {usable} from {counted(clusters, 'source')}, {counted(len(checked.warnings), 'warning')}"
    )
    typer.echo(next_line("bench", "describe", path))
    return 0


def _as_dict(problem: BenchmarkProblem) -> dict[str, str]:
    return {"file": problem.file, "sample": problem.sample, "field": problem.field, "detail": problem.detail}


def leakage(
    path: BenchArgument,
    places: list[Path] = typer.Argument(
        ..., metavar="PLACE...", help="Catalogues, releases or image folders."
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
        with progress_bar(f"{place.name}: images, then samples") as progress:
            found.append(find_leakage(bench, place, progress))
    if as_json:
        print_json([one.as_json() for one in found])
        return
    for one in found:
        typer.echo(one.line)
        for pair in one.pairs[:SHOWN]:
            typer.echo(f"  {pair.sample} ({pair.shown}): {pair.other}, {pair.bits} of 256 bits differ")
        if len(one.pairs) > SHOWN:
            typer.echo(f"  and {len(one.pairs) - SHOWN:,} more (--json prints all)")
    if any(one.pairs for one in found):
        typer.echo(
            "leave these images and all others of their patients out of training, or use another benchmark"
        )
    else:
        typer.echo(next_line("bench", "generate", path, "--run", f"runs/{path.resolve().name}"))
