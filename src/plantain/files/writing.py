"""Writing into folders of others: every file is a new one, and no planted link is written through."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from plantain.files.opening import check_inside


def open_folder(root: Path, name: str = "") -> Path:
    """Make a folder of `root` to write into, and `root` itself; return its path.

    Raises:
        InputError: a link in `root` leads out of it; `root` itself may be a link of the user's.
    """
    root.mkdir(parents=True, exist_ok=True)
    folder = root
    for part in Path(name).parts:
        folder /= part
        if not os.path.lexists(folder):
            folder.mkdir(exist_ok=True)
        check_inside(root, folder)
    return folder


@contextmanager
def create(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a new file for writing; a link, or a file of a killed process, of that name is removed first.

    Raises:
        OSError: the disk refuses, or another process made a file of this name at the same time.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, mode)
    except FileExistsError:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, flags, mode)
    with os.fdopen(descriptor, "wb") as file:
        yield file


def replace_file(path: Path, data: bytes | Iterable[bytes], mode: int = 0o666) -> None:
    """Replace a file atomically: readers see the old file or the new one, also after a power cut."""
    part = path.with_name(f".{path.name}.part")
    try:
        with create(part, mode) as file:
            file.writelines((data,) if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
