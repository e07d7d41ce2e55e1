"""`plantain release`: work with releases as a whole: compare two, write notes, put originals back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

app = application()

SHOWN = 10
"""Changes of each kind that are named on the terminal; --json has them all."""


@app.callback()
def release() -> None:
    """Work with releases as a whole."""


@app.command(epilog="Example: plantain release diff releases/v1 releases/v2")
def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="The earlier release.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The later release.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print every change as JSON.")] = False,
) -> int:
    """Say what changed from release A to release B: tasks, images, files, licences, facts of the run.

    Exit code 0 whether or not they differ.
    """
    from plantain.models.extras import require_extra

    require_extra("plantain release diff", "release", "pyarrow")
    from plantain.release.diff import diff_releases

    difference = diff_releases(a, b)
    if as_json:
        typer.echo(json.dumps({"same": difference.same, **asdict(difference)}, indent=1))
        return 0
    if difference.same:
        typer.echo("the same")
    for name, counts in difference.counts.items():
        typer.echo(f"{name}: " + ", ".join(f"{n:,} {how}" for how, n in counts.items()))
        changes = getattr(difference, name)
        for change in changes[:SHOWN]:
            typer.echo(f"  {change.how:<8} {change.name}" + (f": {change.detail}" if change.detail else ""))
        if len(changes) > SHOWN:
            typer.echo(f"  and {sum(counts.values()) - SHOWN:,} more (--json names them)")
    return 0


@app.command(epilog="Example: plantain release notes releases/v1 releases/v2 > NOTES.md")
def notes(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The release that readers have.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The one that replaces it.")],
) -> None:
    """Write release notes from OLD to NEW, as Markdown: totals before and now, and what was added, changed, removed."""
    from plantain.models.extras import require_extra

    require_extra("plantain release notes", "release", "pyarrow")
    from plantain.release.notes import release_notes

    typer.echo(release_notes(old, new), nl=False)


@app.command(epilog="Example: plantain release attach releases/theirs --from catalogues/mimic")
def attach(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Your copy of a release.")],
    source: Annotated[
        Path, typer.Option("--from", metavar="CATALOGUE", help="Your own catalogue (or run) of its sources.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> int:
    """Put your own licensed originals back beside a release, found by hash.

    They go to RELEASE/attached and stay yours: they are no part of the release, and `plantain verify` says so. An
    import of RELEASE then has them, and so does training.
    """
    from plantain.models.extras import require_extra

    require_extra("plantain release attach", "release", "pyarrow")
    from plantain.release.attach import attach_originals

    done = attach_originals(release, source)
    if as_json:
        typer.echo(json.dumps(asdict(done)))
        return 0
    typer.echo(
        f"{counted(done.attached, 'original')} attached, {done.there:,} were there, {done.missing:,} not found "
        f"in {source}"
    )
    if done.missing:
        typer.echo(
            "an original is found only where it was prepared in the same way (`plantain ingest`, --stretch or not)"
        )
    return 0
