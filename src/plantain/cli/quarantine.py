"""`plantain quarantine`: images that may show who somebody is, for a person to release or to mask."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.application import application
from plantain.pixels.text import open_reader, why_no_reader
from plantain.records import InputError
from plantain.sources.catalogue import NAME, Catalogue
from plantain.sources.near import NEAR, join_near_duplicates, write_near_duplicates
from plantain.sources.preview import write_preview
from plantain.sources.quarantine import Held, held, mask, release

app = application()

ALL = "all"
SHOWN = 40


@app.command(epilog="Example: plantain quarantine catalogue --mask dicom-2f1c90ab4e7d5513")
def quarantine(
    root: Annotated[Path, typer.Argument(metavar="CATALOGUE", help="Folder that `plantain ingest` wrote.")],
    releases: Annotated[
        list[str] | None,
        typer.Option(
            "--release", metavar="ID", help="Nothing in it identifies anybody: use it as it is; or all."
        ),
    ] = None,
    masks: Annotated[
        list[str] | None,
        typer.Option(
            "--mask", metavar="ID", help="Blacken what was found, then use it; or all (but photographs)."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the images in quarantine, with a page that shows why; release them, or mask what was found."""
    if not (root / NAME).is_file():
        raise InputError(f"{root}: no catalogue there (no {NAME}); make one with `plantain ingest`")
    with Catalogue.create(root) as catalogue:
        reader = open_reader() if masks else None
        if masks and reader is None:
            print(f"plantain: masked images are not read again: {why_no_reader()}", file=sys.stderr)
        released = _decide(catalogue, releases or [], lambda name: release(catalogue, name))
        maskable = [waiting.image.id for waiting in held(catalogue) if waiting.maskable]
        wanted = maskable if masks == [ALL] else masks or []
        masked = _decide(catalogue, wanted, lambda name: mask(catalogue, name, reader))
        if released or masked:
            write_near_duplicates(root / NEAR, join_near_duplicates(catalogue))
        waiting = list(held(catalogue))
        page = write_preview(catalogue, waiting)
    if as_json:
        print(json.dumps(_document(waiting, released, masked, page), indent=2, ensure_ascii=False))
        return
    for names, word in ((released, "released"), (masked, "masked")):
        if names:
            print(f"{word} {len(names)}: {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}")
    for one in waiting[:SHOWN]:
        print(f"  {one.image.id}  {one.why} ({len(one.found)} places)")
    if len(waiting) > SHOWN:
        print(f"  and {len(waiting) - SHOWN} more")
    print(f"{len(waiting)} images in quarantine" + (f"; look at them in {page}" if page else ""))


def _decide(catalogue: Catalogue, names: list[str], act: Callable[[str], bool]) -> list[str]:
    """Acts on each named image; returns those for which that was new."""
    if names == [ALL]:
        names = [waiting.image.id for waiting in held(catalogue)]
    return [name for name in names if act(name)]


def _document(
    waiting: list[Held], released: list[str], masked: list[str], page: Path | None
) -> dict[str, object]:
    return {
        "waiting": [
            {
                "id": one.image.id,
                "found": [
                    {
                        "kind": found.kind,
                        "text": found.text,
                        "box": [found.box.left, found.box.top, found.box.width, found.box.height],
                    }
                    for found in one.found
                ],
            }
            for one in waiting
        ],
        "released": released,
        "masked": masked,
        "page": None if page is None else str(page),
    }
