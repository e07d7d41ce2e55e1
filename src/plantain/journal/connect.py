"""Opening a run: the lock of its one writer, connections to its database, and new runs of an import or a merge."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from plantain.files.opening import check_received, sqlite_uri
from plantain.files.secrets import keys_hidden, redacted
from plantain.journal.blobs import sync_folder
from plantain.journal.rows import RunLocked, check_version
from plantain.records import InputError
from plantain.records.messages import like_folder, like_path

JOURNAL_NAME = "journal.sqlite"
_BUSY_SECONDS = 30.0


class _Redacting(sqlite3.Connection):
    """The writer's connection: no text passes it that contains a key. This is the one place before the disk."""

    def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
        return super().execute(sql, _without_keys(parameters) if keys_hidden() else parameters)  # type: ignore[arg-type]

    def executemany(self, sql: str, parameters: Iterable[object], /) -> sqlite3.Cursor:
        return super().executemany(sql, map(_without_keys, parameters) if keys_hidden() else parameters)  # type: ignore[arg-type]


def _without_keys(value: Any) -> Any:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: _without_keys(inner) for name, inner in value.items()}
    return [_without_keys(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open a database for its writer: WAL, every commit synced, foreign keys enforced, no implicit transactions."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=_Redacting
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS only; elsewhere a sync is a sync
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -32768")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")  # 16 MB: hot pages are written back once
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


@contextlib.contextmanager
def held(run: Path) -> Iterator[sqlite3.Connection]:
    """Lock a run and open its database for writing during the block, outside a build.

    Raises:
        InputError: the folder is not a run, or one of another version.
        RunLocked: another process writes to it.
    """
    refuse_foreign(run)
    lock = RunLock(run)
    try:
        with contextlib.closing(open_for_writing(run / JOURNAL_NAME)) as connection:
            yield connection
    finally:
        lock.release()


def refuse_foreign(run: Path) -> None:
    """Check that a folder is a run of this version, without changing it. Raise InputError otherwise."""
    open_for_reading(run).close()


def open_for_reading(run: Path) -> sqlite3.Connection:
    """Open a run's journal, live or copied, for reading only.

    Raises:
        InputError: not a run, one of another version, or a copy in a read-only folder whose log still has commits.
    """
    path = run / JOURNAL_NAME
    if not path.is_file():
        raise InputError(_no_run(run))
    check_received(run, levels=2)
    uri = sqlite_uri(path, _mode(path))
    connection = sqlite3.connect(
        uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        check_version(connection, path)
        connection.execute("PRAGMA query_only = ON")
    except (ValueError, sqlite3.Error):
        connection.close()
        raise
    return connection


def _mode(path: Path) -> str:
    """SQLite cannot make its index file in a read-only folder; without writers it needs none."""
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if os.access(path.parent, os.W_OK) or index.exists():
        return "mode=ro"
    if log.exists() and log.stat().st_size:
        raise InputError(
            f"{log}: contains commits and cannot be read in a read-only folder; copy the run elsewhere"
        )
    return "mode=ro&immutable=1"


def _no_run(run: Path) -> str:
    """Return an error that suggests a run one folder deeper, "run" first, as `plantain demo` makes it."""
    if not run.exists():
        return f"{run} is not a run: it does not exist{like_path(run) or like_folder(run, JOURNAL_NAME)}"
    below = sorted(run.glob(f"*/{JOURNAL_NAME}"), key=lambda path: (path.parent.name != "run", path))
    inner = next(iter(below), None)
    hint = f"; did you mean {str(inner.parent)!r}?" if inner is not None else like_folder(run, JOURNAL_NAME)
    return f"{run} is not a run: it contains no {JOURNAL_NAME}{hint}"


@contextlib.contextmanager
def temporary_changes(connection: sqlite3.Connection) -> Iterator[None]:
    """Allow a read-only connection to make temporary tables and views during the block; blocks may be nested.

    The database file does not change.
    """
    (before,) = connection.execute("PRAGMA query_only").fetchone()
    connection.execute("PRAGMA query_only = OFF")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA query_only = {before}")


LOCK_NAME = "lock"

REFUSED = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "fuse.sshfs"})
"""File systems, as in /proc/self/mountinfo, without the locks and shared memory that SQLite's log needs. Cluster file
systems with coherent locks (Lustre, GPFS, BeeGFS, CephFS) are not among them."""

MOUNTS = Path("/proc/self/mountinfo")

_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


class RunLock:
    """The lock of a run's writer, held from construction to `release` or the end of the process.

    Only the kernel's lock counts, not the file: the file of a killed process does not block.
    """

    def __init__(self, run: Path) -> None:
        """Raise RunLocked, with pid and host, when another writer holds the run; OSError if the disk fails."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        self._descriptor: int | None = os.open(run / LOCK_NAME, flags, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            holder = {"pid": os.getpid(), "host": socket.gethostname()}
            # In place, so that an existing run can be opened on a full disk.
            length = os.pwrite(self._descriptor, orjson.dumps(holder) + b"\n", 0)
            os.ftruncate(self._descriptor, length)
        except BlockingIOError as error:
            self.drop()
            pid, host = last_holder(run) or ("unknown", "an unknown host")
            raise RunLocked(f"{run}: process {pid} on {host} has been writing to this run") from error
        except OSError:
            self.drop()
            raise
        _held.add(self)

    def release(self) -> None:
        """Release the lock. The file stays: removing it would let two writers lock two files."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.drop()

    def drop(self) -> None:
        """Close this process's copy of the lock; a process that shares the lock keeps it."""
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
    """Return (process id, host) of the latest holder of a run's lock, even if released; None if unknown."""
    try:
        holder = orjson.loads((run / LOCK_NAME).read_bytes())
        return int(holder["pid"]), str(holder["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_filesystem(run: Path) -> None:
    """Check that a run is not on a network file system; unknown types pass. Raise InputError otherwise."""
    if (kind := _filesystem_type(run)) in REFUSED:
        raise InputError(
            f"{run} is on a network file system ({kind}), where a killed run can be lost; write it to a local disk, "
            "and copy it when it is done"
        )


def _filesystem_type(folder: Path) -> str:
    real, depth, kind = folder.resolve(), -1, ""
    mounts = MOUNTS.read_text(errors="surrogateescape") if MOUNTS.is_file() else ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        octal = re.compile(r"\\([0-7]{3})")  # of space, tab, newline and backslash
        point = Path(octal.sub(lambda found: chr(int(found[1], 8)), before.split()[4]))
        # Later lines are mounted over earlier ones at the same point.
        if real.is_relative_to(point) and len(point.parts) >= depth:
            depth, kind = len(point.parts), after.split()[0]
    return kind


_ENDING = ".unfinished"


def check_new_run(run: Path) -> None:
    """Check that the folder for a new run is missing or empty. Raise InputError otherwise."""
    if run.is_symlink() or (run.exists() and (not run.is_dir() or any(run.iterdir()))):
        raise InputError(f"{run}: already exists and is not an empty folder; name a new folder for the run")


@contextlib.contextmanager
def new_run(run: Path) -> Iterator[Path]:
    """Yield a temporary path at which to make a run, as `new_folder`.

    Raises:
        InputError: `run` exists and is not an empty folder, or is on a network file system.
        RunLocked: another process is making it.
    """
    check_new_run(run)
    parent = run.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    check_filesystem(parent)
    with new_folder(run) as folder:
        yield folder


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary path at which to make a folder; on success it is made durable and renamed to `target`.

    After an error nothing is left. The folder of a killed process is removed by the next command that writes a run or a
    release in the same folder.

    Raises:
        RunLocked: another process is making it.
    """
    target = target.resolve()
    parent = target.parent
    parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(parent)
    folder = target.with_name(f".{target.name}{_ENDING}")
    folder.mkdir(exist_ok=True)
    lock = RunLock(folder)
    try:
        yield folder / "new"
        os.sync()  # one for all files: before the folder has its name, none of them need survive
        (folder / "new").replace(target)
        sync_folder(parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def remove_unfinished(parent: Path) -> None:
    """Remove the temporary folders of killed imports, merges and exports, but not those of running processes."""
    for path in parent.glob(f".*{_ENDING}/{LOCK_NAME}"):
        if not path.parent.is_symlink():
            with contextlib.suppress(RunLocked):
                lock = RunLock(path.parent)
                shutil.rmtree(path.parent, ignore_errors=True)
                lock.release()
