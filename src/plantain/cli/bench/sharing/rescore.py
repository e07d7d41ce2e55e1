"""`plantain bench rescore`: a submission's scores, recomputed from its outputs."""

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


@app.command(epilog="Example: plantain bench rescore submission --bench private --to scored")
def rescore(
    path: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The submission's folder.")],
    benchmark: Annotated[
        Path,
        typer.Option("--bench", metavar="BENCH", help="The benchmark, or the private part of a hidden one."),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Keep the recomputed scores, for `bench site`; nothing where they differ.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> int:
    """Recompute what pictures alone decide, and compare; judges' scores with their replies. Exit code 1 if they differ.

    With a private part the outputs are scored against its truths. Outputs that were replaced together with all their
    scores cannot be told from honest ones.
    """
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.score.suite import chosen
    from plantain.bench.submission.bundle import open_bundle
    from plantain.bench.submission.rescoring import rescore as recompute
    from plantain.bench.submission.rescoring import write_rescored
    from plantain.cli.terminal.bar import progress_bar
    from plantain.metrics.networks.available import find_networks

    bench = Benchmark.load(benchmark)
    with progress_bar("outputs") as bar:
        found = recompute(path, bench, find_networks(chosen(None)), hidden_of=bench.public_digest, watch=bar)
    if to is not None and not found.problems:
        write_rescored(bench, found, open_bundle(path), to)
    if as_json:
        document = {
            "ok": not found.problems,
            "problems": list(found.problems),
            "compared": found.compared,
            "not_compared": found.not_compared,
            "judged": found.judged,
            "means": found.means,
        }
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return 1 if found.problems else 0
    for line in found.problems[:SHOWN]:
        typer.echo(line)
    if len(found.problems) > SHOWN:
        typer.echo(f"and {len(found.problems) - SHOWN:,} more (--json names them)")
    if bench.public_digest:
        for arm, means in found.means.items():
            typer.echo(f"{arm}: " + ", ".join(f"{name} {value:z.3f}" for name, value in means.items()))
        sure = (
            "scored against the hidden truths"
            if found.means
            else "nothing scored: no output is of a hidden sample"
        )
    else:
        compared = ", ".join(f"{name} {n}" for name, n in found.compared.items())
        typer.echo(
            f"recomputed and compared: {compared or 'nothing'}; judges' scores against replies: {found.judged}"
        )
        sure = (
            "every recomputable score follows from its output"
            if found.compared or found.judged
            else "nothing in it can be recomputed"
        )
    for name, why in found.not_compared.items():
        typer.echo(f"not recomputed: {name}: {why}")
    typer.echo(f"NOT OK: {counted(len(found.problems), 'problem')}" if found.problems else f"OK: {sure}")
    return 1 if found.problems else 0
