"""One writer per run: a kernel lock on a file, on a file system whose locks can be trusted."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import weakref
from datetime import UTC, datetime
from pathlib import Path

import orjson

from plantain.journal.errors import RunLocked
from plantain.records import InputError

LOCK_NAME = "lock"

REFUSED = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "fuse.sshfs"})
"""File systems, as in /proc/self/mountinfo, without the locks and shared memory that SQLite's log needs. Cluster file
systems with coherent locks (Lustre, GPFS, BeeGFS, CephFS) are not among them."""

_MOUNTS = Path("/proc/self/mountinfo")

_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


class RunLock:
    """Held from construction to `release`, or until the process ends, however it ends.

    The kernel lock decides, never the file's presence: the file of a killed process does not block.
    """

    def __init__(self, run: Path) -> None:
        """Raise RunLocked, with pid and host, when another writer holds the run; OSError if the disk fails."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        self._descriptor: int | None = os.open(run / LOCK_NAME, flags, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            holder = {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            # In place, so that an existing run can be opened on a full disk.
            length = os.pwrite(self._descriptor, orjson.dumps(holder) + b"\n", 0)
            os.ftruncate(self._descriptor, length)
        except BlockingIOError as error:
            content = os.pread(self._descriptor, 4096, 0)
            self.drop()
            raise RunLocked(_who_holds(run, content)) from error
        except OSError:
            self.drop()
            raise
        _held.add(self)

    def release(self) -> None:
        """Release the run. The file stays: removing it would let two writers lock two files."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.drop()

    def drop(self) -> None:
        """Close this process's copy of the lock without releasing it for a process that shares it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _drop_inherited() -> None:
    """A forked worker inherits the lock and would keep it after its parent was killed; closing the worker's copy does
    not release the parent's."""
    for lock in list(_held):
        lock.drop()


os.register_at_fork(after_in_child=_drop_inherited)


def last_holder(run: Path) -> tuple[int, str] | None:
    """Return process and host that locked the run last, whether or not they still do; None if no file says."""
    try:
        holder = orjson.loads((run / LOCK_NAME).read_bytes())
        return int(holder["pid"]), str(holder["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _who_holds(run: Path, content: bytes) -> str:
    try:
        holder = orjson.loads(content)
    except orjson.JSONDecodeError:
        return f"{run}: another process is just opening this run"
    return f"{run}: process {holder['pid']} on {holder['host']} has been writing to this run since {holder['started']}"


def check_filesystem(run: Path, mounts: Path = _MOUNTS) -> None:
    """Raise InputError if `run` is on a network file system; pass where the type is unknown."""
    kind = filesystem_type(run, mounts)
    if kind in REFUSED:
        raise InputError(
            f"{run} is on a network file system ({kind}), where a killed run can be lost; write it to a local disk, "
            "with --blobs DIR to keep its images on shared storage, or copy it when it is done"
        )


def filesystem_type(folder: Path, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system of `folder`, e.g. "ext4"; "" off Linux."""
    if not mounts.is_file():
        return ""
    real, depth, kind = folder.resolve(), -1, ""
    for line in mounts.read_text(errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        octal = re.compile(r"\\([0-7]{3})")  # of space, tab, newline and backslash
        point = Path(octal.sub(lambda found: chr(int(found[1], 8)), before.split()[4]))
        # Later lines are mounted over earlier ones at the same point.
        if real.is_relative_to(point) and len(point.parts) >= depth:
            depth, kind = len(point.parts), after.split()[0]
    return kind
