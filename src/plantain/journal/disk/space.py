"""Room on the disk: checked before a call is paid for, and explained when it runs out."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from plantain.journal.errors import DiskFull
from plantain.records import Step

EDIT_ROOM = 8 << 20
"""Bytes kept free for each edit in flight: the provider's file, the normalised image, a mask."""
BASE_ROOM = 4 << 20
"""Bytes kept free in addition for the journal's own log."""

_FULL_FILES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# A quota or a limit on file size reaches SQLite's caller as a failed write.
_FULL_DATABASES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}


def is_full(error: OSError | sqlite3.Error) -> bool:
    """Return True if an error means that the disk, the quota or the allowed file size is used up."""
    if isinstance(error, OSError):
        return error.errno in _FULL_FILES
    return getattr(error, "sqlite_errorcode", None) in _FULL_DATABASES


def raise_if_full(run: Path, error: OSError | sqlite3.Error, wanted: int = 0) -> None:
    """Raise DiskFull in place of an error that means it; return for any other."""
    if is_full(error):
        raise _disk_full(run, wanted) from error


def check_room(run: Path, step: Step, open_edits: int) -> None:
    """Raise DiskFull when a further call could bring back more than fits beside those in flight."""
    wanted = BASE_ROOM + EDIT_ROOM * (open_edits + (step is Step.EDIT))
    if shutil.disk_usage(run).free < wanted:
        raise _disk_full(run, wanted)


def _disk_full(run: Path, wanted: int) -> DiskFull:
    free = shutil.disk_usage(run).free
    needed = f", at least {wanted / 1e6:.0f} MB needed" if wanted else ""
    return DiskFull(
        f"{run}: the disk is full, or a quota used up: {free / 1e6:.1f} MB free{needed}. Nothing recorded is lost: "
        "free some space and run the same command again"
    )
