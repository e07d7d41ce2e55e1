"""Quarantine: prepared images that may show who somebody is, kept out of the catalogue until a person has decided.

They lie in a table of their own, so that nothing that reads the catalogue can meet them. `release` puts an image among
the others as it is; `mask` blackens the boxes first, and reads the result once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import orjson
from pydantic import TypeAdapter

from plantain.catalogue.discard import finish_discards, note_discard
from plantain.catalogue.gate import FACE, PHOTOGRAPH, Suspicion, suspicious, texts_to_json
from plantain.catalogue.store import Catalogue
from plantain.pixels.boxes import Box, blacken
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_prepared
from plantain.privacy.text import TextReader
from plantain.records import InputError, SourceImage
from plantain.records.counts import counted
from plantain.records.suggestions import suggest

_RECORD = TypeAdapter(SourceImage)
_COLUMNS = "image_id, record, likeness, found"
_MASKINGS = 3
"""A masked image is read again and what is still there is masked too, this often at most."""


@dataclass(frozen=True, slots=True)
class Held:
    """An image in quarantine, its likeness code, and what was found in it."""

    image: SourceImage
    code: bytes | None
    found: tuple[Suspicion, ...]

    @property
    def why(self) -> str:
        """The kinds of what was found, each once."""
        kinds = dict.fromkeys(suspicion.kind for suspicion in self.found)
        return ", ".join(kind if kind in (FACE, PHOTOGRAPH) else f"text: {kind}" for kind in kinds)

    @property
    def maskable(self) -> bool:
        """Whether anything would be left of it: a photograph is held back as a whole."""
        return all(suspicion.kind != PHOTOGRAPH for suspicion in self.found)


def hold(
    catalogue: Catalogue, image: SourceImage, data: bytes, code: bytes | None, found: Sequence[Suspicion]
) -> None:
    """Puts a prepared image into quarantine instead of the catalogue."""
    catalogue.blobs.put(data, "image/jpeg")
    catalogue.flush()
    with catalogue.transaction():
        _insert(catalogue, Held(image, code, tuple(found)))


def hold_again(catalogue: Catalogue, image: SourceImage, found: Sequence[Suspicion]) -> None:
    """Moves an image of the catalogue into quarantine: its text was read later than it was ingested."""
    catalogue.flush()
    query = "SELECT code FROM likeness WHERE image_id = ?"
    row = catalogue.connection.execute(query, (image.id,)).fetchone()
    kept = replace(image, group=catalogue.own_group(image), text_checked=True)
    with catalogue.transaction():
        catalogue.remove(image)
        _insert(catalogue, Held(kept, row[0] if row else None, tuple(found)))


def redescribe(catalogue: Catalogue, image: SourceImage) -> None:
    """Puts another record of a waiting image in the place of its own, inside a transaction."""
    catalogue.connection.execute(
        "UPDATE quarantine SET record = ? WHERE image_id = ?", (orjson.dumps(image).decode(), image.id)
    )


def held(catalogue: Catalogue) -> Iterator[Held]:
    """Every image that waits, in order of their ids."""
    if catalogue.has("quarantine"):
        query = f"SELECT {_COLUMNS} FROM quarantine ORDER BY image_id"
        yield from map(_held, catalogue.connection.execute(query).fetchall())


def held_one(catalogue: Catalogue, image_id: str) -> Held | None:
    """The waiting image of that id, or None."""
    if not catalogue.has("quarantine"):
        return None
    query = f"SELECT {_COLUMNS} FROM quarantine WHERE image_id = ?"
    row = catalogue.connection.execute(query, (image_id,)).fetchone()
    return None if row is None else _held(row)


def release(catalogue: Catalogue, image_id: str) -> bool:
    """A person says that nothing in the image identifies anybody: it joins the others, unchanged.

    Returns:
        False where it was released before.

    Raises:
        InputError: no image of that id waits.
    """
    waiting = _waiting(catalogue, image_id)
    if waiting is None:
        return False
    _admit(catalogue, waiting, waiting.image, "released")
    return True


def mask(catalogue: Catalogue, image_id: str, reader: TextReader | None) -> bool:
    """Blackens what was found in the image and lets it join the others; the unmasked picture is removed.

    Where a reader is there, the masked picture is read again, and what may still identify is masked as well.

    Returns:
        False where it was masked before.

    Raises:
        InputError: no image of that id waits, it is a photograph, or text stays legible; then it waits on.
    """
    waiting = _waiting(catalogue, image_id)
    if waiting is None:
        finish_discards(catalogue)  # a process may have been killed before it could
        return False
    if not waiting.maskable:
        raise InputError(
            f"{catalogue.root}: {image_id}: a photograph among {waiting.image.modality} images, of which masking would "
            "leave nothing; release it, or let it wait"
        )
    boxes = [suspicion.box for suspicion in waiting.found]
    original = decode(catalogue.read(waiting.image))
    for _ in range(_MASKINGS):
        data = encode_prepared(blacken(original, boxes), synthetic=waiting.image.synthetic)
        texts = reader.read(decode(data)) if reader is not None else ()
        left = suspicious(texts)
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
    if reader is not None:
        catalogue.remember_reading(blob.sha256, reader.name, texts_to_json(texts))
    _admit(catalogue, waiting, image, "masked", boxes)
    finish_discards(catalogue)
    return True


def _waiting(catalogue: Catalogue, image_id: str) -> Held | None:
    """The image that waits; None where it was decided on before. Raises InputError for any other id."""
    waiting = held_one(catalogue, image_id)
    if waiting is None:
        query = "SELECT decision FROM decision WHERE image_id = ?"
        if catalogue.connection.execute(query, (image_id,)).fetchone() is None:
            ids = [other.image.id for other in held(catalogue)]
            hint = suggest(image_id, ids) if ids else "none is"
            raise InputError(f"{catalogue.root}: no image {image_id!r} is in quarantine; {hint}")
    return waiting


def _admit(
    catalogue: Catalogue, waiting: Held, image: SourceImage, decision: str, boxes: Sequence[Box] = ()
) -> None:
    catalogue.flush()
    sides = [[box.left, box.top, box.width, box.height] for box in boxes]
    with catalogue.transaction():
        catalogue.connection.execute("DELETE FROM quarantine WHERE image_id = ?", (image.id,))
        if image.prepared_sha256 != waiting.image.prepared_sha256:
            # What was read there is what was masked: it must not be remembered in words.
            catalogue.connection.execute(
                "DELETE FROM reading WHERE prepared_sha256 = ?", (waiting.image.prepared_sha256,)
            )
            note_discard(catalogue, waiting.image.prepared_sha256)
        catalogue.insert([image], {} if waiting.code is None else {image.id: waiting.code})
        catalogue.connection.execute(
            "INSERT OR REPLACE INTO decision VALUES (?, ?, ?)",
            (image.id, decision, orjson.dumps(sides).decode()),
        )


def _insert(catalogue: Catalogue, waiting: Held) -> None:
    image = waiting.image
    found = [
        [s.kind, s.text, s.box.left, s.box.top, s.box.width, s.box.height] for s in sorted(waiting.found)
    ]
    catalogue.connection.execute(
        "INSERT INTO quarantine VALUES (?, ?, ?, ?, ?, ?)",
        (
            image.id,
            image.source_sha256,
            image.frame,
            orjson.dumps(image).decode(),
            waiting.code,
            orjson.dumps(found).decode(),
        ),
    )


def _held(row: tuple[str, str, bytes | None, str]) -> Held:
    found = tuple(
        Suspicion(kind, text, Box(left, top, width, height))
        for kind, text, left, top, width, height in orjson.loads(row[3])
    )
    return Held(_RECORD.validate_json(row[1]), row[2], found)
