"""Quarantine: prepared images that may identify a patient, kept out of the catalogue until a user has decided.

They are in a table of their own, so that no reader of the catalogue sees them. `release` adds an image as it is; `mask`
blackens the boxes first, and reads the result again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import orjson

from plantain.catalogue.gate import FACE, PHOTOGRAPH, Suspicion, suspicious
from plantain.catalogue.store import Catalogue
from plantain.journal.blobs import sync_folder
from plantain.journal.rows import from_json, to_json
from plantain.pixels.boxes import Box, blacken
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_prepared
from plantain.privacy.text import TextReader
from plantain.records import InputError, SourceImage
from plantain.records.messages import counted, suggest

_COLUMNS = "image_id, record, likeness, found"
_MASKINGS = 3
"""Times that a masked image is read again and masked further."""


@dataclass(frozen=True, slots=True)
class Held:
    """An image in quarantine.

    Attributes:
        code: its 256-bit code, see `pixels.likeness`; None if unknown.
        found: marks that may identify a patient.
    """

    image: SourceImage
    code: bytes | None
    found: tuple[Suspicion, ...]

    @property
    def why(self) -> str:
        """The kinds of suspicions, each once, separated by commas."""
        kinds = dict.fromkeys(suspicion.kind for suspicion in self.found)
        return ", ".join(kind if kind in (FACE, PHOTOGRAPH) else f"text: {kind}" for kind in kinds)

    @property
    def maskable(self) -> bool:
        """True if the suspicions can be masked; False for a photograph, of which no part would remain."""
        return all(suspicion.kind != PHOTOGRAPH for suspicion in self.found)


def hold(
    catalogue: Catalogue, image: SourceImage, data: bytes, code: bytes | None, found: Sequence[Suspicion]
) -> None:
    """Put an image, its prepared bytes `data` and its `code` (see `Held`) into quarantine instead of the catalogue."""
    catalogue.blobs.put(data, "image/jpeg")
    catalogue.flush()
    with catalogue.transaction():
        _insert(catalogue, Held(image, code, tuple(found)))


def hold_again(catalogue: Catalogue, image: SourceImage, found: Sequence[Suspicion]) -> None:
    """Move an image from the catalogue into quarantine, if its text is only read after its ingest."""
    catalogue.flush()
    query = "SELECT code FROM likeness WHERE image_id = ?"
    row = catalogue.connection.execute(query, (image.id,)).fetchone()
    kept = replace(image, group=catalogue.own_group(image), text_checked=True)
    with catalogue.transaction():
        catalogue.remove(image)
        _insert(catalogue, Held(kept, row[0] if row else None, tuple(found)))


def redescribe(catalogue: Catalogue, image: SourceImage) -> None:
    """Replace the record of a quarantined image; call it inside a transaction."""
    catalogue.connection.execute(
        "UPDATE quarantine SET record = ? WHERE image_id = ?", (to_json(image), image.id)
    )


def held(catalogue: Catalogue) -> Iterator[Held]:
    """Yield every quarantined image, sorted by id."""
    query = f"SELECT {_COLUMNS} FROM quarantine ORDER BY image_id"
    yield from map(_held, catalogue.connection.execute(query).fetchall())


def held_one(catalogue: Catalogue, image_id: str) -> Held | None:
    """Return the quarantined image of that id, or None."""
    query = f"SELECT {_COLUMNS} FROM quarantine WHERE image_id = ?"
    row = catalogue.connection.execute(query, (image_id,)).fetchone()
    return None if row is None else _held(row)


def release(catalogue: Catalogue, image_id: str) -> bool:
    """Move a quarantined image to the catalogue; False if released before. Raise InputError for an unknown id."""
    waiting = _waiting(catalogue, image_id)
    if waiting is None:
        return False
    _admit(catalogue, waiting, waiting.image, "released")
    return True


def mask(catalogue: Catalogue, image_id: str, reader: TextReader | None) -> bool:
    """Blacken the suspicions in a quarantined image, add it to the catalogue, and delete the unmasked image.

    With a reader the masked image is read again, and remaining suspicions are masked too. Return False if it was masked
    before.

    Raises:
        InputError: the id is unknown, it is a photograph, or text stays legible; the image then stays in quarantine.
    """
    waiting = _waiting(catalogue, image_id)
    if waiting is None:
        finish_discards(catalogue)  # a process may have been killed before it could
        return False
    if not waiting.maskable:
        raise InputError(
            f"{catalogue.root}: {image_id}: a photograph among {waiting.image.modality} images; masking would leave "
            "nothing of it; release it, or leave it in quarantine"
        )
    boxes = [suspicion.box for suspicion in waiting.found]
    original = decode(catalogue.read(waiting.image))
    for _ in range(_MASKINGS):
        data = encode_prepared(blacken(original, boxes), synthetic=waiting.image.synthetic)
        left = suspicious(reader.read(decode(data))) if reader is not None else ()
        if not left:
            break
        boxes += [suspicion.box for suspicion in left]
    else:
        raise InputError(
            f"{catalogue.root}: {image_id}: text is still legible after masking; it stays in quarantine"
        )
    blob, _ = catalogue.blobs.put(data, "image/jpeg")
    note = "; ".join(filter(None, (waiting.image.note, f"{counted(len(boxes), 'place')} masked")))
    image = replace(waiting.image, prepared_sha256=blob.sha256, note=note)
    _admit(catalogue, waiting, image, "masked")
    finish_discards(catalogue)
    return True


def _waiting(catalogue: Catalogue, image_id: str) -> Held | None:
    """Return the waiting image; None if it was decided before. Raise InputError for any other id."""
    waiting = held_one(catalogue, image_id)
    if waiting is None:
        query = "SELECT decision FROM decision WHERE image_id = ?"
        if catalogue.connection.execute(query, (image_id,)).fetchone() is None:
            ids = [other.image.id for other in held(catalogue)]
            hint = suggest(image_id, ids) if ids else "none is"
            raise InputError(f"{catalogue.root}: no image {image_id!r} is in quarantine; {hint}")
    return waiting


def _admit(catalogue: Catalogue, waiting: Held, image: SourceImage, decision: str) -> None:
    catalogue.flush()
    with catalogue.transaction():
        catalogue.connection.execute("DELETE FROM quarantine WHERE image_id = ?", (image.id,))
        if image.prepared_sha256 != waiting.image.prepared_sha256:
            note_discard(catalogue, waiting.image.prepared_sha256)
        catalogue.insert([image], {} if waiting.code is None else {image.id: waiting.code})
        decided = "INSERT OR REPLACE INTO decision VALUES (?, ?)"
        catalogue.connection.execute(decided, (image.id, decision))


def _insert(catalogue: Catalogue, waiting: Held) -> None:
    image = waiting.image
    found = [
        [s.kind, s.text, s.box.left, s.box.top, s.box.width, s.box.height] for s in sorted(waiting.found)
    ]
    record, suspicions = to_json(image), orjson.dumps(found).decode()
    row = (image.id, image.source_sha256, image.frame, record, waiting.code, suspicions)
    catalogue.connection.execute("INSERT INTO quarantine VALUES (?, ?, ?, ?, ?, ?)", row)


def _held(row: tuple[str, str, bytes | None, str]) -> Held:
    found = tuple(
        Suspicion(kind, text, Box(left, top, width, height))
        for kind, text, left, top, width, height in orjson.loads(row[3])
    )
    return Held(from_json(SourceImage, row[1]), row[2], found)


_NOTE = "discard "

_REFERENCES = (
    "SELECT 1 FROM image WHERE prepared_sha256 = ? UNION ALL "
    "SELECT 1 FROM quarantine WHERE json_extract(record, '$.prepared_sha256') = ?"
)


def note_discard(catalogue: Catalogue, sha256: str) -> None:
    """Schedule the deletion of an image, inside a transaction; it is kept if a record still refers to it."""
    catalogue.connection.execute("INSERT OR IGNORE INTO meta VALUES (?, '')", (_NOTE + sha256,))


def finish_discards(catalogue: Catalogue) -> int:
    """Delete scheduled images without references, purge deleted rows, and return the number scheduled."""
    database = catalogue.connection
    query = "SELECT key FROM meta WHERE key >= ? AND key < ?"
    noted = [key for (key,) in database.execute(query, (_NOTE, "discard!")).fetchall()]
    for key in noted:
        sha256 = key.removeprefix(_NOTE)
        if database.execute(_REFERENCES, (sha256, sha256)).fetchone() is None:
            path = catalogue.blobs.path(sha256)
            path.unlink(missing_ok=True)
            if path.parent.is_dir():
                sync_folder(path.parent)
    if noted:
        database.execute("VACUUM")
        with catalogue.transaction():
            database.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in noted])
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return len(noted)
