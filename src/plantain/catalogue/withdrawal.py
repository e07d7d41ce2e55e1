"""Withdraw a patient from a catalogue: rows and images, and marks that keep them from coming back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from plantain.catalogue.groups import JOINED
from plantain.catalogue.quarantine import finish_discards, held, note_discard
from plantain.catalogue.store import Catalogue
from plantain.files.opening import replace_file
from plantain.journal.reader import keyed_mark
from plantain.records import SourceImage, Withdrawal

_SALT = "withdrawal_salt"


@dataclass(frozen=True, slots=True)
class WithdrawnImages:
    """The result of a withdrawal from a catalogue, or its preview.

    Attributes:
        images: records of the withdrawn images, also in quarantine.
        known: requested names that the catalogue contains, or contained before a withdrawal.
        before: True if they were withdrawn earlier.
        alike: near duplicates that stay, since only single images were requested.
    """

    images: tuple[SourceImage, ...]
    known: frozenset[str] = frozenset()
    before: bool = False
    alike: tuple[str, ...] = ()


class Withdrawn:
    """Keyed hashes of the images and groups withdrawn from a catalogue, from which ids cannot be recovered."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._salt = _salt_of(catalogue)
        self._marks: frozenset[str] = frozenset()
        if self._salt:
            rows = catalogue.connection.execute("SELECT mark FROM withdrawn")
            self._marks = frozenset(mark for (mark,) in rows)

    def holds(self, image: SourceImage) -> bool:
        """Return True if this image was withdrawn."""
        return self.remembers(_source(image))

    def remembers(self, text: str) -> bool:
        """Return True if an image or group with this name was withdrawn."""
        return bool(self._marks) and keyed_mark(self._salt, text) in self._marks


def asked_images(catalogue: Catalogue, asked: Withdrawal) -> WithdrawnImages:
    """Find the images that a withdrawal names, without removing any; groups also match by their joined name."""
    own = {image_id: group for image_id, _, group in catalogue.own_groups()}

    def everything() -> Iterator[tuple[SourceImage, frozenset[str]]]:
        for image in chain(catalogue.images(), (waiting.image for waiting in held(catalogue))):
            yield image, asked.naming(image, own.get(image.id))

    found = [(image, names) for image, names in everything() if names]
    images = tuple(image for image, _ in found)
    withdrawn = Withdrawn(catalogue)
    before = {name for name, mark in asked.marks().items() if withdrawn.remembers(mark)}
    joined = {image.group for image in images if image.group and image.group.startswith(JOINED)}
    alike = (
        [image.id for image, names in everything() if not names and image.group in joined] if joined else []
    )
    known = frozenset(before).union(*(names for _, names in found))
    return WithdrawnImages(images, known, not images and bool(before), tuple(alike))


def withdraw_from_catalogue(root: Path, asked: Withdrawal) -> WithdrawnImages:
    """Remove images permanently from a catalogue and return them; if killed, run it again to finish.

    One transaction removes the rows and records the images; then the images are deleted and the database is rewritten.
    """
    with Catalogue.create(root) as catalogue:
        found = asked_images(catalogue, asked)
        if found.images:
            _take_rows(catalogue, asked, found.images)
        finish_discards(catalogue)
    return found


def _take_rows(catalogue: Catalogue, asked: Withdrawal, images: Sequence[SourceImage]) -> None:
    database = catalogue.connection
    salt = _salt_of(catalogue) or os.urandom(32).hex()
    before = {group for *_, group in catalogue.own_groups() if group}
    with catalogue.transaction():
        database.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (_SALT, salt))
        marks = [*asked.marks().values()]
        for image in images:
            marks.append(_source(image))
            catalogue.remove(image)
            for table in ("quarantine", "decision"):
                database.execute(f"DELETE FROM {table} WHERE image_id = ?", (image.id,))
            note_discard(catalogue, image.prepared_sha256)
        # A joined group may contain several of the source's own; each is gone with its last image.
        emptied = before - {group for *_, group in catalogue.own_groups()}
        marks += [f"group {group}" for group in sorted(emptied)]
        database.executemany(
            "INSERT OR IGNORE INTO withdrawn VALUES (?)", [(keyed_mark(salt, mark),) for mark in marks]
        )


def _salt_of(catalogue: Catalogue) -> str:
    row = catalogue.connection.execute("SELECT value FROM meta WHERE key = ?", (_SALT,)).fetchone()
    return "" if row is None else str(row[0])


def _source(image: SourceImage) -> str:
    return f"source {image.source_sha256} {image.frame}"


def cut_rejected(root: Path, images: Iterable[SourceImage]) -> None:
    """Remove the lines of rejected.csv that name one of these images, or its group."""
    path = root / "rejected.csv"
    names = {name for image in images for name in (image.id, (image.group or "").partition(":")[2]) if name}
    if not path.is_file() or not names:
        return
    # A short name, such as "7", counts only as a whole word.
    pattern = "|".join(
        re.escape(name) if len(name) > 3 else rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(names)
    )
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for number, line in enumerate(lines) if number == 0 or not re.search(pattern, line)]
    if len(kept) < len(lines):
        replace_file(path, "".join(kept).encode())
