"""`plantain import`: a published release back into a journal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application

app = application()


@app.command(epilog="Example: plantain import release --run runs/theirs")
def import_run(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="Folder of a release: ours in any layout, or Med-Banana's tree."),
    ],
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="New folder for the run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Read a release back, to look at it, report on it or export it again. What it does not say stays unknown."""
    from plantain.release.importing.importing import import_release

    summary = import_release(path, run)
    if as_json:
        print(orjson.dumps({**asdict(summary), "run": str(run)}).decode())
        return
    print(
        f"{run}: {summary.tasks} tasks, {summary.attempts} attempts, {summary.images} images ({summary.kind})"
    )
    if summary.signed:
        print(
            f"{summary.signed} images were signed: they are kept as they were judged, without their manifests; the "
            "signatures were not checked here (plantain verify does that)"
        )
    if summary.originals or summary.without_original:
        print(
            f"{summary.originals} originals came along, {summary.without_original} did not"
            + (
                "; `plantain release attach` puts your own back before an import"
                if summary.without_original
                else ""
            )
        )
    if summary.missing:
        print(f"{summary.missing} images are named but did not come along; their hashes are kept")
