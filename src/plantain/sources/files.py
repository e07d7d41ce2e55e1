"""Reading files that others put there: regular ones only, of bounded size, without waiting on pipes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from plantain.records import InputError

MAX_FILE_BYTES = 256 * 1024 * 1024


def read_regular(path: Path, name: str) -> bytes:
    """The bytes of a regular file.

    Raises:
        InputError: it is missing, not readable, not a regular file (a pipe would never end), or larger than 256 MB.
    """
    with open_regular(path, name) as file:
        return file.read(MAX_FILE_BYTES + 1)


@contextmanager
def open_regular(path: Path, name: str) -> Iterator[BinaryIO]:
    """A regular file for reading, for those who need only its beginning.

    Raises:
        InputError: as `read_regular`, also for what goes wrong while it is read.
    """
    try:
        # Not blocking: opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"{name}: not a regular file")
            if status.st_size > MAX_FILE_BYTES:
                raise InputError(
                    f"{name}: {status.st_size >> 20} MB; at most {MAX_FILE_BYTES >> 20} MB are read"
                )
            yield file
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
