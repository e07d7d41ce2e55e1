"""`plantain import`: a published release back into a journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application
from plantain.records import InputError
from plantain.records.counts import counted

app = application()


@app.command(epilog="Example: plantain import release --run runs/theirs")
def import_run(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="Folder of a release: ours in any layout, or Med-Banana's tree; or a table of pairs.",
        ),
    ],
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="New folder for the run.")],
    layout: Annotated[
        str, typer.Option("--layout", help="release, or pairs: any published set of edits, one a row.")
    ] = "release",
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="ROLE=NAME",
            help="Of pairs: which column tells what, e.g. instruction=prompt.",
        ),
    ] = None,
    originals: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Your own originals: a catalogue or run, found by hash; of pairs a folder, joined by file name.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Read a release back, to look at it, report on it or export it again. What it does not say stays unknown."""
    if layout not in ("release", "pairs"):
        raise InputError(f"--layout {layout}: release or pairs")
    if layout == "pairs":
        _pairs(path, run, column or [], originals, as_json=as_json)
        return
    if column:
        raise InputError("--column belongs to --layout pairs")
    from plantain.release.importing.importing import import_release

    summary = import_release(path, run, originals)
    if as_json:
        print(orjson.dumps(summary, default=str).decode())
        return
    print(
        f"{run}: {counted(summary.tasks, 'task')}, {counted(summary.attempts, 'attempt')}, "
        f"{counted(summary.images, 'image')} ({summary.kind})"
    )
    if summary.signed:
        print(
            f"{counted(summary.signed, 'image was', 'images were')} signed and kept as judged, without manifest; the "
            "signatures were not checked here (plantain verify does that)"
        )
    if summary.originals or summary.without_original:
        print(
            f"{counted(summary.originals, 'original')} imported, {summary.without_original} missing"
            + ("; pass your own with --originals CATALOGUE" if summary.without_original else "")
        )
    if summary.missing:
        print(
            f"{counted(summary.missing, 'image is', 'images are')} named but did not come along; the hash is kept"
        )


def _pairs(path: Path, run: Path, column: list[str], originals: Path | None, *, as_json: bool) -> None:
    from plantain.release.importing.pairs import import_pairs

    if wrong := next((pair for pair in column if "=" not in pair), None):
        raise InputError(f"--column {wrong}: expected ROLE=NAME, e.g. instruction=prompt")
    columns = {role: name for role, _, name in (one.partition("=") for one in column)}
    summary = import_pairs(path, run, columns=columns, originals=originals)
    if as_json:
        print(orjson.dumps(summary, default=str).decode())
        return
    published = ", ".join(f"{n} {verdict}" for verdict, n in sorted(summary.published.items()))
    print(
        f"{run}: {counted(summary.tasks, 'edit')} of {counted(summary.rows, 'row')}; published verdicts: {published}"
    )
    if summary.without_original:
        print(f"{summary.without_original} without their original: no judge can judge them (--originals DIR)")
    if summary.without_instruction:
        print(
            f"{counted(summary.without_instruction, 'row')} without an instruction: the finding stands in for it"
        )
    for reason, n in summary.left_out.most_common(5):
        ids = summary.left_out_ids.get(reason, [])
        rows = f" (id {', '.join(ids)}{', …' if n > len(ids) else ''})" if ids else ""
        print(f"left out {counted(n, 'row')}{rows}: {reason}")
