"""`plantain verify`: check a release against its manifest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.tables import print_json
from plantain.files.installed import require_extra
from plantain.records.messages import command_line, counted, next_line

SHOWN = 10
"""Problems shown on the terminal; --json prints all."""


def verify(
    out: Path = typer.Argument(..., metavar="OUT", help="Folder of the release; nothing in it is changed."),
    against: Path | None = typer.Option(None, metavar="DIR", help="The run it was made from, to compare."),
    pixels: bool = typer.Option(False, "--pixels", help="Decode every image and compare pixels."),
    as_json: AsJson = False,
) -> int:
    """Check every checksum, count, row, schema, licence and signature of a release.

    Exit code 0 if everything is correct, else 1.

    Example: plantain verify releases/pilot --against runs/pilot --pixels
    """
    require_extra("plantain verify", "release", "pyarrow")
    from plantain.release.proof.verify import verify_release

    proof = verify_release(out, against=against, pixels=pixels)
    if as_json:
        print_json({"ok": proof.ok, **asdict(proof)})
        return 0 if proof.ok else 1
    size = f"{counted(proof.files, 'file')}, {proof.bytes / 1e6:,.1f} MB, {counted(proof.images, 'edited image')}"
    remark = ""
    if proof.system:
        more = ", …" if len(proof.system) > 5 else ""
        remark = f"; not of the release, and not checked: {', '.join(proof.system[:5])}{more}"
    if proof.ok:
        typer.echo(f"OK: {size}; release {proof.release[:16]}{remark}")
        typer.echo(next_line("view", out))
        return 0
    typer.echo(f"NOT OK: {counted(len(proof.problems), 'problem')} in {size}{remark}")
    for problem in proof.problems[:SHOWN]:
        typer.echo(f"  {problem}")
    if len(proof.problems) > SHOWN:
        typer.echo(f"  and {len(proof.problems) - SHOWN:,} more (--json prints all)")
    if any(problem.kind == "against" for problem in proof.problems):
        again = command_line("export", against, "--to", "NEW_RELEASE", "--licence", "TERMS")
        typer.echo(f"the run changed since the export, or the release was altered; export again: {again}")
    return 1
