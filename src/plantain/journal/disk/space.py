"""Room on the disk: checked before a call is paid for, and explained when it runs out."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.journal.errors import DiskFull
from plantain.journal.reader import JournalReader
from plantain.records import InputError, Step, TaskState
from plantain.records.counts import counted

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
    """The error to raise, with what the rest of the run needs, estimated from its closed tasks."""
    free = shutil.disk_usage(run).free
    pending, needed = _rest_of(run)
    return DiskFull(
        f"{run}: the disk is full, or a quota used up ({free / 1e6:.1f} MB free); the {counted(pending, 'task')} left "
        f"need about {max(wanted, needed) / 1e6:.0f} MB. Nothing recorded is lost: make room and run the same command "
        "again"
    )


def _rest_of(run: Path) -> tuple[int, int]:
    """Pending tasks and the bytes that they will take; (0, 0) when the journal cannot even be opened."""
    try:
        with JournalReader.open(run) as reader:
            counts = reader.counts()
            stored = reader.blob_bytes() + (run / JOURNAL_NAME).stat().st_size
    except (InputError, sqlite3.OperationalError):
        return 0, 0
    pending = counts[TaskState.PENDING]
    closed = sum(counts.values()) - pending
    return pending, pending * stored // closed if closed else pending * EDIT_ROOM
