"""One writer a run: a kernel lock on a file that says who holds it."""

from __future__ import annotations

import fcntl
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import orjson

from .errors import RunLocked

LOCK_NAME = "lock"


class RunLock:
    """Held from construction to `release`, or until the process ends, however it ends.

    The kernel lock decides, never the file's presence: what a killed process leaves does not block.
    """

    def __init__(self, run: Path) -> None:
        """Raises RunLocked, with pid and host, when another writer holds the run."""
        path = run / LOCK_NAME
        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            content = os.pread(self._descriptor, 4096, 0)
            self._close()
            raise _locked(run, content) from error
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, orjson.dumps(holder) + b"\n", 0)
        # A forked worker inherits the lock and would keep it after its parent was killed. Closing the
        # copy does not release the parent's.
        os.register_at_fork(after_in_child=self._close)

    def release(self) -> None:
        """Gives the run free. The file stays: removing it would let two writers lock two files."""
        self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _locked(run: Path, content: bytes) -> RunLocked:
    try:
        holder = orjson.loads(content)
    except orjson.JSONDecodeError:
        return RunLocked(f"{run}: another process is just opening this run", None, "")
    pid, host = int(holder["pid"]), str(holder["host"])
    message = f"{run}: process {pid} on {host} has been writing to this run since {holder['started']}"
    return RunLocked(message, pid, host)
