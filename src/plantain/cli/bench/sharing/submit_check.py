"""`plantain bench submit-check`: whether a submission is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

app = application()

SHOWN = 20
"""Problems that are named on the terminal; --json has every one."""


@app.command("submit-check", epilog="Example: plantain bench submit-check submission --bench bench")
def submit_check(
    path: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The submission's folder.")],
    benchmark: Annotated[
        Path | None, typer.Option("--bench", metavar="BENCH", help="The benchmark that it is of.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> int:
    """Check a submission: complete, unchanged, of the right sizes, scored alike. Exit code 1 where it is not.

    Nothing in it is run and no link is followed. Scores are not recomputed: `bench rescore` does that.
    """
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.submission.checking import check_bundle

    checked = check_bundle(path, Benchmark.load(benchmark) if benchmark is not None else None)
    header = checked.bundle.header if checked.bundle is not None else None
    if as_json:
        document = {
            "ok": not checked.problems,
            "name": header.name if header else None,
            "benchmark": header
            and {"name": header.benchmark, "version": header.edition, "digest": header.digest},
            "arms": list(header.arms) if header else [],
            "metrics": checked.metrics,
            "problems": list(checked.problems),
        }
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return 1 if checked.problems else 0
    for line in checked.problems[:SHOWN]:
        typer.echo(line)
    if len(checked.problems) > SHOWN:
        typer.echo(f"and {len(checked.problems) - SHOWN:,} more (--json names them)")
    if header is not None and checked.bundle is not None:
        version = f" {header.edition}" if header.edition else ""
        typer.echo(
            f"{header.name}: {counted(len(header.arms), 'arm')} on {header.benchmark}{version} ({header.digest[:12]}), "
            f"{counted(sum(bool(row.file) for row in checked.bundle.outputs), 'picture')}"
        )
        typer.echo(f"metrics: {', '.join(f'{name} {n}' for name, n in checked.metrics.items())}")
    typer.echo(f"NOT OK: {counted(len(checked.problems), 'problem')}" if checked.problems else "OK")
    return 1 if checked.problems else 0
