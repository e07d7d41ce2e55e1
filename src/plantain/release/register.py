"""The register of a run's releases and their images, so that a withdrawal can name the releases concerned."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from plantain.records import InputError

REGISTER = "releases.sqlite"
"""In the run's folder. Not in the journal, since an export may run while a build writes to that."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS release (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT",
    "CREATE TABLE IF NOT EXISTS image (release INTEGER NOT NULL REFERENCES release(id), image_id TEXT NOT NULL, "
    "PRIMARY KEY (release, image_id)) STRICT, WITHOUT ROWID",
)


def register(run: Path, out: Path, image_ids: Iterable[str]) -> None:
    """Record in a run, before an export, that a release contains these images.

    Args:
        run: folder of the run.
        out: folder of the release.
        image_ids: ids of the images.

    Raises:
        InputError: the register cannot be written.
    """
    with _opened(run) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise _unwritable(run, error) from error
        for statement in _SCHEMA:
            database.execute(statement)
        path = (str(out.resolve()),)
        database.execute("INSERT OR IGNORE INTO release(path) VALUES (?)", path)
        number = database.execute("SELECT id FROM release WHERE path = ?", path).fetchone()[0]
        database.executemany(
            "INSERT OR IGNORE INTO image VALUES (?, ?)", ((number, image_id) for image_id in image_ids)
        )
        database.execute("COMMIT")


def copy_register(run: Path, to: Path) -> None:
    """Copy a run's register of releases into that of `to`, the run into which it was merged."""
    if not (run / REGISTER).is_file():
        return
    with _opened(run) as database:
        for number, path in database.execute("SELECT id, path FROM release ORDER BY id").fetchall():
            images = database.execute("SELECT image_id FROM image WHERE release = ?", (number,))
            register(to, Path(path), (image_id for (image_id,) in images))


def releases_with(run: Path, image_ids: Collection[str]) -> list[str]:
    """Return the sorted paths of the releases that contain any of these images; [] without a register."""
    if not (run / REGISTER).is_file():
        return []
    with _opened(run) as database:
        found = set()
        for image_id in image_ids:
            found |= set(
                database.execute(
                    "SELECT path FROM release JOIN image ON image.release = release.id WHERE image_id = ?",
                    (image_id,),
                )
            )
    return sorted(path for (path,) in found)


def forget(run: Path, image_ids: Collection[str]) -> None:
    """Remove images from the register of releases permanently."""
    if not (run / REGISTER).is_file():
        return
    with _opened(run) as database:
        database.execute("PRAGMA secure_delete = ON")
        database.execute("BEGIN IMMEDIATE")
        database.executemany("DELETE FROM image WHERE image_id = ?", [(image_id,) for image_id in image_ids])
        database.execute("COMMIT")
        database.execute("VACUUM")


@contextlib.contextmanager
def _opened(run: Path) -> Iterator[sqlite3.Connection]:
    try:
        database = sqlite3.connect(run / REGISTER, isolation_level=None, timeout=30.0)
    except sqlite3.OperationalError as error:
        raise _unwritable(run, error) from error
    with contextlib.closing(database):
        database.execute("PRAGMA synchronous = FULL")
        yield database


def _unwritable(run: Path, error: sqlite3.OperationalError) -> InputError:
    return InputError(
        f"{run / REGISTER}: cannot be written ({error}); a run remembers its releases, so that a withdrawal finds them"
    )
