"""Where the files of a source lie: walked once, in an order that no locale changes, never led out by a link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from plantain.files.opening import is_inside
from plantain.records import InputError

CLUTTER = frozenset({"thumbs.db", "desktop.ini"})
"""What Windows leaves in folders; hidden files, which a Mac leaves, are recognised by their dot."""


def walk(root: Path, *, deepest: int = 12) -> Iterator[Path]:
    """Every file below a folder that is not hidden or clutter, sorted by names as bytes; links that lead out skipped.

    Raises:
        InputError: the root is no folder that can be read.
    """
    if not root.is_dir():
        raise InputError(f"{root}: not a folder")
    for folder, folders, files in os.walk(root, onerror=_stop):
        here = Path(folder)
        if len(here.relative_to(root).parts) >= deepest:
            folders.clear()
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=os.fsencode)
        for name in sorted(files, key=os.fsencode):
            path = here / name
            if name.startswith(".") or name.lower() in CLUTTER:
                continue
            if not path.is_symlink() or is_inside(path, root):
                yield path


def shown(path: Path, root: Path) -> str:
    """A file as messages name it: relative to its source, with forward slashes."""
    return path.relative_to(root).as_posix()


def _stop(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error
