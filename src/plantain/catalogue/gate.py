"""The gate that every ingested image passes: it reads text, looks for faces, and reports what may identify somebody."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import orjson

from plantain.catalogue.store import Catalogue
from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.decode import decode
from plantain.privacy.enlarged_text import read_prepared
from plantain.privacy.small_text import small_texts
from plantain.privacy.text import Text, TextKind, TextReader
from plantain.records import Geometry, SourceImage
from plantain.sources.entries import SourceEntry

FACE, PHOTOGRAPH = "face", "photograph"

GREY = frozenset({"chest_xray", "brain_mri"})
"""Modalities without colour: a coloured picture among them is something else, and a person must look at it."""


@dataclass(frozen=True, slots=True, order=True)
class Suspicion:
    """Something in a prepared image that may identify a person.

    Attributes:
        kind: "face"; "photograph" for all of a coloured scene among radiographs or slices; or the kind of the text
            (date, number, name, other).
        text: what was read; "" for a face.
        box: where, in pixels of the prepared image.
    """

    kind: str
    text: str
    box: Box


class Readings(Protocol):
    """Keeps what was read in prepared images; a catalogue does."""

    def reading(self, prepared_sha256: str) -> tuple[str, str] | None:
        """(reader, what it found as JSON) of a prepared image; None where its text was never read."""
        ...

    def remember_reading(self, prepared_sha256: str, reader: str, found: str) -> None: ...


class NoReadings:
    """What a worker remembers of other pictures: nothing."""

    def reading(self, prepared_sha256: str) -> tuple[str, str] | None:
        """None: nobody looked."""
        return None

    def remember_reading(self, prepared_sha256: str, reader: str, found: str) -> None:
        """The head remembers."""


@dataclass(frozen=True, slots=True)
class PrivacyGate:
    """Looks at prepared images; used by all worker threads.

    Attributes:
        readings: keeps what was read, by the hash of the prepared image, so that none is read twice: the catalogue.
        reader: reads text; None where none can be read here, or nobody wants it.
    """

    readings: Readings
    reader: TextReader | None

    def texts(self, data: bytes, image: SourceImage) -> tuple[Text, ...] | None:
        """The text in a prepared image, from memory where it was read before; None without a reader."""
        if self.reader is None:
            return None
        kept = self.readings.reading(image.prepared_sha256)
        if kept is not None and kept[0] == self.reader.name:
            return texts_from_json(kept[1])
        return read_prepared(decode(data), image.geometry, self.reader)

    def faces(self, entry: SourceEntry, image: SourceImage, pixels: Pixels) -> tuple[Suspicion, ...]:
        """Faces in a decoded image, told where they lie in the prepared one; and what is a photograph altogether."""
        from plantain.privacy.faces import coloured_scene  # heavy

        kinds = [(FACE, box) for box in entry.faces(image, pixels)]
        if image.modality in GREY and coloured_scene(pixels):
            kinds.append((PHOTOGRAPH, Box(0, 0, pixels.shape[1], pixels.shape[0])))
        return tuple(Suspicion(kind, "", in_prepared(box, image.geometry)) for kind, box in kinds)

    def small(
        self, image: SourceImage, pixels: Pixels, texts: Iterable[Text] | None
    ) -> tuple[Suspicion, ...]:
        """What a decoded image says in letters too small for the prepared one, told where they lie in it.

        Args:
            image: its complete record.
            pixels: as decoded, of its own size.
            texts: what was read in the prepared image, which is not told twice; None where nothing is to be read.
        """
        if self.reader is None or texts is None:
            return ()
        identifying = [text.box for text in texts if text.kind.identifying]
        geometry = image.geometry
        side = max(geometry.inner_width, geometry.inner_height)
        small = suspicious(small_texts(pixels, self.reader, side))
        moved = [replace(one, box=in_prepared(one.box, geometry)) for one in small]
        return tuple(one for one in moved if not any(one.box.overlaps(box) for box in identifying))

    def remember(self, image: SourceImage, texts: tuple[Text, ...]) -> None:
        """Keeps what was read in an image, its markers among it; by the thread that adds to the catalogue."""
        assert self.reader is not None
        self.readings.remember_reading(image.prepared_sha256, self.reader.name, texts_to_json(texts))


def suspicious(texts: Iterable[Text]) -> tuple[Suspicion, ...]:
    """Those texts that may identify a person."""
    return tuple(Suspicion(text.kind.value, text.text, text.box) for text in texts if text.kind.identifying)


def markers_of(catalogue: Catalogue, image: SourceImage) -> tuple[Text, ...] | None:
    """The laterality and view markers that were read in an image; None where its text was never read."""
    kept = catalogue.reading(image.prepared_sha256)
    if kept is None:
        return None
    return tuple(text for text in texts_from_json(kept[1]) if text.kind is TextKind.MARKER)


def in_prepared(box: Box, geometry: Geometry) -> Box:
    """A box of the original where it lies in the prepared square."""
    across, down = geometry.inner_width / geometry.width, geometry.inner_height / geometry.height
    left, top = round(geometry.left + box.left * across), round(geometry.top + box.top * down)
    return Box(left, top, max(1, round(box.width * across)), max(1, round(box.height * down)))


def texts_to_json(texts: Iterable[Text]) -> str:
    """Texts as JSON: a list of [text, kind, left, top, width, height, confidence]."""
    rows = [[t.text, t.kind.value, t.box.left, t.box.top, t.box.width, t.box.height, t.sure] for t in texts]
    return orjson.dumps(rows).decode()


def texts_from_json(recorded: str) -> tuple[Text, ...]:
    """The inverse of `texts_to_json`."""
    return tuple(
        Text(text, TextKind(kind), Box(left, top, width, height), sure)
        for text, kind, left, top, width, height, sure in orjson.loads(recorded)
    )
