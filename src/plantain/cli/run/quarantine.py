"""`plantain run quarantine`: release or mask images that may identify a patient."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from plantain.catalogue.near import NEAR, join_near_duplicates, write_near_duplicates
from plantain.catalogue.preview import PAGE, write_preview
from plantain.catalogue.quarantine import held, mask, release
from plantain.catalogue.store import NAME, Catalogue
from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.tables import print_json
from plantain.journal.connect import JOURNAL_NAME
from plantain.privacy.rapid_text import open_reader, why_no_reader
from plantain.records import InputError
from plantain.records.messages import command_line, counted, init_line, like_path, next_line

ALL = "all"
SHOWN = 40


def quarantine(
    root: Path = typer.Argument(..., metavar="CATALOGUE", help="Folder that `plantain ingest` wrote."),
    releases: list[str] | None = typer.Option(
        None, "--release", metavar="ID", help="Use this image as it is; or all; repeatable."
    ),
    masks: list[str] | None = typer.Option(
        None, "--mask", metavar="ID", help="Mask this image, then use it; or all; repeatable."
    ),
    as_json: AsJson = False,
) -> None:
    """List quarantined images and write a page with the reasons; release them, or mask the marked places.

    Example: plantain run quarantine catalogue --mask dicom-2f1c90ab4e7d5513
    """
    if (root / JOURNAL_NAME).is_file():
        line = command_line("run", "quarantine", "CATALOGUE")
        raise InputError(f"{root} is a run; images of a catalogue are put into quarantine: {line}")
    if not (root / NAME).is_file():
        hint = like_path(root) or "; make one with `plantain ingest`"
        raise InputError(f"{root}: no catalogue there (no {NAME}){hint}")
    if both := sorted({*(releases or ())} & {*(masks or ())}):
        raise InputError(f"--release {both[0]} --mask {both[0]}: give only one of them; nothing was changed")
    # Listing works on a read-only catalogue.
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
        found = {
            one.image.id: [
                {"kind": f.kind, "text": f.text, "box": [f.box.left, f.box.top, f.box.width, f.box.height]}
                for f in one.found
            ]
            for one in waiting
        }
        listed = [{"id": name, "found": places} for name, places in found.items()]
        print_json({"waiting": listed, "released": released, "masked": masked, "page": page})
        return
    for names, word in ((released, "released"), (masked, "masked")):
        if names:
            print(f"{word} {len(names)}: {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}")
    for one in waiting[:SHOWN]:
        print(f"  {one.image.id}  {one.why} ({counted(len(one.found), 'place')})")
    if len(waiting) > SHOWN:
        print(f"  and {len(waiting) - SHOWN} more")
    print(f"{counted(len(waiting), 'image')} in quarantine" + (f"; look at them in {page}" if page else ""))
    print(next_line("run", "quarantine", root, "--mask", "all") if waiting else init_line(root))


def _decide(catalogue: Catalogue, releases: list[str], masks: list[str]) -> tuple[list[str], list[str]]:
    """Release and mask, named images before "all". Return the ids that changed."""
    reader = open_reader() if masks else None
    if masks and reader is None:
        print(f"plantain: masked images are not checked again for text: {why_no_reader()}", file=sys.stderr)
    released = [name for name in releases if name != ALL and release(catalogue, name)]
    masked = [name for name in masks if name != ALL and mask(catalogue, name, reader)]
    rest = list(held(catalogue))
    if ALL in releases:
        released += [one.image.id for one in rest if release(catalogue, one.image.id)]
    if ALL in masks:
        maskable = [one.image.id for one in rest if one.maskable]
        masked += [name for name in maskable if mask(catalogue, name, reader)]
    return released, masked
