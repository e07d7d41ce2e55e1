"""`ratings.sqlite`: readers, their sessions and every answer they ever gave. What is current is a question to it.

An answer is one row of `answer`, written once and never changed: the newest of a reader and item counts, and the same
key from the same reader is the same answer, however often a browser sends it. A row is durable before it is confirmed.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from plantain.records import InputError
from plantain.review.study import RATINGS, Study

APPLICATION_ID = 0x706C7276
VERSION = 1

TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE reader(
  code TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, role TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE,
  invited_at TEXT NOT NULL, confirmed_name TEXT NOT NULL DEFAULT '', confirmed_at TEXT NOT NULL DEFAULT '',
  display TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE session(
  id_hash TEXT PRIMARY KEY, reader TEXT NOT NULL REFERENCES reader(code), csrf TEXT NOT NULL, at TEXT NOT NULL
) STRICT;
CREATE TABLE answer(
  id INTEGER PRIMARY KEY, reader TEXT NOT NULL REFERENCES reader(code), item TEXT NOT NULL, key TEXT NOT NULL,
  turn INTEGER NOT NULL, slots TEXT NOT NULL, position INTEGER NOT NULL, value TEXT NOT NULL,
  focus_ms INTEGER NOT NULL, at TEXT NOT NULL, UNIQUE (reader, item, key)
) STRICT;
CREATE TABLE closed(reader TEXT NOT NULL, block TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (reader, block)) STRICT;
CREATE TABLE turn(reader TEXT NOT NULL, block TEXT NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (reader, block)) STRICT;
"""
"""`turn` counts how often a reader began the training of a block; answers of an earlier turn stay, but do not count."""

_NOT_ITS_FAULT = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}
"""Primary codes of errors that say nothing of what the file holds."""

READER, ADMINISTRATOR, IMPORTED = "reader", "administrator", "imported"
_NUMBERS = {READER: (0, 10**6), ADMINISTRATOR: (10**6, 2 * 10**9), IMPORTED: (2 * 10**9, 2**62)}
"""From and below which the numbers of a role lie: only those of readers decide orders and groups, so that they stay
balanced whatever was imported."""


@dataclass(frozen=True, slots=True)
class StudyReader:
    """Somebody with a link. `number` decides order and group; `confirmed_name` never leaves this file."""

    code: str
    number: int
    role: str
    confirmed_name: str
    display: str


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """One answer as it was given: `slots` are whose pictures stood where, `turn` of which training."""

    id: int
    reader: str
    item: str
    turn: int
    slots: tuple[str, ...]
    position: int
    value: Mapping[str, Any]
    focus_ms: int
    at: str


class Ratings:
    """The database of one study: one connection writes and one reads, so that nobody waits for another's disk."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._turn = threading.Lock()
        self._reading = _connect(path)
        self._reading.execute("PRAGMA query_only = ON")
        self._reading_turn = threading.Lock()

    @classmethod
    def create(cls, study: Study) -> Ratings:
        """A database without readers, bound to the study's hash."""
        path = study.folder / RATINGS
        connection = _connect(path)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.executescript("BEGIN;" + TABLES + "COMMIT;")
        connection.execute(
            "INSERT INTO meta VALUES ('version', ?), ('study', ?)", (str(VERSION), study.digest)
        )
        return cls(path, connection)

    @classmethod
    def open(cls, study: Study) -> Ratings:
        """Raises InputError for a file that is no such database, or one of another study."""
        path = study.folder / RATINGS
        if path.is_symlink() or not path.is_file():
            raise InputError(f"{study.folder}: holds no {RATINGS}")
        with _damage_named(path):
            connection = _connect(path)
            found = dict(connection.execute("SELECT key, value FROM meta").fetchall())
            version = int(found.get("version", ""))
            if found.get("study") != study.digest:
                raise InputError(f"{path}: belongs to another study than {study.folder}")
            if version > VERSION:
                raise InputError(
                    f"{path}: version {version}; this plantain knows {VERSION}: install a newer one"
                )
            return cls(path, connection)

    def close(self) -> None:
        self._reading.close()
        self._connection.close()

    @contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        with self._turn, _damage_named(self.path):
            yield self._connection

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """What is committed; every statement is fetched whole, so that no snapshot is held."""
        with self._reading_turn, _damage_named(self.path):
            yield self._reading

    # --- readers and sessions -----------------------------------------------------------------------

    def invite(self, role: str = READER, code: str = "") -> tuple[StudyReader, str]:
        """A new reader and their token, which is nowhere else: the file keeps its hash."""
        token = secrets.token_urlsafe(24)
        with self._locked() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                first, end = _NUMBERS[role]
                newest = "SELECT max(number) FROM reader WHERE number >= ? AND number < ?"
                last = db.execute(newest, (first, end)).fetchone()[0]
                number = first if last is None else last + 1
                known = db.execute("SELECT code FROM reader").fetchall()
                taken = {row[0] for row in known}  # imported ones too
                letter = "A" if role == ADMINISTRATOR else "R"
                free = (n for n in itertools.count(number - first + 1) if f"{letter}{n:02d}" not in taken)
                name = code or f"{letter}{next(free):02d}"
                db.execute(
                    "INSERT INTO reader(code, number, role, token_hash, invited_at) VALUES (?, ?, ?, ?, ?)",
                    (name, number, role, hashed(token), _now()),
                )
                db.execute("COMMIT")
            except sqlite3.IntegrityError as error:
                raise InputError(f"{self.path}: a reader {code!r} already exists") from error
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        return StudyReader(name, number, role, "", ""), token

    def readers(self) -> list[StudyReader]:
        """All who read, in the order of their invitations."""
        with self._read() as db:
            rows = db.execute(f"{_READER} WHERE role <> 'administrator' ORDER BY number").fetchall()
        return [StudyReader(*row) for row in rows]

    def begin_session(self, token: str) -> tuple[StudyReader, str, str] | None:
        """A fresh session for who holds the token: (reader, session id, csrf); None for nobody."""
        session, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(24)
        with self._locked() as db:
            row = db.execute(
                f"{_READER} WHERE token_hash = ? AND role <> 'imported'", (hashed(token),)
            ).fetchone()
            if row is None:
                return None
            db.execute("INSERT INTO session VALUES (?, ?, ?, ?)", (hashed(session), row[0], csrf, _now()))
        return StudyReader(*row), session, csrf

    def session(self, session: str) -> tuple[StudyReader, str] | None:
        """Whose session it is, and its csrf token."""
        with self._read() as db:
            row = db.execute(
                "SELECT r.code, r.number, r.role, r.confirmed_name, r.display, s.csrf FROM session s"
                " JOIN reader r ON r.code = s.reader WHERE s.id_hash = ?",
                (hashed(session),),
            ).fetchone()
        return None if row is None else (StudyReader(*row[:5]), row[5])

    def end_session(self, session: str) -> None:
        with self._locked() as db:
            db.execute("DELETE FROM session WHERE id_hash = ?", (hashed(session),))

    def confirm(self, reader: str, name: str) -> None:
        """The agreement, confirmed by name; the first name stays."""
        with self._locked() as db:
            db.execute(
                "UPDATE reader SET confirmed_name = ?, confirmed_at = ? WHERE code = ? AND confirmed_name = ''",
                (name, _now(), reader),
            )

    def set_display(self, reader: str, display: str) -> None:
        """What the reader's display showed of the test pattern."""
        with self._locked() as db:
            db.execute("UPDATE reader SET display = ? WHERE code = ?", (display, reader))

    # --- answers ------------------------------------------------------------------------------------

    def save(
        self, reader: str, item: str, key: str, block: str, slots: list[str], position: int,
        value: Mapping[str, Any], focus_ms: int,
    ) -> int:  # fmt: skip
        """Stores one answer; the id of the row, the old one where this key was stored before. Durable on return.

        Raises:
            InputError: the block is closed. sqlite3.Error: as the disk does.
        """
        with self._locked() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                known = db.execute(
                    "SELECT id FROM answer WHERE reader = ? AND item = ? AND key = ?", (reader, item, key)
                ).fetchone()
                if known is not None:
                    return int(known[0])
                if db.execute(
                    "SELECT 1 FROM closed WHERE reader = ? AND block = ?", (reader, block)
                ).fetchone():
                    raise InputError("this block is closed: its answers stay as they are")
                row = db.execute(
                    "INSERT INTO answer(reader, item, key, turn, slots, position, value, focus_ms, at) VALUES "
                    "(?, ?, ?, COALESCE((SELECT turn FROM turn WHERE reader = ? AND block = ?), 0), ?, ?, ?, ?, ?)",
                    (
                        reader,
                        item,
                        key,
                        reader,
                        block,
                        _text(slots),
                        position,
                        _text(value),
                        focus_ms,
                        _now(),
                    ),
                ).lastrowid
                db.execute("COMMIT")
                return int(row or 0)
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def current(self, reader: str | None = None) -> list[ReaderAnswer]:
        """The newest answer of each reader and item, in the order given."""
        return self._answers("id IN (SELECT max(id) FROM answer GROUP BY reader, item)", reader)

    def history(self, reader: str | None = None) -> list[ReaderAnswer]:
        """Every answer ever given."""
        return self._answers("TRUE", reader)

    def _answers(self, which: str, reader: str | None) -> list[ReaderAnswer]:
        mine, values = ("", ()) if reader is None else (" AND reader = ?", (reader,))
        with self._read() as db:
            rows = db.execute(
                "SELECT id, reader, item, turn, slots, position, value, focus_ms, at FROM answer "
                f"WHERE {which}{mine} ORDER BY id",
                values,
            ).fetchall()
        return [self._answer(row) for row in rows]

    def _answer(self, row: tuple[Any, ...]) -> ReaderAnswer:
        """Raises InputError for a row that is not as it was written: a study may come from somebody else."""
        number, reader, item, turn, slots, position, value, focus_ms, at = row
        try:
            shown, said = orjson.loads(slots), orjson.loads(value)
        except ValueError as error:
            raise InputError(f"{self.path}: answer {number}: not as plantain wrote it ({error})") from error
        if not isinstance(shown, list) or not isinstance(said, dict):
            raise InputError(f"{self.path}: answer {number}: not as plantain wrote it")
        return ReaderAnswer(number, reader, item, turn, tuple(shown), position, said, focus_ms, at)

    def last(self) -> int:
        """Number of the newest answer; it grows with every one."""
        with self._read() as db:
            return int(db.execute("SELECT coalesce(max(id), 0) FROM answer").fetchone()[0])

    def turns(self, reader: str) -> dict[str, int]:
        """Item -> the turn of its newest answer, of one reader; no answers are read for it."""
        with self._read() as db:
            rows = db.execute(
                "SELECT item, turn, max(id) FROM answer WHERE reader = ? GROUP BY item", (reader,)
            ).fetchall()
        return {item: turn for item, turn, _ in rows}

    def newest(self, reader: str, item: str) -> dict[str, Any] | None:
        """What one reader last answered to one item; None for nothing yet."""
        with self._read() as db:
            row = db.execute(
                "SELECT value FROM answer WHERE reader = ? AND item = ? ORDER BY id DESC LIMIT 1",
                (reader, item),
            ).fetchone()
        return None if row is None else dict(orjson.loads(row[0]))

    def first(self, reader: str, item: str, turn: int) -> dict[str, Any] | None:
        """What one reader answered to one item first, in one turn of its training; None for nothing yet."""
        with self._read() as db:
            row = db.execute(
                "SELECT value FROM answer WHERE reader = ? AND item = ? AND turn = ? ORDER BY id LIMIT 1",
                (reader, item, turn),
            ).fetchone()
        return None if row is None else dict(orjson.loads(row[0]))

    def key_known(self, reader: str, item: str, key: str) -> bool:
        """Whether this very answer was stored before."""
        with self._read() as db:
            return bool(
                db.execute(
                    "SELECT 1 FROM answer WHERE reader = ? AND item = ? AND key = ?", (reader, item, key)
                ).fetchone()
            )

    def closed(self, reader: str) -> set[str]:
        """Blocks that a reader has closed."""
        with self._read() as db:
            return {
                row[0]
                for row in db.execute("SELECT block FROM closed WHERE reader = ?", (reader,)).fetchall()
            }

    def close_block(self, reader: str, block: str) -> None:
        with self._locked() as db:
            db.execute("INSERT OR IGNORE INTO closed VALUES (?, ?, ?)", (reader, block, _now()))

    def turn(self, reader: str, block: str) -> int:
        """How often the reader began the block's training again."""
        with self._read() as db:
            row = db.execute(
                "SELECT turn FROM turn WHERE reader = ? AND block = ?", (reader, block)
            ).fetchone()
        return 0 if row is None else int(row[0])

    def train_again(self, reader: str, block: str) -> None:
        with self._locked() as db:
            db.execute(
                "INSERT INTO turn VALUES (?, ?, 1) ON CONFLICT(reader, block) DO UPDATE SET turn = turn + 1",
                (reader, block),
            )


_READER = "SELECT code, number, role, confirmed_name, display FROM reader"


def hashed(token: str) -> str:
    """What is stored of a token: it has 192 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _text(value: object) -> str:
    return orjson.dumps(value).decode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Raises InputError with the file's name where what it holds is at fault, not the disk or another process."""
    try:
        yield
    except (sqlite3.DatabaseError, ValueError) as error:
        if isinstance(error, InputError | sqlite3.ProgrammingError):
            raise
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_ITS_FAULT:
            raise
        raise InputError(f"{path}: not the ratings of a study ({error})") from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection
