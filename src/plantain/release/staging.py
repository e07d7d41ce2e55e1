"""The files of a release while it is made: the plan of their contents, their writing, and their list.

Both are in a temporary database, so memory does not grow with the release.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from plantain.files.opening import create
from plantain.journal import BlobRef
from plantain.release.plan import SHARD_ROWS, ReleaseFile, RunFacts

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_TABLES = """
CREATE TABLE task(seq INTEGER PRIMARY KEY, folder TEXT NOT NULL, record BLOB NOT NULL) STRICT;
CREATE INDEX task_folder ON task(folder, seq);
CREATE TABLE entry(
  layout TEXT NOT NULL, stem TEXT NOT NULL, shard INTEGER NOT NULL, pos INTEGER NOT NULL,
  task INTEGER NOT NULL, first INTEGER NOT NULL, second INTEGER NOT NULL, path TEXT NOT NULL,
  PRIMARY KEY (layout, stem, shard, pos)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_task ON entry(task, layout);
CREATE TABLE name(path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE original(
  sha256 TEXT PRIMARY KEY, bytes INTEGER NOT NULL, media_type TEXT NOT NULL, path TEXT NOT NULL, cells BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE file(
  path TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, role TEXT NOT NULL, pixel_sha256 TEXT,
  task TEXT, generation INTEGER, round INTEGER, row INTEGER, member TEXT, source_sha256 TEXT NOT NULL
) STRICT;
CREATE INDEX file_path ON file(path, row, member);
"""

_COLUMNS = tuple(field.name for field in fields(ReleaseFile))
_FILE = f"INSERT INTO file({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_ENTRIES = "SELECT record, first, second, path FROM entry JOIN task ON task.seq = entry.task"


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


class HashingFile(io.RawIOBase):
    """A wrapper of an open binary `file` that hashes the bytes written; pyarrow and tarfile can write to it.

    `size` is the number of bytes so far, `sha256` (hex) their hash. Closing it does not close `file`.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """The hash of the bytes written so far, in hex."""
        return self._digest.hexdigest()

    def write(self, data: ReadableBuffer) -> int:
        """Write bytes; return their number."""
        self._digest.update(data)
        self._file.write(data)
        written = memoryview(data).nbytes
        self.size += written
        return written

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True


Fill = Callable[[HashingFile], Iterable[ReleaseFile]]
"""Writes one file and yields the images that it embeds; their `path` is set afterwards."""


class Staging:
    """The plan and the list of files of a release that is being made.

    Args:
        out: folder in which the files are written.
        scratch: folder of the temporary database.
        shard_bytes: maximum size of the rows in one shard, in bytes; a single larger row gets its own shard.

    Attributes:
        facts: facts about the run; set when the release is planned, before layouts write.
        sources: dataset -> {"licence": class, "version": text, "images": number used}; set at the same time.
    """

    facts: RunFacts
    sources: Mapping[str, Mapping[str, str | int]]

    def __init__(self, out: Path, scratch: Path, shard_bytes: int) -> None:
        self.out = out
        self._shard_bytes = shard_bytes
        self._dealt: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        self.connection = sqlite3.connect(
            scratch / "plan.sqlite", isolation_level=None, check_same_thread=False
        )
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.executescript(_TABLES)
        self.connection.execute("BEGIN")  # never committed: only this process reads it

    def close(self) -> None:
        self.connection.close()

    # --- the plan -----------------------------------------------------------------------------------

    def add_task(self, seq: int, folder: str, record: bytes) -> None:
        self.connection.execute("INSERT INTO task VALUES (?, ?, ?)", (seq, folder, record))

    def add_entry(
        self, layout: str, stem: str, task: int, first: int, second: int, size: int, path: str = ""
    ) -> None:
        """Add a row of a table, a sample of a tar, or a file of a tree at `path`, to the shard that has room.

        `size` is in bytes; the others are as in `StagedEntry`.
        """
        state = self._dealt[layout, stem]
        if state[1] == SHARD_ROWS or (state[1] and state[2] + size > self._shard_bytes):
            state[:] = [state[0] + 1, 0, 0]
        row = (layout, stem, state[0], state[1], task, first, second, path)
        self.connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        state[1] += 1
        state[2] += size

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

    def records(self) -> Iterator[bytes]:
        """Yield each task's record, sorted by task id, as JSON for `from_json`, without a line feed."""
        return (record for (record,) in self.connection.execute("SELECT record FROM task ORDER BY seq"))

    def folders(self) -> list[str]:
        """Return the names under which tasks are grouped, sorted: "DATASET-edit" (additions), "DATASET-remove"."""
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
        query = f"{_ENTRIES} WHERE layout = ? AND stem = ? AND shard = ? ORDER BY pos"
        return (StagedEntry(*row) for row in self.connection.execute(query, (layout, stem, shard)))

    def every_entry(self, layout: str) -> Iterator[StagedEntry]:
        """Yield the rows of all shards of a layout."""
        query = f"{_ENTRIES} WHERE layout = ? ORDER BY stem, shard, pos"
        return (StagedEntry(*row) for row in self.connection.execute(query, (layout,)))

    def records_with_paths(self, layout: str, folder: str) -> Iterator[tuple[bytes, dict[int, str]]]:
        """Yield (record as JSON, {index of attempt: its path in `layout`, if it has one}) for each task of `folder`."""
        query = (
            "SELECT first, path FROM entry INDEXED BY entry_task WHERE task = ? AND layout = ? ORDER BY first"
        )
        tasks = self.connection.execute(
            "SELECT seq, record FROM task WHERE folder = ? ORDER BY seq", (folder,)
        )
        for seq, record in tasks:
            yield record, dict(self.connection.execute(query, (seq, layout)))

    # --- files --------------------------------------------------------------------------------------

    def write(self, path: str, role: str, fill: Fill) -> None:
        """Create a file of the release and list it.

        Args:
            path: path relative to the release, POSIX.
            role: as in `ReleaseFile`.
            fill: writes the open file and yields the images that it embeds, to be listed too; their `path` is set.
        """
        with open_hashed(self.out, path) as hashing:
            self.record(dataclasses.replace(image, path=path) for image in fill(hashing))
        self.record([ReleaseFile(path, hashing.sha256, hashing.size, role)])

    def write_chunks(self, path: str, chunks: Iterable[bytes]) -> None:
        """Create a file of the role "record" from chunks of bytes, and list it; `path` is relative to the release."""
        self.record([ReleaseFile(path, *write_file(self.out, path, chunks), "record")])

    def record(self, files: Iterable[ReleaseFile]) -> None:
        """Add entries to the release's list of files; `write` and `write_chunks` do so themselves."""
        for file in files:
            self.connection.execute(_FILE, [getattr(file, name) for name in _COLUMNS])

    def files(self) -> Iterator[ReleaseFile]:
        """Yield every recorded file and embedded image by (path, row, member)."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM file ORDER BY path, row, member"
        return (ReleaseFile(*row) for row in self.connection.execute(query))

    def totals(self) -> tuple[int, int, int]:
        """Return the numbers of files and of edited images (one may be in several layouts), and bytes of the files."""
        files, images, size = self.connection.execute(
            "SELECT COUNT(*) FILTER (WHERE row IS NULL AND member IS NULL), "
            "COUNT(*) FILTER (WHERE task IS NOT NULL AND role NOT IN ('mask', 'original')), "
            "TOTAL(bytes) FILTER (WHERE row IS NULL AND member IS NULL) FROM file"
        ).fetchone()
        return int(files), int(images), int(size)

    def images_by_role(self) -> dict[str, int]:
        """Return the number of distinct edited images by role."""
        query = (
            "SELECT role, COUNT(DISTINCT task || ' ' || generation || ' ' || IFNULL(round, '')) FROM file "
            "WHERE task IS NOT NULL AND role NOT IN ('mask', 'original') GROUP BY role ORDER BY role"
        )
        return dict(self.connection.execute(query))


@contextlib.contextmanager
def open_hashed(out: Path, path: str) -> Iterator[HashingFile]:
    """Open a new file of a release that hashes what is written."""
    target = out / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with create(target) as file:
        yield HashingFile(file)


def write_file(out: Path, path: str, chunks: Iterable[bytes]) -> tuple[str, int]:
    """Write the file `path` of a release (relative to `out`); return its SHA-256 and size in bytes."""
    with open_hashed(out, path) as file:
        for chunk in chunks:
            file.write(chunk)
    return file.sha256, file.size
