"""`ratings.sqlite`: readers, their sessions and all their answers.

An answer is one row, written once and never changed: the newest of a reader and item counts. An answer that a browser
sends several times, with the same key, is stored once. A row is durable before it is confirmed.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from plantain.records import InputError
from plantain.review.study import RATINGS, Study

TABLES = """
CREATE TABLE meta(study TEXT NOT NULL) STRICT;
CREATE TABLE reader(
  code TEXT PRIMARY KEY, number INTEGER NOT NULL, role TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE,
  invited_at TEXT NOT NULL, confirmed_name TEXT NOT NULL DEFAULT '', confirmed_at TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE session(id_hash TEXT PRIMARY KEY, reader TEXT NOT NULL REFERENCES reader(code), at TEXT NOT NULL) STRICT;
CREATE TABLE answer(
  id INTEGER PRIMARY KEY, reader TEXT NOT NULL REFERENCES reader(code), item TEXT NOT NULL, key TEXT NOT NULL,
  slots TEXT NOT NULL, position INTEGER NOT NULL, value TEXT NOT NULL,
  focus_ms INTEGER NOT NULL, at TEXT NOT NULL, UNIQUE (reader, item, key)
) STRICT;
CREATE TABLE closed(reader TEXT NOT NULL, block TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (reader, block)) STRICT;
"""

READER, IMPORTED = "reader", "imported"


@dataclass(frozen=True, slots=True)
class StudyReader:
    """A reader of a study.

    Attributes:
        code: pseudonym in exports.
        number: number of the reader, from 0, which determines the order of items.
        role: `READER`, or `IMPORTED` for ratings read from a file.
        confirmed_name: name under which the data use agreement was confirmed, "" before; never leaves the database.
    """

    code: str
    number: int
    role: str
    confirmed_name: str


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """One answer of a reader to an item.

    Attributes:
        slots: the models in the order of their positions on the page.
        position: place of the item in the reader's order, from 0.
        value: the answer, as `answers.checked` returns it.
        focus_ms: time in ms that the reader spent on it.
        at: time in UTC, ISO 8601.
    """

    id: int
    reader: str
    item: str
    slots: tuple[str, ...]
    position: int
    value: Mapping[str, Any]
    focus_ms: int
    at: str


class Ratings:
    """The database of a study's readers and answers; thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        self._lock = threading.RLock()
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            self._db.execute(f"PRAGMA {setting}")

    @classmethod
    def create(cls, study: Study) -> Ratings:
        """Create a study's database, without readers; it can only be opened for this study."""
        made = cls(study.folder / RATINGS)
        made._db.executescript("BEGIN;" + TABLES + "COMMIT;")
        made._db.execute("INSERT INTO meta VALUES (?)", (study.digest,))
        return made

    @classmethod
    def open(cls, study: Study) -> Ratings:
        """Open a study's database. Raise InputError if it is missing, damaged, or of another study."""
        path = study.folder / RATINGS
        if path.is_symlink() or not path.is_file():
            raise InputError(f"{study.folder}: {RATINGS} is missing")
        with _damage_named(path):
            found = cls(path)
            if found._rows("SELECT study FROM meta") != [(study.digest,)]:
                raise InputError(f"{path}: belongs to another study than {study.folder}")
        return found

    def close(self) -> None:
        self._db.close()

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, _damage_named(self.path):
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction."""
        with self._lock, _damage_named(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    # --- readers and sessions -----------------------------------------------------------------------

    def invite(self, role: str = READER, code: str = "") -> tuple[StudyReader, str]:
        """Add a reader; return (reader, secret token for the link). Raise InputError if `code` exists already."""
        token = secrets.token_urlsafe(24)
        with self._writing() as db:
            taken = {name for (name,) in db.execute("SELECT code FROM reader")}
            if code in taken:
                raise InputError(f"{self.path}: a reader {code!r} already exists")
            number = int(db.execute("SELECT count(*) FROM reader WHERE role = ?", (role,)).fetchone()[0])
            free = (name for n in itertools.count(number + 1) if (name := f"R{n:02d}") not in taken)
            name = code or next(free)
            db.execute(
                "INSERT INTO reader(code, number, role, token_hash, invited_at) VALUES (?, ?, ?, ?, ?)",
                (name, number, role, hashed(token), _now()),
            )
        return StudyReader(name, number, role, ""), token

    def readers(self) -> list[StudyReader]:
        """Return all readers, including imported ones, in the order in which they were added."""
        rows = self._rows(f"SELECT {_READER} FROM reader r ORDER BY rowid")
        return [StudyReader(*row) for row in rows]

    def begin_session(self, token: str) -> tuple[StudyReader, str] | None:
        """Start a session for a token; return (reader, session key), or None if the token is unknown."""
        session = secrets.token_urlsafe(32)
        rows = self._rows(
            f"SELECT {_READER} FROM reader r WHERE token_hash = ? AND role <> 'imported'", (hashed(token),)
        )
        if not rows:
            return None
        with self._writing() as db:
            db.execute("INSERT INTO session VALUES (?, ?, ?)", (hashed(session), rows[0][0], _now()))
        return StudyReader(*rows[0]), session

    def session(self, session: str) -> StudyReader | None:
        """Return the reader of a session key; None if it is unknown."""
        rows = self._rows(
            f"SELECT {_READER} FROM session s JOIN reader r ON r.code = s.reader WHERE s.id_hash = ?",
            (hashed(session),),
        )
        return StudyReader(*rows[0]) if rows else None

    def end_session(self, session: str) -> None:
        with self._writing() as db:
            db.execute("DELETE FROM session WHERE id_hash = ?", (hashed(session),))

    def confirm(self, reader: str, name: str) -> None:
        """Record that a reader confirmed the data use agreement; a name once recorded is not replaced."""
        with self._writing() as db:
            db.execute(
                "UPDATE reader SET confirmed_name = ?, confirmed_at = ? WHERE code = ? AND confirmed_name = ''",
                (name, _now(), reader),
            )

    # --- answers ------------------------------------------------------------------------------------

    def save(
        self,
        reader: str,
        item: str,
        key: str,
        block: str,
        slots: list[str],
        position: int,
        value: Mapping[str, Any],
        focus_ms: int,
    ) -> int:
        """Store one answer durably; return the id of its row, the existing one if this key is stored already.

        Args:
            key: id of the answer, chosen by the page, so that sending it twice stores it once.
            reader, item, block, slots, position, value, focus_ms: as in `ReaderAnswer`.

        Raises:
            InputError: the block is closed.
            sqlite3.Error: the disk is full or fails.
        """
        with self._writing() as db:
            known = db.execute(
                "SELECT id FROM answer WHERE reader = ? AND item = ? AND key = ?", (reader, item, key)
            ).fetchone()
            if known is not None:
                return int(known[0])
            if db.execute("SELECT 1 FROM closed WHERE reader = ? AND block = ?", (reader, block)).fetchone():
                raise InputError("this block is closed: its answers cannot be changed")
            text = [orjson.dumps(part).decode() for part in (slots, value)]
            row = (reader, item, key, text[0], position, text[1], focus_ms, _now())
            made = db.execute(
                "INSERT INTO answer(reader, item, key, slots, position, value, focus_ms, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            return int(made.lastrowid or 0)

    def current(self, reader: str | None = None) -> list[ReaderAnswer]:
        """Return the newest answer to each item, by all readers or one, in the order in which they were given."""
        rows = self._rows(
            "SELECT id, reader, item, slots, position, value, focus_ms, at FROM answer"
            " WHERE id IN (SELECT max(id) FROM answer GROUP BY reader, item) AND reader = coalesce(?, reader)"
            " ORDER BY id",
            (reader,),
        )
        return [
            ReaderAnswer(number, who, item, tuple(orjson.loads(slots)), place, orjson.loads(value), focus, at)
            for number, who, item, slots, place, value, focus, at in rows
        ]

    def progress(self, reader: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return (ids of the items that a reader has answered, ids of the blocks that they have closed)."""
        answered = self._rows("SELECT DISTINCT item FROM answer WHERE reader = ?", (reader,))
        closed = self._rows("SELECT block FROM closed WHERE reader = ?", (reader,))
        return frozenset(item for (item,) in answered), frozenset(block for (block,) in closed)

    def newest(self, reader: str, item: str) -> dict[str, Any] | None:
        """Return a reader's newest answer to an item; None if there is none."""
        rows = self._rows(
            "SELECT value FROM answer WHERE reader = ? AND item = ? ORDER BY id DESC LIMIT 1", (reader, item)
        )
        return dict(orjson.loads(rows[0][0])) if rows else None

    def close_block(self, reader: str, block: str) -> None:
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO closed VALUES (?, ?, ?)", (reader, block, _now()))

    def withdraw(self, items: Iterable[str], study: Study) -> None:
        """Delete every answer to these items permanently, and accept the changed `study` from now on."""
        self._db.execute("PRAGMA secure_delete = ON")
        with self._writing() as db:
            db.executemany("DELETE FROM answer WHERE item = ?", [(item,) for item in items])
            db.execute("UPDATE meta SET study = ?", (study.digest,))
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            self._db.execute(statement)


_READER = "r.code, r.number, r.role, r.confirmed_name"


def hashed(token: str) -> str:
    """Return the SHA-256 (hex) by which a token is stored, so that the database does not contain tokens."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Raise InputError naming the file if it is damaged; other errors (full disk, locks) pass."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if type(error) is not sqlite3.DatabaseError:
            raise
        raise InputError(f"{path}: damaged, or not the ratings of a study ({error})") from error
