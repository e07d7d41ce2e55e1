"""Folders that a training leaves: written whole or not at all, sharing unchanged files with their base."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plantain.journal.disk.blobs import sync_folder
from plantain.records import InputError

CARD = "README.md"


@contextmanager
def written_whole(folder: Path, what: str) -> Iterator[Path]:
    """A folder to write into that takes its place when all is written; one that exists is replaced.

    Raises:
        InputError: `what` cannot be written, as on a full disk.
    """
    from safetensors import SafetensorError

    unfinished = folder.with_name(folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
    except (
        OSError,
        RuntimeError,
        SafetensorError,
    ) as error:  # torch and safetensors have words of their own for it
        shutil.rmtree(unfinished, ignore_errors=True)
        raise cannot_write(folder.parent, what, error) from error
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    sync_folder(folder.parent)


def cannot_write(folder: Path, what: str, error: Exception) -> InputError:
    """The error to raise for what could not be written to a folder; what was there before is whole."""
    free = shutil.disk_usage(folder).free / 1e6
    return InputError(
        f"{folder}: {what} cannot be written ({free:.1f} MB free): {' '.join(str(error).split())[:200]}; what was "
        "there before is whole: make room and run the same command again"
    )


def link_file(source: Path, target: Path) -> None:
    """The same file under another name, without a copy where the file system allows."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)
