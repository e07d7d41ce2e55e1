"""`plantain withdraw`: a patient's images, and everything that came of them, out of runs and catalogues."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.application import application
from plantain.journal.withdrawal import Extent
from plantain.records import InputError, SourceImage
from plantain.release.withdraw import WithdrawnRun, concerned, is_run, unknown_group, withdraw_from_run
from plantain.sources.catalogue import NAME, Catalogue
from plantain.sources.near import NEAR, join_near_duplicates, write_near_duplicates
from plantain.sources.preview import write_preview
from plantain.sources.quarantine import held
from plantain.sources.withdrawal import (
    WithdrawnImages,
    cut_rejected,
    images_of_group,
    withdraw_from_catalogue,
)

app = application()


@app.command(epilog="Example: plantain withdraw runs/cxr-pilot catalogue --group patient:10000032 --dry-run")
def withdraw(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Runs, catalogues, or both.")],
    group: Annotated[
        str, typer.Option("--group", metavar="ID", help="As the catalogue or a release of the run calls it.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Take a patient or study out for good: images, tasks, edits, verdicts. Names the releases that hold some of it.

    Name the catalogue too: it knows groups that near duplicates were joined under, and a later build takes from it.
    """
    for folder in folders:
        if not is_run(folder) and not (folder / NAME).is_file():
            raise InputError(f"{folder}: neither a run nor a catalogue")
    catalogues = {folder: _in_catalogue(folder, group) for folder in folders if not is_run(folder)}
    images = [image for found in catalogues.values() for image in found.images]
    runs = {folder: concerned(folder, group, images) for folder in folders if is_run(folder)}
    if not images and not any(runs.values()) and not any(found.before for found in catalogues.values()):
        raise _unknown(folders, group)
    if not dry_run:
        # Runs first: while the catalogue stands, a second call still knows which images are meant.
        for folder, found in runs.items():
            if found is not None:
                withdraw_from_run(folder, group, found)
        for folder, taken in catalogues.items():
            _clear_catalogue(folder, group, taken.images)
    told = [_of_catalogue(folder, taken) for folder, taken in catalogues.items()]
    told += [_of_run(folder, found) for folder, found in runs.items()]
    if as_json:
        told_all = {"group": group, "dry_run": dry_run, "folders": told}
        print(orjson.dumps(told_all, option=orjson.OPT_INDENT_2).decode())
        return
    for one in told:
        print(_line(one, dry_run))
    _name_releases(runs)


def _in_catalogue(folder: Path, group: str) -> WithdrawnImages:
    with Catalogue.open(folder) as catalogue:
        return images_of_group(catalogue, group)


def _clear_catalogue(folder: Path, group: str, images: Sequence[SourceImage]) -> None:
    """The images, and the lists beside the catalogue that could name them."""
    withdraw_from_catalogue(folder, group)
    with Catalogue.create(folder) as catalogue:
        write_near_duplicates(folder / NEAR, join_near_duplicates(catalogue))
        write_preview(catalogue, list(held(catalogue)))
    cut_rejected(folder, images)


def _unknown(folders: Sequence[Path], group: str) -> InputError:
    first = next((folder for folder in folders if is_run(folder)), None)
    return (
        unknown_group(first, group)
        if first is not None
        else InputError(f"{folders[0]}: no image of the group {group!r}")
    )


def _of_catalogue(folder: Path, found: WithdrawnImages) -> dict[str, object]:
    return {"folder": str(folder), "kind": "catalogue", "images": len(found.images), "before": found.before}


def _of_run(folder: Path, found: WithdrawnRun | None) -> dict[str, object]:
    found = found or WithdrawnRun(Extent())
    return {
        "folder": str(folder),
        "kind": "run",
        **asdict(found.extent),
        "released_as": list(found.released_as),
        "releases": list(found.releases),
        "before": found.before,
    }


def _line(told: dict[str, object], dry_run: bool) -> str:
    if told["before"]:
        return f"{told['folder']}: withdrawn before; nothing of it is left"
    word = "would take out" if dry_run else "took out"
    more = ""
    if told["kind"] == "run":
        more = f", {told['tasks']} tasks, {told['attempts']} attempts, {told['calls']} calls, {told['blobs']} files"
    return f"{told['folder']}: {word} {told['images']} images{more}"


def _name_releases(runs: dict[Path, WithdrawnRun | None]) -> None:
    for folder, found in runs.items():
        if found is None or not found.releases:
            continue
        names = f" as {', '.join(found.released_as[:20])}" if found.released_as else ""
        print(f"{folder}: these releases hold something of it{names}:")
        for path in found.releases:
            print(f"  {path}")
        print("  export them anew, and ask everybody who has a copy to delete it", file=sys.stderr)
