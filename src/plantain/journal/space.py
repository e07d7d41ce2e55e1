"""Room on the disk: asked for before a call is paid, and explained when it runs out."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from plantain.records import Step, TaskState

from .connect import JOURNAL_NAME
from .errors import DiskFull
from .reader import JournalReader

EDIT_ROOM = 8 << 20
"""Bytes kept free for each edit in flight: the provider's file, the normalised image, a mask. Paid answers
must find a place."""
BASE_ROOM = 4 << 20
"""Bytes kept free beside them for the journal's own log."""

_FULL_FILES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def is_full(error: OSError | sqlite3.Error) -> bool:
    """Whether an error means that the disk, the quota or the allowed file size is used up."""
    if isinstance(error, OSError):
        return error.errno in _FULL_FILES
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def check_room(run: Path, step: Step, open_edits: int) -> None:
    """Raises DiskFull when a further call could bring back more than fits beside those in flight."""
    wanted = BASE_ROOM + EDIT_ROOM * (open_edits + (step is Step.EDIT))
    if shutil.disk_usage(run).free < wanted:
        raise disk_full(run, wanted)


def disk_full(run: Path, wanted: int) -> DiskFull:
    """The error to raise, with what the rest of the run needs, reckoned from what its closed tasks took."""
    free = shutil.disk_usage(run).free
    with JournalReader.open(run) as reader:
        counts = reader.counts()
        stored = reader.blob_bytes() + (run / JOURNAL_NAME).stat().st_size
    pending = counts[TaskState.PENDING]
    closed = sum(counts.values()) - pending
    needed = max(wanted, EDIT_ROOM, pending * stored // closed if closed else pending * EDIT_ROOM)
    return DiskFull(
        f"{run}: the disk is full ({free / 1e6:.1f} MB free); the {pending} tasks left need about "
        f"{needed / 1e6:.0f} MB. Nothing recorded is lost: make room and run the same command again",
        free,
        needed,
    )
