"""The blob store (bytes under their SHA-256, durable before any row names them), and free space on its disk."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import shutil
import sqlite3
import threading
from pathlib import Path

from plantain.files.opening import open_plain
from plantain.journal.rows import BadBlob, BlobRef, DiskFull
from plantain.records import Step

BLOBS = "blobs"

_SUFFIX = ".tmp"
_serial = itertools.count()


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that new and renamed files in it survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class BlobStore:
    """A folder of immutable files `ab/<sha256>`. Thread-safe; many readers, one writing process.

    Attributes:
        damaged: hashes of blobs found to be damaged, which count as missing.
        synced: True if each blob is durable when stored; otherwise the caller syncs all at once.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.damaged: frozenset[str] = frozenset()
        self.synced = True
        self._ready: set[str] = set()
        self._making = threading.Lock()

    def path(self, sha256: str) -> Path:
        """Return the path of a blob, which may not exist. Raise BadBlob if `sha256` is not a SHA-256 in hex."""
        if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise BadBlob(f"{sha256[:80]!r} is not a SHA-256 in lower-case hex")
        return self.root / sha256[:2] / sha256

    def put(self, data: bytes, media_type: str) -> tuple[BlobRef, bool]:
        """Store bytes under their hash, durably if `synced`. Raise OSError if that fails.

        Return the reference, and True if the file had to be written.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        reference = BlobRef(sha256, len(data), media_type)
        path = self.path(sha256)
        self._make(path.parent)
        known = self._holds(path, data)
        if not known:
            self._write(path, data)
        # Also when it was there: a process killed between rename and sync left a name that only memory has.
        if self.synced:
            sync_folder(path.parent)
        return reference, not known

    def holds(self, sha256: str) -> bool:
        """Return True if the store contains a blob that was not found to be damaged."""
        return sha256 not in self.damaged and self.path(sha256).exists()

    def read(self, sha256: str) -> bytes:
        """Return a blob's bytes, verified by the hash. Raise BadBlob if it is missing or changed."""
        path = self.path(sha256)
        try:
            with open_plain(path) as file:
                data = file.read()
        except FileNotFoundError as error:
            raise BadBlob(f"{path} is missing") from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise BadBlob(f"{path} does not contain the bytes that were stored under this name")
        return data

    def names(self) -> set[str]:
        """Return all file names in the store: SHA-256 of blobs, and names that start with "." of other files."""
        folders = [folder for folder in self.root.iterdir() if folder.is_dir()] if self.root.is_dir() else []
        return {name for folder in folders for name in os.listdir(folder)}  # noqa: PTH208  (a million names)

    def collect(self, connection: sqlite3.Connection) -> None:
        """Delete every file that no row of the journal names; the caller must hold the run's lock.

        A killed process leaves unfinished files, and blobs whose rows were never committed.
        """
        named = {sha256 for (sha256,) in connection.execute("SELECT sha256 FROM blob")}
        for folder, _, names in os.walk(self.root):
            left = [name for name in names if name not in named or Path(folder).name != name[:2]]
            for name in left:
                Path(folder, name).unlink(missing_ok=True)
            if left:
                sync_folder(Path(folder))

    def _make(self, folder: Path) -> None:
        if folder.name in self._ready:
            return
        with self._making:
            folder.mkdir(parents=True, exist_ok=True)
            # Also when it was there: the process that made it may have been killed before this sync.
            if self.synced:
                sync_folder(self.root)
            self._ready.add(folder.name)

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{next(_serial)}{_SUFFIX}")
        try:
            with temporary.open("xb", buffering=0) as file:
                written = 0
                while written < len(data):
                    written += file.write(data[written:] if written else data)
                if self.synced:
                    os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    @staticmethod
    def _holds(path: Path, data: bytes) -> bool:
        try:
            return path.lstat().st_size == len(data) and not path.is_symlink() and path.read_bytes() == data
        except FileNotFoundError:
            return False


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
    """Raise DiskFull, naming the `wanted` bytes unless 0, if an error means a full disk; else do nothing."""
    if is_full(error):
        raise _disk_full(run, wanted) from error


def check_room(run: Path, step: Step, open_edits: int) -> None:
    """Raise DiskFull if the images of another call of `step` may not fit on the disk.

    `open_edits` is the number of edit calls in flight, whose images are not stored yet.
    """
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
