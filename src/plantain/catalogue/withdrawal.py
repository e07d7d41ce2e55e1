"""Taking a patient out of a catalogue: rows, pictures, readings, and the memory that keeps them from coming back."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plantain.catalogue.discard import finish_discards, note_discard
from plantain.catalogue.quarantine import held
from plantain.catalogue.store import Catalogue
from plantain.records import SourceImage

_SALT = "withdrawal_salt"


@dataclass(frozen=True, slots=True)
class WithdrawnImages:
    """What a withdrawal takes, or took, out of a catalogue.

    Attributes:
        images: their records, those in quarantine included.
        before: True where the group was withdrawn earlier, so that nothing is left to take.
    """

    images: tuple[SourceImage, ...]
    before: bool = False


class Withdrawn:
    """The marks of what was withdrawn from a catalogue: keyed hashes, from which no id can be read."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._salt = _salt_of(catalogue)
        self._marks: frozenset[str] = frozenset()
        if self._salt and catalogue.has("withdrawn"):
            rows = catalogue.connection.execute("SELECT mark FROM withdrawn")
            self._marks = frozenset(mark for (mark,) in rows)

    def holds(self, image: SourceImage) -> bool:
        """Whether this picture was withdrawn."""
        return bool(self._marks) and _mark(self._salt, _source(image)) in self._marks

    def holds_group(self, group: str) -> bool:
        """Whether this group was withdrawn."""
        return bool(self._marks) and _mark(self._salt, f"group {group}") in self._marks


def images_of_group(catalogue: Catalogue, group: str) -> WithdrawnImages:
    """The images of a group, by the name that its source gave it or that near duplicates were joined under."""
    query = (
        "SELECT id FROM image LEFT JOIN own_group ON own_group.image_id = id "
        'WHERE image."group" = ? OR own_group."group" = ? ORDER BY id'
    )
    ids = [image_id for (image_id,) in catalogue.connection.execute(query, (group, group))]
    images = [catalogue.get(image_id) for image_id in ids]
    images += [waiting.image for waiting in held(catalogue) if waiting.image.group == group]
    return WithdrawnImages(tuple(images), not images and Withdrawn(catalogue).holds_group(group))


def withdraw_from_catalogue(root: Path, group: str) -> WithdrawnImages:
    """Removes a group's images for good; killed at any moment, running it again finishes it.

    First one transaction takes the rows and notes which pictures must go, then the pictures go, then the database is
    written anew without what was deleted.
    """
    with Catalogue.create(root) as catalogue:
        found = images_of_group(catalogue, group)
        if found.images:
            _take_rows(catalogue, group, found.images)
        finish_discards(catalogue)
    return found


def _take_rows(catalogue: Catalogue, group: str, images: Iterable[SourceImage]) -> None:
    database = catalogue.connection
    salt = _salt_of(catalogue) or os.urandom(32).hex()
    with catalogue.transaction():
        database.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (_SALT, salt))
        marks = [f"group {group}"]
        for image in images:
            marks.append(_source(image))
            # A joined group may hold several of the source's own; each is gone with its last image.
            own = database.execute('SELECT "group" FROM own_group WHERE image_id = ?', (image.id,)).fetchone()
            marks += [f"group {own[0]}"] if own and own[0] else []
            catalogue.remove(image)
            for table in ("quarantine", "decision"):
                database.execute(f"DELETE FROM {table} WHERE image_id = ?", (image.id,))
            database.execute("DELETE FROM reading WHERE prepared_sha256 = ?", (image.prepared_sha256,))
            note_discard(catalogue, image.prepared_sha256)
        database.executemany(
            "INSERT OR IGNORE INTO withdrawn VALUES (?)", [(_mark(salt, mark),) for mark in marks]
        )


def _salt_of(catalogue: Catalogue) -> str:
    row = catalogue.connection.execute("SELECT value FROM meta WHERE key = ?", (_SALT,)).fetchone()
    return "" if row is None else str(row[0])


def _source(image: SourceImage) -> str:
    return f"source {image.source_sha256} {image.frame}"


def _mark(salt: str, text: str) -> str:
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()[:32]


def cut_rejected(root: Path, images: Iterable[SourceImage]) -> None:
    """Takes lines out of rejected.csv that name one of these images, or its group."""
    path = root / "rejected.csv"
    names = {name for image in images for name in (image.id, (image.group or "").partition(":")[2])}
    names = {name for name in names if len(name) > 3}
    if not path.is_file() or not names:
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not any(name in line for name in names)]
    if len(kept) < len(lines):
        temporary = path.with_suffix(".tmp")
        temporary.write_text("".join(kept), encoding="utf-8", newline="")
        temporary.replace(path)
