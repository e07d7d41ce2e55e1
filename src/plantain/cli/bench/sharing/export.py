"""`plantain bench export`: a benchmark for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

app = application()


@app.command(epilog="Example: plantain bench export bench --to bench-1.0.0")
def export(
    path: Annotated[Path, typer.Argument(metavar="BENCH", help="The benchmark's folder.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder.")],
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave out samples whose pictures may not be passed on.")
    ] = False,
    licences: Annotated[
        list[str] | None,
        typer.Option(
            "--original-licence",
            metavar="DATASET=TERMS",
            help="The owner's licence: SPDX id, address or file.",
        ),
    ] = None,
) -> None:
    """Write a benchmark with card, licences, Croissant, Parquet and checksums. The folder is itself a benchmark."""
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.edition.exporting import export_benchmark
    from plantain.models.extras import require_extra

    require_extra("plantain bench export", "release", "pyarrow")
    done = export_benchmark(Benchmark.load(path), to, leave_out=leave_out, licences=tuple(licences or ()))
    left = f", {counted(done.left_out, 'sample')} left out" if done.left_out else ""
    typer.echo(
        f"{done.path}: version {done.version}, {counted(done.samples, 'sample')}{left}, {counted(done.files, 'file')}, "
        f"{done.bytes / 1e6:.1f} MB"
    )
