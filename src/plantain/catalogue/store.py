"""The catalogue: prepared images and their records, in one folder that builds read from.

`catalogue.sqlite` has one row per image, `blobs/` its prepared bytes by SHA-256. Rows are committed in batches, each
after its blobs are durable, so a killed ingest leaves a smaller catalogue, never a broken one. See
docs/design/catalogue.md.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path

from pydantic import TypeAdapter

from plantain.files.opening import check_received, sqlite_uri
from plantain.journal import BlobStore
from plantain.records import InputError, SourceImage
from plantain.records.messages import like_path

VERSION = 1

Value = str | int | float | None

COLUMNS = tuple(field.name for field in fields(SourceImage))
"""Columns of `image`, in the order of the record's fields; the first is the id."""

_RECORD = TypeAdapter(SourceImage)
_TYPES = {"frame": "INTEGER", "spacing_mm": "REAL", "text_checked": "INTEGER", "synthetic": "INTEGER"}
_MAY_BE_NULL = frozenset({"group", "spacing_mm", "consent"})


def _declare(column: str) -> str:
    null = "" if column in _MAY_BE_NULL else " NOT NULL"
    key = " PRIMARY KEY" if column == "id" else ""
    return f'"{column}" {_TYPES.get(column, "TEXT")}{null}{key}'


SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    f"CREATE TABLE IF NOT EXISTS image ({', '.join(map(_declare, COLUMNS))}) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS label (label TEXT NOT NULL, image_id TEXT NOT NULL REFERENCES image(id), "
    "PRIMARY KEY (label, image_id)) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS likeness (image_id TEXT PRIMARY KEY REFERENCES image(id), code BLOB NOT NULL) "
    "STRICT, WITHOUT ROWID",
    'CREATE TABLE IF NOT EXISTS own_group (image_id TEXT PRIMARY KEY REFERENCES image(id), "group" TEXT) '
    "STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS quarantine (image_id TEXT PRIMARY KEY, source_sha256 TEXT NOT NULL, "
    "frame INTEGER NOT NULL, record TEXT NOT NULL, likeness BLOB, found TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS decision (image_id TEXT PRIMARY KEY, decision TEXT NOT NULL) "
    "STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS withdrawn (mark TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS image_modality ON image (modality, id)",
    "CREATE INDEX IF NOT EXISTS image_source ON image (source_sha256, frame)",
)


def to_row(image: SourceImage) -> tuple[Value, ...]:
    """Convert a record to SQLite values; labels, geometry and consent as JSON text."""
    values: dict[str, Value] = {name: getattr(image, name) for name in COLUMNS}
    values["labels"] = _json(image.labels)
    values["geometry"] = _json(asdict(image.geometry))
    values["consent"] = None if image.consent is None else _json(asdict(image.consent))
    values["licence"] = image.licence.value
    values["text_checked"] = int(image.text_checked)
    values["synthetic"] = int(image.synthetic)
    return tuple(values.values())


def from_row(row: tuple[Value, ...]) -> SourceImage:
    """Convert a row of SQLite values to a record. Raise pydantic's ValidationError for an invalid field."""
    values: dict[str, object] = dict(zip(COLUMNS, row, strict=True))
    for name in ("labels", "geometry", "consent"):
        if values[name] is not None:
            values[name] = json.loads(str(values[name]))
    return _RECORD.validate_python(values)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction; roll back if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    done = False
    try:
        yield
        done = True
    finally:
        connection.execute("COMMIT" if done else "ROLLBACK")


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a database is a catalogue of this version. Raise InputError otherwise."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    if row is None or row[0] != str(VERSION):
        found = "unknown" if row is None else row[0]
        raise InputError(f"{path}: catalogue version {found}; this plantain reads {VERSION}")


NAME = "catalogue.sqlite"
BATCH = 64
_PAGE = 512


class Catalogue:
    """A folder of prepared images and their records. Open it read-only with `open`, or for adding with `create`.

    A `with` block closes it. Only `read` is thread-safe. `root` is the folder; `connection` and `blobs` are internal.

    Example:
        >>> with Catalogue.open("catalogue") as catalogue:
        ...     len(catalogue), catalogue.count_by("label")
        (1, {'normal': 1})
    """

    def __init__(self, root: Path, connection: sqlite3.Connection) -> None:
        self.root = root
        self.connection = connection
        self.blobs = BlobStore(root / "blobs")
        self._waiting: dict[str, SourceImage] = {}
        self._codes: dict[str, bytes] = {}

    @classmethod
    def create(cls, root: Path | str) -> Catalogue:
        """Open a catalogue for adding, or make one in a missing or empty folder. InputError if neither is possible."""
        root = Path(root)
        path = root / NAME
        if not path.exists():
            if root.exists() and (not root.is_dir() or any(root.iterdir())):
                raise InputError(f"{root}: is neither an empty folder nor a catalogue; choose another --to")
            root.mkdir(parents=True, exist_ok=True)
        check_received(root, levels=2)
        connection = sqlite3.connect(path, isolation_level=None, timeout=30.0, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            with transaction(connection):
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (str(VERSION),))
            check_version(connection, path)
        except sqlite3.DatabaseError as error:
            connection.close()
            why = "cannot be written" if isinstance(error, sqlite3.OperationalError) else "not a catalogue"
            raise InputError(f"{path}: {why} ({error})") from error
        except InputError:
            connection.close()
            raise
        return cls(root, connection)

    @classmethod
    def open(cls, root: Path | str) -> Catalogue:
        """Open an existing catalogue for reading. Raise InputError if it is missing or of another version."""
        root = Path(root)
        path = root / NAME
        if not path.is_file():
            hint = like_path(root) or "; make one with `plantain ingest`"
            raise InputError(f"{root}: no catalogue there (no {NAME}){hint}")
        check_received(root, levels=2)
        fault: sqlite3.Error | None = None
        # In a folder that is not writable, SQLite cannot make its index file, and needs none.
        for how in ("mode=ro", "mode=ro&immutable=1"):
            connection = sqlite3.connect(
                sqlite_uri(path, how), uri=True, isolation_level=None, check_same_thread=False
            )
            try:
                check_version(connection, path)
                return cls(root, connection)
            except (sqlite3.Error, InputError) as error:
                connection.close()
                if isinstance(error, InputError):
                    raise
                fault = error
        raise InputError(f"{path}: not a catalogue ({fault})") from fault

    def add(self, image: SourceImage, data: bytes, code: bytes | None = None) -> bool:
        """Store one prepared image; return False if the catalogue contains it already. `flush` or `close` commits it.

        Args:
            image: its record; `prepared_sha256` is set to the hash of `data`.
            data: the prepared JPEG file, e.g. from `PackageSample.prepared`; it is not checked.
            code: its perceptual hash (`plantain.pixels.likeness.likeness`), to find near duplicates; None to skip that.

        Raise InputError if another image, or another record, already has this id. A commit raises it too, and drops
        its images, if another process has added one of them.
        """
        image = replace(image, prepared_sha256=hashlib.sha256(data).hexdigest())
        known = self._waiting.get(image.id) or self.find(image.id)
        if known == image:
            return False
        if known is not None:
            raise InputError(f"{image.id}: the catalogue holds another image or description under this id")
        self.blobs.put(data, "image/jpeg")
        self._waiting[image.id] = image
        if code is not None:
            self._codes[image.id] = code
        if len(self._waiting) >= BATCH:
            self.flush()
        return True

    def flush(self) -> None:
        """Commit the images added since the last commit; `add` does so after every 64. InputError as in `add`."""
        if not self._waiting:
            return
        # Committed or forgotten, never tried again: the next ingest finds the rest.
        images, self._waiting = list(self._waiting.values()), {}
        codes, self._codes = self._codes, {}
        with self.transaction():
            self.insert(images, codes)

    def insert(self, images: Iterable[SourceImage], codes: Mapping[str, bytes]) -> None:
        """Add records, and perceptual hashes by image id; call it in a `transaction`. InputError if an id is taken.

        The image files must be in `blobs` already; `add` does both.
        """
        images = list(images)
        rows = [to_row(image) for image in images]
        marks = ", ".join("?" * len(COLUMNS))
        try:
            self.connection.executemany(f"INSERT INTO image VALUES ({marks})", rows)
        except sqlite3.IntegrityError as error:
            raise InputError(f"{self.root}: another process is adding to this catalogue") from error
        self._insert_labels(images)
        self.connection.executemany("INSERT INTO likeness VALUES (?, ?)", list(codes.items()))

    def _insert_labels(self, images: Iterable[SourceImage]) -> None:
        self.connection.executemany(
            "INSERT INTO label VALUES (?, ?)",
            [(label, image.id) for image in images for label in dict.fromkeys(image.labels)],
        )

    def remove(self, image: SourceImage) -> None:
        """Delete a committed image's record, labels and hash; call it in a `transaction`. Its file stays in `blobs`."""
        for table in ("label", "likeness", "own_group"):
            self.connection.execute(f"DELETE FROM {table} WHERE image_id = ?", (image.id,))
        self.connection.execute("DELETE FROM image WHERE id = ?", (image.id,))

    def replace(self, old: SourceImage, new: SourceImage) -> None:
        """Replace an image's record by one with the same id and labels; call it in a `transaction`."""
        assignments = ", ".join(f'"{column}" = ?' for column in COLUMNS)
        self.connection.execute(f"UPDATE image SET {assignments} WHERE id = ?", (*to_row(new), old.id))

    def relabel(self, old: SourceImage, new: SourceImage) -> None:
        """Replace an image's record, labels and source's group by those of `new`; the id stays. Use a `transaction`."""
        self.replace(old, new)
        for table in ("label", "own_group"):
            self.connection.execute(f"DELETE FROM {table} WHERE image_id = ?", (old.id,))
        self._insert_labels([new])

    def own_groups(self) -> list[tuple[str, str, str | None]]:
        """Return (id, dataset, `own_group`) of every image, sorted by id."""
        self.flush()
        return self.connection.execute(
            'SELECT id, dataset, CASE WHEN own_group.image_id IS NULL THEN image."group" ELSE own_group."group" END '
            "FROM image LEFT JOIN own_group ON own_group.image_id = id ORDER BY id"
        ).fetchall()

    def own_group(self, image: SourceImage) -> str | None:
        """Return the patient or study that an image's source states, whatever `regroup` set; None if it states none."""
        query = 'SELECT "group" FROM own_group WHERE image_id = ?'
        row = self.connection.execute(query, (image.id,)).fetchone()
        return image.group if row is None else row[0]

    def likenesses(self) -> list[tuple[str, bytes]]:
        """Return (id, perceptual hash) of every image that was added with a hash, sorted by id."""
        self.flush()
        return self.connection.execute("SELECT image_id, code FROM likeness ORDER BY image_id").fetchall()

    def regroup(self, groups: Mapping[str, str | None]) -> None:
        """Set and commit groups by image id; `own_group` still returns the source's. KeyError if an id is unknown."""
        self.flush()
        with self.transaction():
            held = dict(self.connection.execute('SELECT id, "group" FROM image').fetchall())
            for image_id in sorted(key for key, group in groups.items() if held.get(key) != group):
                row = (image_id, held[image_id])
                self.connection.execute("INSERT OR IGNORE INTO own_group VALUES (?, ?)", row)
                self.connection.execute(
                    'UPDATE image SET "group" = ? WHERE id = ?', (groups[image_id], image_id)
                )

    def __len__(self) -> int:
        return int(self.connection.execute("SELECT COUNT(*) FROM image").fetchone()[0]) + len(self._waiting)

    def find(self, image_id: str) -> SourceImage | None:
        """Return the record of the image with this id; None if there is none, or it is quarantined."""
        row = self.connection.execute("SELECT * FROM image WHERE id = ?", (image_id,)).fetchone()
        return from_row(row) if row is not None else self._waiting.get(image_id)

    def sources(self) -> dict[tuple[str, int], str]:
        """Return the id of every image, also quarantined ones, by (SHA-256 of the source file, frame)."""
        self.flush()
        rows = self.connection.execute(
            "SELECT source_sha256, frame, id FROM image UNION ALL "
            "SELECT source_sha256, frame, image_id FROM quarantine ORDER BY 3"
        )
        return {(sha256, frame): image_id for sha256, frame, image_id in rows}

    def get(self, image_id: str) -> SourceImage:
        """Return the record of the image with this id. Raise InputError if there is none."""
        image = self.find(image_id)
        if image is None:
            raise InputError(f"{self.root}: no image has the id {image_id!r}")
        return image

    def images(self, modality: str | None = None, label: str | None = None) -> Iterator[SourceImage]:
        """Yield the records of all images, sorted by id; only those of `modality` and with `label`, where given."""
        self.flush()
        columns = ", ".join(f'image."{column}"' for column in COLUMNS)
        source = "image" if label is None else "label JOIN image ON image.id = label.image_id"
        wanted = [("label.label", label), ("image.modality", modality)]
        key = "image.id" if label is None else "label.image_id"
        where = " AND ".join([f"{key} > ?", *(f"{name} = ?" for name, value in wanted if value is not None)])
        values = [value for _, value in wanted if value is not None]
        after = ""
        # Page by page, not one open cursor: the catalogue may grow, or be closed, between two pages.
        while True:
            query = f"SELECT {columns} FROM {source} WHERE {where} ORDER BY {key} LIMIT {_PAGE}"
            rows = self.connection.execute(query, (after, *values)).fetchall()
            yield from map(from_row, rows)
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def count_by(self, field: str) -> dict[str, int]:
        """Return the number of images by label ("label"), or by a field of `SourceImage` as text (a bool: "0" or "1").

        Raise ValueError for an unknown field.
        """
        self.flush()
        if field == "label":
            query = "SELECT label, COUNT(*) FROM label GROUP BY label ORDER BY label"
        elif field in COLUMNS:
            query = f'SELECT "{field}", COUNT(*) FROM image GROUP BY 1 ORDER BY 1'
        else:
            raise ValueError(f"no field {field!r} to count by")
        return {str(value): int(count) for value, count in self.connection.execute(query)}

    def read(self, image: SourceImage) -> bytes:
        """Return the prepared JPEG file of an image. Thread-safe. Raise InputError if it is missing or damaged."""
        return self.blobs.read(image.prepared_sha256)

    def transaction(self) -> AbstractContextManager[None]:
        """Return a context manager that commits `insert`, `remove`, `replace`, `relabel`, or undoes all on an error."""
        return transaction(self.connection)

    def digest(self) -> str:
        """Return the SHA-256 (hex) of all records except quarantined ones, in whatever order they were added."""
        self.flush()
        found = hashlib.sha256(str(VERSION).encode())
        for row in self.connection.execute("SELECT * FROM image ORDER BY id"):
            found.update(_json(row).encode())
        return found.hexdigest()

    def close(self) -> None:
        """Commit the images added since the last commit, as `flush` does, and close the database."""
        try:
            self.flush()
        finally:
            self.connection.close()

    def __enter__(self) -> Catalogue:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()
