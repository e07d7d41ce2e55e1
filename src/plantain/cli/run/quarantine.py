"""`plantain run quarantine`: images that may show who somebody is, for a person to release or to mask."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from plantain.catalogue.near import NEAR, join_near_duplicates, write_near_duplicates
from plantain.catalogue.preview import PAGE, write_preview
from plantain.catalogue.quarantine import Held, held, mask, release
from plantain.catalogue.store import NAME, Catalogue
from plantain.cli.terminal.application import application
from plantain.privacy.text_reader import open_reader, why_no_reader
from plantain.records import InputError
from plantain.records.counts import counted

app = application()

ALL = "all"
SHOWN = 40


@app.command(epilog="Example: plantain run quarantine catalogue --mask dicom-2f1c90ab4e7d5513")
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
    _one_decision_each(releases or [], masks or [])
    # A look needs no right to write: the catalogue may be somebody else's.
    with Catalogue.create(root) if releases or masks else Catalogue.open(root) as catalogue:
        released, masked = _decide(catalogue, releases or [], masks or [])
        if released or masked:
            write_near_duplicates(root / NEAR, join_near_duplicates(catalogue))
        waiting = list(held(catalogue))
        try:
            page = write_preview(catalogue, waiting)
        except OSError as error:
            page = None
            print(f"plantain: {root / PAGE}: cannot be written ({error.strerror})", file=sys.stderr)
    if as_json:
        print(json.dumps(_document(waiting, released, masked, page), indent=2, ensure_ascii=False))
        return
    for names, word in ((released, "released"), (masked, "masked")):
        if names:
            print(f"{word} {len(names)}: {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}")
    for one in waiting[:SHOWN]:
        print(f"  {one.image.id}  {one.why} ({counted(len(one.found), 'place')})")
    if len(waiting) > SHOWN:
        print(f"  and {len(waiting) - SHOWN} more")
    print(f"{counted(len(waiting), 'image')} in quarantine" + (f"; look at them in {page}" if page else ""))


def _one_decision_each(releases: list[str], masks: list[str]) -> None:
    """Raises InputError where an image is to be released and masked; what is all beside names is the rest."""
    both = sorted({*releases} & {*masks})
    if both:
        raise InputError(f"--release {both[0]} --mask {both[0]}: give only one of them; nothing was changed")


def _decide(catalogue: Catalogue, releases: list[str], masks: list[str]) -> tuple[list[str], list[str]]:
    """Releases and masks; images that are named come before all of the rest. Returns those for which it was new."""
    reader = open_reader() if masks else None
    if masks and reader is None:
        print(f"plantain: masked images are not read again: {why_no_reader()}", file=sys.stderr)
    released = [name for name in releases if name != ALL and release(catalogue, name)]
    masked = [name for name in masks if name != ALL and mask(catalogue, name, reader)]
    rest = list(held(catalogue))
    if ALL in releases:
        released += [one.image.id for one in rest if release(catalogue, one.image.id)]
    if ALL in masks:
        maskable = [one.image.id for one in rest if one.maskable]
        masked += [name for name in maskable if mask(catalogue, name, reader)]
    return released, masked


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
