"""`plantain bench check`: what is wrong with a benchmark."""

from __future__ import annotations

from collections import Counter

import orjson
import typer

from plantain.bench.benchmark.checking import check_benchmark
from plantain.bench.benchmark.samples import BenchmarkProblem
from plantain.cli.terminal.options import AsJson, BenchArgument
from plantain.cli.terminal.progress import progress_bar
from plantain.records.counts import counted

SHOWN = 3
"""Warnings of one kind that are named on the terminal; --all and --json have every one."""


def check(
    path: BenchArgument,
    everything: bool = typer.Option(False, "--all", help="Name every warning."),
    as_json: AsJson = False,
) -> int:
    """Read a benchmark with all its pixels and name every problem with its file and field.

    Exit code 1 when there is one; warnings do not count.

    Example: plantain bench check MedEBench/editing
    """

    with progress_bar("samples") as progress:
        checked = check_benchmark(path, progress)
    if as_json:
        document = {
            "ok": not checked.errors,
            "name": checked.reading.name,
            "samples": len(checked.reading.samples),
            "clusters": len({sample.cluster for sample in checked.reading.samples}),
            "problems": [_as_dict(problem) for problem in checked.errors],
            "warnings": [_as_dict(problem) for problem in checked.warnings],
        }
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return 1 if checked.errors else 0
    for problem in checked.errors:
        typer.echo(str(problem))
    kinds: Counter[str] = Counter()
    for problem in checked.warnings:
        kind = _kind(problem.field, problem.detail)
        kinds[kind] += 1
        if everything or kinds[kind] <= SHOWN:
            typer.echo(f"warning: {problem}")
    hidden = 0 if everything else sum(max(0, count - SHOWN) for count in kinds.values())
    if hidden:
        typer.echo(f"and {counted(hidden, 'more warning')} of the same kinds (--all names them)")
    usable = counted(len(checked.reading.samples), "sample")
    if checked.errors:
        typer.echo(f"NOT OK: {counted(len(checked.errors), 'problem')}; {usable} could be read")
        return 1
    clusters = len({sample.cluster for sample in checked.reading.samples})
    typer.echo(
        f"OK: {usable} from {counted(clusters, 'source')}, {counted(len(checked.warnings), 'warning')}"
    )
    return 0


def _as_dict(problem: BenchmarkProblem) -> dict[str, str]:
    return {"file": problem.file, "sample": problem.sample, "field": problem.field, "detail": problem.detail}


def _kind(field: str, detail: str) -> str:
    """Warnings that differ only in numbers and names are of one kind."""
    words = field.split()
    return f"{words[0].rpartition('.')[2] if words else ''} {' '.join(detail.split()[:3])}"
