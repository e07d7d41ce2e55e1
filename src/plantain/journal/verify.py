"""Checks whether a run is complete: the database, and every blob that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plantain.journal.reader import BLOBS_ABSENT, JournalReader
from plantain.journal.rows import BadBlob

_USES = "SELECT task, round, edited, mask, raw FROM attempt WHERE :sha IN (edited, mask, raw) ORDER BY 1, generation, 2"
_ORIGINAL_OF = "SELECT t.id FROM image i JOIN task t ON t.image_id = i.id WHERE i.prepared = ? ORDER BY t.id"


@dataclass(frozen=True)
class Integrity:
    """The result of `verify`; a run is complete when there are no problems."""

    problems: tuple[str, ...]
    blobs: int

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(reader: JournalReader) -> Integrity:
    """Check the database's integrity, its references, and the bytes of every blob; return all problems."""
    connection = reader.connection
    problems = [
        f"journal: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"
    ]
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        problems.append(f"journal: row {row} of {table} refers to a missing {parent}")
    checked = dict(_checked_blobs(reader))
    problems += [f"blob {sha256}: {fault}" for sha256, fault in checked.items() if fault]
    return Integrity(tuple(problems), len(checked))


def damaged_blobs(reader: JournalReader) -> frozenset[str]:
    """Find damaged or missing blobs by reading all; return their hashes, except of those an imported run never had."""
    return frozenset(sha256 for sha256, fault in _checked_blobs(reader) if fault)


def _checked_blobs(reader: JournalReader) -> Iterator[tuple[str, str]]:
    """Yield every blob that the run must have, with its fault; "" for a sound one."""
    may_miss, after = reader.meta(BLOBS_ABSENT) is not None, ""
    page = "SELECT sha256, bytes FROM blob WHERE sha256 > ? ORDER BY sha256 LIMIT 1000"
    while rows := reader.connection.execute(page, (after,)).fetchall():
        for sha256, size in rows:
            if may_miss and not reader.has_blob(sha256):
                continue
            try:
                right = len(reader.read_blob(sha256)) == size
                yield sha256, "" if right else f"the journal records {size} bytes"
            except BadBlob as error:
                yield sha256, str(error)
        after = rows[-1][0]


def places_of(reader: JournalReader, blobs: Iterable[str]) -> list[str]:
    """Describe where a run uses these images, e.g. "task 1b2c, round 2: its edited image"."""
    places = []
    for sha256 in sorted(blobs):
        for task, number, *images in reader.connection.execute(_USES, {"sha": sha256}):
            what = ("edited image", "mask", "raw answer")[images.index(sha256)]
            places.append(f"task {task}, round {number}: its {what}")
        for (task,) in reader.connection.execute(_ORIGINAL_OF, (sha256,)):
            places.append(f"task {task}: its original")
    return places
