"""`plantain bench from-build`: a radiology benchmark from any build."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from plantain.bench.benchmark.from_build import benchmark_from_build
from plantain.cli.terminal.options import AsJson, OwnFindings, RunArgument
from plantain.cli.terminal.progress import damage_named, progress_bar
from plantain.cli.terminal.tables import print_json
from plantain.findings import load_taxonomy
from plantain.records.messages import counted, next_line


def from_build(
    run: RunArgument,
    out: Path = typer.Option(..., "--to", metavar="DIR", help="New folder for the benchmark."),
    real_only: bool = typer.Option(False, "--real-only", help="Only real images as ground truth."),
    side: int = typer.Option(0, min=0, max=4096, help="Longest side in pixels; 0: as the build."),
    findings: OwnFindings = None,
    as_json: AsJson = False,
) -> int:
    """Turn a build's successes into samples with exact regions.

    Each success becomes two samples: the reverse edit, whose ground truth is the real original, and the edit itself,
    whose ground truth is the judged edit, marked as synthetic.

    Example: plantain bench from-build runs/pilot --to benches/pilot
    """
    with progress_bar("tasks") as progress:
        made = benchmark_from_build(
            run,
            out,
            real_only=real_only,
            side=side,
            taxonomy=load_taxonomy(findings or ()),
            progress=progress,
        )
    if as_json:
        document = asdict(made) | {"path": str(made.path), "restricted": made.restricted}
        print_json(document)
        return damage_named(made.damaged, "its task is left out")
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
    typer.echo(next_line("bench", "check", out))
    return damage_named(made.damaged, "its task is left out")
