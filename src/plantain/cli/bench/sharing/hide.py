"""`plantain bench hide`: a public and a private part of a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

app = application()


@app.command(
    epilog="Example: plantain bench hide bench --fraction 0.3 --key key.txt --public open --private held"
)
def hide(
    path: Annotated[Path, typer.Argument(metavar="BENCH", help="The benchmark's folder.")],
    key: Annotated[
        Path, typer.Option("--key", metavar="FILE", help="Salts the promises; made where there is none.")
    ],
    public: Annotated[Path, typer.Option("--public", metavar="DIR", help="A new folder, for everybody.")],
    private: Annotated[Path, typer.Option("--private", metavar="DIR", help="A new folder, for its holder.")],
    fraction: Annotated[
        float, typer.Option("--fraction", help="Of samples to hide, by whole sources.")
    ] = 0.3,
    places: Annotated[
        list[Path] | None,
        typer.Option(
            "--overlap", metavar="PLACE", help="A release or catalogue that must not show the truths."
        ),
    ] = None,
) -> None:
    """Hide truths and regions of a part of the samples; originals and prompts stay public.

    Refused where a truth stays to be seen: in the benchmark itself, or in a place that --overlap names.
    """
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.edition.hiding import hide as split
    from plantain.bench.edition.hiding import read_key
    from plantain.cli.terminal.bar import progress_bar

    bench = Benchmark.load(path)
    with progress_bar("places") as bar:
        done = split(
            bench, fraction, read_key(key, path, public), public, private, places=places or (), watch=bar
        )
    typer.echo(f"{public}: {counted(done.samples, 'sample')}, truths of {done.hidden:,} hidden")
    typer.echo(
        f"{private}: {counted(done.hidden, 'sample')} of {counted(done.clusters, 'source')}; for scoring with "
        f"`plantain bench rescore`"
    )
