"""Blobs of a run on storage that other machines share: `blobs` in the run's folder is then a link to them."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from plantain.journal.disk.blobs import sync_folder
from plantain.records import InputError

BLOBS, ARRIVING = "blobs", "arriving"

MARK = "blobs-of-a-plantain-run"
"""A file beside such blobs. A link that a stranger put into a run cannot lead to anything else of the user's."""


def keep_blobs_in(run: Path, folder: Path) -> None:
    """Has a run that is not begun yet keep its blobs in a folder of its own under `folder`.

    Does nothing where the run keeps them there already.

    Raises:
        InputError: the run keeps them elsewhere, or `folder` is not there.
    """
    link = run / BLOBS
    if link.is_symlink() and link.readlink().parent.parent == folder.absolute():
        return
    if link.is_symlink() or link.exists():
        raise InputError(
            f"--blobs {folder}: {run} keeps its pictures in {link.readlink() if link.is_symlink() else link}; "
            "their place is fixed when a run begins"
        )
    if not folder.is_dir():
        raise InputError(f"--blobs {folder}: no such folder")
    own = folder.absolute() / f"{run.absolute().name}-{os.urandom(6).hex()}"
    (own / BLOBS).mkdir(parents=True)
    (own / MARK).touch()
    sync_folder(own)
    sync_folder(folder)
    run.mkdir(parents=True, exist_ok=True)
    link.symlink_to(own / BLOBS)
    sync_folder(run)


def own_links(run: Path) -> tuple[Path, ...]:
    """The link of a run to blobs that we put elsewhere. Raises InputError where they are not there."""
    link = run / BLOBS
    if not link.is_symlink():
        return ()
    if not link.is_dir():
        raise InputError(f"{run}: its pictures are in {link.readlink()}, which is not there; mount it first")
    return (link,) if (link.resolve().parent / MARK).is_file() else ()


def shared_blobs(run: Path) -> Path | None:
    """Where the blobs of a run really stand; None where they are in its own folder."""
    link = run / BLOBS
    return link.readlink() if link.is_symlink() else None


def open_arrivals(blobs: Path) -> Path:
    """A new folder for what workers of this head make; those of earlier heads go, with what came too late.

    Only for the holder of the run's lock.
    """
    arriving = blobs.parent / ARRIVING
    for earlier in arriving.iterdir() if arriving.is_dir() else ():
        _remove(earlier)
    own = arriving / os.urandom(6).hex()
    own.mkdir(parents=True)
    sync_folder(arriving)
    return own


def close_arrivals(own: Path) -> None:
    """Removes the folder, with what nobody took."""
    _remove(own)


def _remove(folder: Path) -> None:
    """Takes a folder's name away first: a worker that still writes there fails, and leaves nothing behind."""
    gone = folder.with_name(f".{folder.name}.gone") if not folder.name.startswith(".") else folder
    if gone != folder:
        with contextlib.suppress(FileNotFoundError):
            folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
