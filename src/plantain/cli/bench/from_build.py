"""`plantain bench from-build`: a radiology benchmark from any build."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.bench.benchmark.from_build import benchmark_from_build
from plantain.cli.terminal.application import application
from plantain.cli.terminal.bar import progress_bar
from plantain.findings import load_taxonomy
from plantain.records.counts import counted

app = application()


@app.command(epilog="Example: plantain bench from-build runs/pilot --to benches/pilot")
def from_build(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The build's run folder; it is only read.")],
    out: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder for the benchmark.")],
    name: Annotated[str, typer.Option(help="Name of the benchmark; default: the build's.")] = "",
    real_only: Annotated[
        bool, typer.Option("--real-only", help="Only samples whose ground truth is a real image.")
    ] = False,
    side: Annotated[int, typer.Option(min=0, max=4096, help="Longest side in pixels; 0: as the build.")] = 0,
    findings: Annotated[
        list[Path] | None, typer.Option("--findings", help="TOML file with findings of your own.")
    ] = None,
    in_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> int:
    """Turn a build's successes into samples with exact regions.

    Each success becomes two samples: back to the real original (what was added is to be removed, and the other way
    round), and there, with the judged edit as a ground truth that is marked as synthetic.
    """
    with progress_bar("tasks") as progress:
        made = benchmark_from_build(
            run,
            out,
            name=name,
            real_only=real_only,
            side=side,
            taxonomy=load_taxonomy(findings or ()),
            progress=progress,
        )
    if in_json:
        document = asdict(made) | {"path": str(made.path), "restricted": made.restricted}
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return 0
    typer.echo(
        f"{counted(made.real + made.synthetic, 'sample')} from "
        f"{counted(made.successes, 'success', 'successes')}: {made.real} with a real image as "
        f"ground truth, {made.synthetic} with a synthetic one; {made.regions} with an exact region"
    )
    for reason, n in made.left_out.items():
        typer.echo(f"left out {n}: {reason}")
    if made.restricted:
        typer.echo(made.restricted)
    typer.echo(str(made.path))
    return 0
