"""The progress of an unfinished release: its plan, and which files are done. It makes an export resumable.

A large file is written under a temporary name, made durable, renamed, and then recorded here; small files of a tree
are made durable and recorded by the batch. Recorded files are never written again, others are written again. So a kill
at any moment costs the work of one file or of one batch.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO, Self

from plantain.files.opening import create
from plantain.journal import BlobRef
from plantain.journal.blobs import sync_folder
from plantain.release.plan import STAGING, ReleaseFile

_TABLES = """
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task(seq INTEGER PRIMARY KEY, folder TEXT NOT NULL, record BLOB NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS task_folder ON task(folder, seq);
CREATE TABLE IF NOT EXISTS entry(
  layout TEXT NOT NULL, stem TEXT NOT NULL, shard INTEGER NOT NULL, pos INTEGER NOT NULL,
  task INTEGER NOT NULL, first INTEGER NOT NULL, second INTEGER NOT NULL, path TEXT NOT NULL,
  PRIMARY KEY (layout, stem, shard, pos)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entry_task ON entry(task, layout);
CREATE TABLE IF NOT EXISTS name(path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS original(
  sha256 TEXT PRIMARY KEY, bytes INTEGER NOT NULL, media_type TEXT NOT NULL, path TEXT NOT NULL, cells BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS file(
  path TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, role TEXT NOT NULL, pixel_sha256 TEXT,
  task TEXT, generation INTEGER, round INTEGER, row INTEGER, member TEXT, source_sha256 TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS file_path ON file(path, row, member);
"""

_COLUMNS = tuple(field.name for field in fields(ReleaseFile))
_FILE = f"INSERT INTO file({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_PAGE = 1000

_HASHED_AT_ONCE = 1 << 20
"""Bytes passed to the hashing thread at once."""

_AHEAD = 16
"""Most pieces that wait to be hashed."""

_SYNCED_AT_ONCE = 64 << 20
"""Bytes after which writing to the disk is started, so that it overlaps with computing."""


@dataclass(frozen=True, slots=True)
class StagedEntry:
    """A row of a table, a sample of a tar, or a file of a tree: an attempt (or a pair of attempts) of a task.

    Attributes:
        record: the task's record as JSON.
        first, second: indices into its attempts; -1 for none.
        path: path of the file in a tree of files; "" in a shard.
    """

    record: bytes
    first: int
    second: int
    path: str


class HashingFile:
    """A file being written that computes its SHA-256 and size; pyarrow and tarfile can write to it.

    One thread hashes and another syncs while the file is written: hashing costs as much as writing, and a disk is
    slower than either.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._hasher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plantain-hash")
        self._waiting: deque[Future[None]] = deque()
        self._piece = bytearray()
        self._syncer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plantain-sync")
        self._syncing: Future[None] | None = None
        self._synced = 0
        self.size = 0
        self.sha256 = ""
        self.closed = False

    def write(self, data: bytes) -> int:
        self._piece += data
        if len(self._piece) >= _HASHED_AT_ONCE:
            self._hash()
        self.size += len(data)
        self._file.write(data)
        if self.size - self._synced >= _SYNCED_AT_ONCE and (self._syncing is None or self._syncing.done()):
            self._sync()
        return len(data)

    def _hash(self) -> None:
        self._waiting.append(self._hasher.submit(self._digest.update, self._piece))
        self._piece = bytearray()
        while len(self._waiting) > _AHEAD:
            self._waiting.popleft().result()

    def _sync(self) -> None:
        if self._syncing is not None:
            self._syncing.result()  # a disk reports an error once
        self._file.flush()
        self._synced = self.size
        self._syncing = self._syncer.submit(os.fsync, self._file.fileno())

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Do nothing: the file is made durable at the end, by `finish`."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hasher.shutdown(cancel_futures=True)
        self._syncer.shutdown()

    def finish(self) -> None:
        """Make the file durable and set `sha256`; it cannot be written to afterwards."""
        self._hash()
        self._sync()
        while self._waiting:
            self._waiting.popleft().result()
        self.sha256 = self._digest.hexdigest()
        if self._syncing is not None:
            self._syncing.result()


Fill = Callable[[HashingFile], Iterable[ReleaseFile]]
"""Writes one file and yields the images that it embeds; their `path` is set afterwards."""


class Staging:
    """The plan and the list of finished files of an unfinished release."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out / STAGING
        self.folder.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(
            self.folder / "plan.sqlite", isolation_level=None, check_same_thread=False
        )
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        for statement in _TABLES.split(";\n"):
            self.connection.execute(statement)

    def close(self) -> None:
        self.connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes made in the block together; roll back if the block raises."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    # --- the plan -----------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def add_task(self, seq: int, folder: str, record: bytes) -> None:
        self.connection.execute("INSERT INTO task VALUES (?, ?, ?)", (seq, folder, record))

    def add_entry(self, *row: str | int) -> None:
        """Add a row of (layout, stem, shard, position, task, first, second, path)."""
        self.connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def take_name(self, path: str) -> bool:
        """Reserve a path, ignoring case; return False if another file has it already."""
        query = "INSERT OR IGNORE INTO name VALUES (?)"
        return self.connection.execute(query, (path.lower(),)).rowcount == 1

    def add_original(self, image: BlobRef, path: str, cells: bytes) -> None:
        """Add an original of the release: its path in the tree, and its table row without the image, as JSON."""
        values = (image.sha256, image.bytes, image.media_type, path, cells)
        self.connection.execute("INSERT INTO original VALUES (?, ?, ?, ?, ?)", values)

    def original(self, sha256: str) -> BlobRef | None:
        """Return the reference of an original of the release; None for any other image."""
        query = "SELECT sha256, bytes, media_type FROM original WHERE sha256 = ?"
        row = self.connection.execute(query, (sha256,)).fetchone()
        return None if row is None else BlobRef(*row)

    def described_original(self, sha256: str) -> tuple[str, bytes]:
        """Return the path of an original in the tree, and its table row without the image, as JSON."""
        query = "SELECT path, cells FROM original WHERE sha256 = ?"
        path, cells = self.connection.execute(query, (sha256,)).fetchone()
        return str(path), bytes(cells)

    def records(self, folder: str | None = None) -> Iterator[bytes]:
        """Yield every task's record as JSON, in the order of task ids; of one folder of the tree if given."""
        return (record for page in self._pages(folder) for _, record in page)

    def _pages(self, folder: str | None) -> Iterator[list[tuple[int, bytes]]]:
        where, fixed = ("seq > ?", ()) if folder is None else ("folder = ? AND seq > ?", (folder,))
        after = -1
        query = f"SELECT seq, record FROM task WHERE {where} ORDER BY seq LIMIT {_PAGE}"
        while rows := self.connection.execute(query, (*fixed, after)).fetchall():
            yield rows
            after = rows[-1][0]

    def folders(self) -> list[str]:
        """Return the folders of the tree, sorted."""
        query = "SELECT DISTINCT folder FROM task ORDER BY folder"
        return [str(row[0]) for row in self.connection.execute(query)]

    def shards(self, layout: str) -> list[tuple[str, int, int]]:
        """Return (stem, number of shards, number of rows) of each of a layout's tables, sorted by stem."""
        query = (
            "SELECT stem, MAX(shard) + 1, COUNT(*) FROM entry WHERE layout = ? GROUP BY stem ORDER BY stem"
        )
        return [(str(stem), int(n), int(rows)) for stem, n, rows in self.connection.execute(query, (layout,))]

    def entries(self, layout: str, stem: str, shard: int) -> Iterator[StagedEntry]:
        """Yield the rows of one shard of the table `stem` of a layout, in order."""
        after = -1
        query = (
            "SELECT pos, record, first, second, path FROM entry JOIN task ON task.seq = entry.task "
            f"WHERE layout = ? AND stem = ? AND shard = ? AND pos > ? ORDER BY pos LIMIT {_PAGE}"
        )
        while rows := self.connection.execute(query, (layout, stem, shard, after)).fetchall():
            for _, record, first, second, path in rows:
                yield StagedEntry(record, first, second, path)
            after = rows[-1][0]

    def records_with_paths(self, layout: str, folder: str) -> Iterator[tuple[bytes, dict[int, str]]]:
        """Yield (record as JSON, attempt's index -> path of its file) for each task of one folder."""
        query = (
            "SELECT first, path FROM entry INDEXED BY entry_task WHERE task = ? AND layout = ? ORDER BY first"
        )
        for page in self._pages(folder):
            for seq, record in page:
                yield record, dict(self.connection.execute(query, (seq, layout)))

    # --- files --------------------------------------------------------------------------------------

    def is_done(self, path: str) -> bool:
        query = "SELECT 1 FROM file WHERE path = ? LIMIT 1"
        return self.connection.execute(query, (path,)).fetchone() is not None

    def write(self, path: str, role: str, fill: Fill) -> None:
        """Write one file with `fill` unless it is finished; record it with the images that `fill` yields."""
        if self.is_done(path):
            return
        with self.transaction():
            with open_hashed(self.out, path) as hashing:
                for image in fill(hashing):
                    self._insert(dataclasses.replace(image, path=path))
            self._insert(ReleaseFile(path, hashing.sha256, hashing.size, role))

    def write_chunks(self, path: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Write one file of records from chunks of bytes, unless it is finished."""

        def fill(file: HashingFile) -> Iterable[ReleaseFile]:
            for chunk in chunks():
                file.write(chunk)
            return ()

        self.write(path, "record", fill)

    def write_together(
        self, paths: Sequence[str], role: str, fill: Callable[[Sequence[HashingFile]], None]
    ) -> None:
        """Write several files in one pass unless all are finished; `fill` gets the open files in this order."""
        if all(map(self.is_done, paths)):
            return
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open_hashed(self.out, path)) for path in paths]
            fill(files)
        made = [ReleaseFile(p, file.sha256, file.size, role) for p, file in zip(paths, files, strict=True)]
        self.record([file for file in made if not self.is_done(file.path)])

    def record(self, files: Iterable[ReleaseFile]) -> None:
        """Record files as finished, all or none. They must be durable already."""
        with self.transaction():
            for file in files:
                self._insert(file)

    def _insert(self, file: ReleaseFile) -> None:
        self.connection.execute(_FILE, [getattr(file, name) for name in _COLUMNS])

    def files(self) -> Iterator[ReleaseFile]:
        """Yield every recorded file and embedded image by (path, row, member)."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM file ORDER BY path, row, member"
        return (ReleaseFile(*row) for row in self.connection.execute(query))

    def edited_images(self) -> Iterator[tuple[str, str, bool]]:
        """Yield (role, hash of the blob, True if signed) of every distinct edited image."""
        query = (
            "SELECT role, iif(source_sha256 <> '', source_sha256, sha256), source_sha256 <> '', MIN(rowid) FROM file "
            "WHERE task IS NOT NULL AND role NOT IN ('mask', 'original') GROUP BY task, generation, round"
        )
        for role, blob, signed, _ in self.connection.execute(query):
            yield str(role), str(blob), bool(signed)


@contextlib.contextmanager
def open_hashed(out: Path, path: str) -> Iterator[HashingFile]:
    """Open a file of a release under a temporary name; without an error it is made durable and renamed at the end."""
    target = out / path
    make_folder(out, target.parent)
    temporary = target.with_name(f".{target.name}.part")  # the same after a restart
    with create(temporary) as file, HashingFile(file) as hashing:
        yield hashing
        hashing.finish()
    temporary.replace(target)
    sync_folder(target.parent)


def make_folder(out: Path, folder: Path) -> None:
    """Make a folder of the release and those above it, durably."""
    missing = []
    while folder != out and not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for level in reversed(missing):
        level.mkdir(exist_ok=True)
        sync_folder(level.parent)


def sync_everything(out: Path, files: Sequence[Path]) -> None:
    """Make many small files durable at once: one `syncfs` where the system has it, else a sync of each."""
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is not None:
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if syncfs(descriptor) == 0:
                return
        finally:
            os.close(descriptor)
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    for folder in {path.parent for path in files}:
        sync_folder(folder)
