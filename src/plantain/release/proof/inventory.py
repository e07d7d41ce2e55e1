"""What lies in a release, and what its sums and its manifest say of it: tables on disk, however large it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Self

from plantain.release.plan import ORIGINAL, ReleaseFile
from plantain.release.proof.problems import ReleaseProblem

_CACHE_KB = 16_000
"""Memory for the table's pages: what verification may take beside the files that it has in hand."""

_TABLES = """
CREATE TABLE file(
  path TEXT PRIMARY KEY, size INTEGER, sums TEXT, listed TEXT, whole INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE image(
  task TEXT, generation INTEGER, round INTEGER, path TEXT NOT NULL, role TEXT NOT NULL, sha256 TEXT NOT NULL,
  PRIMARY KEY (task, generation, round)
) STRICT, WITHOUT ROWID;
CREATE TABLE original(
  sha256 TEXT PRIMARY KEY, path TEXT NOT NULL, named INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE beside(task TEXT, sha256 TEXT, path TEXT NOT NULL, PRIMARY KEY (task, sha256)) STRICT, WITHOUT ROWID;
"""
"""`listed` is the manifest's hash of a file, "" where it names one without a hash that could be believed. A generation
or round that an entry does not have is -1."""

_PAGE = 1000

Image = tuple[str, str, str]
"""Path of a file that an edited image stands in, its role, its hash in the journal."""


class Inventory:
    """Files, edited images and originals of one release that is being verified.

    It lives in a temporary database that SQLite keeps on disk and removes by itself. Not shared between threads.

    Attributes:
        trajectory_rows: rows of the Parquet tables of trajectories; None where there is none.
        conflicting: images of one attempt that two files hold otherwise.
    """

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        for setting in (f"cache_size = -{_CACHE_KB}", "journal_mode = OFF", "synchronous = OFF"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.executescript(_TABLES)
        self._db.execute("BEGIN")  # never committed: each statement would write its pages out
        self.trajectory_rows: int | None = None
        self.conflicting: list[ReleaseProblem] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    # --- files --------------------------------------------------------------------------------------

    def add_present(self, path: str, size: int) -> None:
        """A regular file that lies there."""
        self._db.execute("INSERT INTO file(path, size) VALUES (?, ?)", (path, size))

    def add_sums(self, path: str, sha256: str) -> None:
        """A line of SHA256SUMS."""
        statement = (
            "INSERT INTO file(path, sums) VALUES (?, ?) ON CONFLICT DO UPDATE SET sums = excluded.sums"
        )
        self._db.execute(statement, (path, sha256))

    def add_listed(self, path: str, sha256: str) -> None:
        """A file of the manifest; "" for a hash that is not to be believed."""
        statement = (
            "INSERT INTO file(path, listed) VALUES (?, ?) ON CONFLICT DO UPDATE SET listed = excluded.listed"
        )
        self._db.execute(statement, (path, sha256))

    def add_whole(self, path: str) -> None:
        """A file whose checksum held."""
        self._db.execute("UPDATE file SET whole = 1 WHERE path = ?", (path,))

    def is_present(self, path: str) -> bool:
        return self._one("size", path) is not None

    def is_whole(self, path: str) -> bool:
        return bool(self._one("whole", path))

    def sums(self, path: str) -> str | None:
        """What SHA256SUMS says of a file."""
        found = self._one("sums", path)
        return None if found is None else str(found)

    def listed(self, path: str) -> str | None:
        """What the manifest says of a file; None for one that it does not name."""
        found = self._one("listed", path)
        return None if found is None else str(found)

    def _one(self, column: str, path: str) -> object:
        row = self._db.execute(f"SELECT {column} FROM file WHERE path = ?", (path,)).fetchone()
        return None if row is None else row[0]

    def counted(self) -> tuple[int, int]:
        """How many files lie there, and their bytes."""
        files, size = self._db.execute("SELECT COUNT(size), IFNULL(SUM(size), 0) FROM file").fetchone()
        return int(files), int(size)

    def lists_any(self) -> bool:
        """Whether the manifest names any file that can be believed."""
        return self._db.execute("SELECT 1 FROM file WHERE listed <> '' LIMIT 1").fetchone() is not None

    def lists_like(self, pattern: str, plain: str) -> bool:
        """Whether the manifest names a file that a shell pattern matches; `plain` is how the pattern begins."""
        rows = self._db.execute(
            "SELECT path FROM file WHERE listed IS NOT NULL AND path >= ? ORDER BY path", (plain,)
        )
        for (path,) in rows:
            if not path.startswith(plain):
                return False
            if fnmatchcase(path, pattern):
                return True
        return False

    def only_in_sums(self) -> Iterator[tuple[str, str]]:
        """(path, hash) of SHA256SUMS for every file that the manifest does not name."""
        for path in self._paths("sums IS NOT NULL AND listed IS NULL"):
            yield path, self.sums(path) or ""

    def present_beside(self) -> Iterator[str]:
        """Files that neither SHA256SUMS nor the manifest names."""
        return self._paths("size IS NOT NULL AND sums IS NULL AND listed IS NULL")

    def whole(self) -> Iterator[str]:
        """Files whose checksums held."""
        return self._paths("whole")

    def _paths(self, where: str) -> Iterator[str]:
        """In order and by the page, so that the table may change meanwhile."""
        after = ""
        query = f"SELECT path FROM file WHERE {where} AND path > ? ORDER BY path LIMIT {_PAGE}"
        while page := self._db.execute(query, (after,)).fetchall():
            yield from (str(path) for (path,) in page)
            after = page[-1][0]

    # --- pictures -----------------------------------------------------------------------------------

    def add_image(self, entry: ReleaseFile) -> None:
        """An entry of the manifest: an edited image or an original; anything else is passed over."""
        if entry.role == ORIGINAL:
            self._db.execute(
                "INSERT OR IGNORE INTO original(sha256, path) VALUES (?, ?)", (entry.sha256, entry.path)
            )
            if entry.task is not None:
                beside = (entry.task, entry.sha256, entry.path)
                self._db.execute("INSERT OR IGNORE INTO beside VALUES (?, ?, ?)", beside)
        if not entry.is_edit:
            return
        key = (entry.task, _number(entry.generation), _number(entry.round))
        told = (entry.role, entry.source_sha256 or entry.sha256)
        new = self._db.execute(
            "INSERT OR IGNORE INTO image VALUES (?, ?, ?, ?, ?, ?)", (*key, entry.path, *told)
        )
        if new.rowcount:
            return
        query = "SELECT path, role, sha256 FROM image WHERE task = ? AND generation = ? AND round = ?"
        path, *known = self._db.execute(query, key).fetchone()
        if tuple(known) != told:
            detail = f"its image of task {entry.task}, round {entry.round}, is another than in {path}"
            self.conflicting.append(ReleaseProblem(entry.path, "manifest", detail))

    def images(self) -> int:
        """Edited images, each attempt's once, less those that were taken."""
        return int(self._db.execute("SELECT COUNT(*) FROM image").fetchone()[0])

    def take_image(self, task: str, generation: int | None, round: int | None) -> Image | None:
        """The image of an attempt, taken out; None where the release holds none."""
        statement = (
            "DELETE FROM image WHERE task = ? AND generation = ? AND round = ? RETURNING path, role, sha256"
        )
        found = self._db.execute(statement, (task, _number(generation), _number(round))).fetchall()
        return found[0] if found else None

    def images_left(self) -> Iterator[tuple[str, int, str, str]]:
        """(task, round, path, role) of every image that was not taken."""
        yield from self._db.execute("SELECT task, round, path, role FROM image")

    def has_originals(self) -> bool:
        return self._db.execute("SELECT 1 FROM original LIMIT 1").fetchone() is not None

    def take_original(self, task: str, sha256: str) -> str | None:
        """A file that holds the original of a task, which is named by this; None where the release does not hold it."""
        row = self._db.execute("SELECT path, named FROM original WHERE sha256 = ?", (sha256,)).fetchone()
        if row is None:
            return None
        path, named = row
        if not named:
            self._db.execute("UPDATE original SET named = 1 WHERE sha256 = ?", (sha256,))
        self._db.execute("DELETE FROM beside WHERE task = ? AND sha256 = ?", (task, sha256))
        return str(path)

    def originals_left(self) -> Iterator[tuple[str, str]]:
        """(hash, path) of every original that no task named."""
        yield from self._db.execute("SELECT sha256, path FROM original WHERE NOT named")

    def beside_left(self) -> Iterator[tuple[str, str]]:
        """(task, path) of every original that stands beside edits of a task that is not its own."""
        yield from self._db.execute("SELECT task, path FROM beside")


def _number(value: int | None) -> int:
    return -1 if value is None else value
