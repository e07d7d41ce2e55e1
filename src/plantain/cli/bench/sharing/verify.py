"""`plantain bench verify`: whether an exported benchmark is what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records import InputError
from plantain.records.counts import counted

app = application()


@app.command(epilog="Example: plantain bench verify bench-1.0.0")
def verify(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="An exported benchmark, or a private part.")],
    public: Annotated[
        Path | None,
        typer.Option(
            "--public", metavar="BENCH", help="The public part whose promises a private part has to keep."
        ),
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", metavar="FILE", help="The key, with --public.")] = None,
) -> int:
    """Check files, content, version and table; or a private part against its promises. Exit code 1 on a problem."""
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.edition.hiding import read_key
    from plantain.bench.edition.verifying import verify_benchmark, verify_revealed

    if (public is None) != (key is None):
        raise InputError("--public and --key go together")
    if public is not None and key is not None:
        if not key.is_file():
            raise InputError(f"--key {key}: no such file")
        private = Benchmark.load(path)
        problems = verify_revealed(private, Benchmark.load(public), read_key(key, path))
        proven = f"{counted(len(private), 'hidden sample is', 'hidden samples are')} as promised"
    else:
        problems = verify_benchmark(path)
        proven = "every file, the content and the table are what they say"
    for line in problems:
        typer.echo(line)
    typer.echo(f"NOT OK: {counted(len(problems), 'problem')}" if problems else f"OK: {proven}")
    return 1 if problems else 0
