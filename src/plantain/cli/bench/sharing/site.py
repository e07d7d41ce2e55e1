"""`plantain bench site`: submissions as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

app = application()


@app.command(epilog="Example: plantain bench site submissions/* --to site --bench bench")
def site(
    bundles: Annotated[
        list[Path], typer.Argument(metavar="BUNDLE...", help="Submissions, and rescored ones.")
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder.")],
    benches: Annotated[
        list[Path] | None,
        typer.Option("--bench", metavar="BENCH", help="Show its pictures beside outputs, where it is open."),
    ] = None,
    space: Annotated[
        bool, typer.Option("--space", help="Add what makes it a static Space of the Hugging Face hub.")
    ] = False,
) -> None:
    """Make a leaderboard of submissions: one table for each version of a benchmark, with pages for organs and tasks.

    The same bundles give the same bytes. No page asks the network for anything. Check bundles first: `bench rescore`.
    """
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.site.pages import write_site
    from plantain.bench.submission.bundle import open_bundle

    written = write_site(
        [open_bundle(path) for path in bundles],
        to,
        [Benchmark.load(path) for path in benches or ()],
        space=space,
    )
    typer.echo(f"{to / 'index.html'}: {counted(written, 'file')} from {counted(len(bundles), 'submission')}")
