"""One writer a run: a kernel lock on a file that says who holds it."""

from __future__ import annotations

import fcntl
import os
import socket
import weakref
from datetime import UTC, datetime
from pathlib import Path

import orjson

from plantain.journal.errors import RunLocked

LOCK_NAME = "lock"


_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


class RunLock:
    """Held from construction to `release`, or until the process ends, however it ends.

    The kernel lock decides, never the file's presence: what a killed process leaves does not block.
    """

    def __init__(self, run: Path) -> None:
        """Raises RunLocked, with pid and host, when another writer holds the run; OSError as the disk does."""
        path = run / LOCK_NAME
        self._descriptor: int | None = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644
        )
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            content = os.pread(self._descriptor, 4096, 0)
            self.drop()
            raise _locked(run, content) from error
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            # In place, so that a full disk does not stop a run that was here before from being opened.
            length = os.pwrite(self._descriptor, orjson.dumps(holder) + b"\n", 0)
            os.ftruncate(self._descriptor, length)
        except OSError:
            self.drop()
            raise
        _held.add(self)

    def release(self) -> None:
        """Gives the run free. The file stays: removing it would let two writers lock two files."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.drop()

    def drop(self) -> None:
        """Closes this process's copy of the lock without giving it up for a process that shares it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _drop_inherited() -> None:
    """A forked worker inherits the lock and would hold it after its parent was killed; closing the worker's
    copy does not release the parent's."""
    for lock in list(_held):
        lock.drop()


os.register_at_fork(after_in_child=_drop_inherited)


def _locked(run: Path, content: bytes) -> RunLocked:
    try:
        holder = orjson.loads(content)
    except orjson.JSONDecodeError:
        return RunLocked(f"{run}: another process is just opening this run", None, "")
    pid, host = int(holder["pid"]), str(holder["host"])
    message = f"{run}: process {pid} on {host} has been writing to this run since {holder['started']}"
    return RunLocked(message, pid, host)
