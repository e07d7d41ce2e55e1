"""The privacy gate of ingest: it reads text, looks for faces, and reports marks that may identify a patient."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from plantain.catalogue.store import Catalogue
from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.decode import decode
from plantain.privacy.small_text import read_prepared, small_texts
from plantain.privacy.text import Text, TextReader, texts_from_json, texts_to_json
from plantain.records import Geometry, SourceImage
from plantain.sources.registry import SourceEntry

FACE, PHOTOGRAPH = "face", "photograph"

GREY = frozenset({"chest_xray", "brain_mri"})
"""Modalities without colour: a coloured image among them is something else."""


@dataclass(frozen=True, slots=True, order=True)
class Suspicion:
    """Something in a prepared image that may identify a patient.

    Attributes:
        kind: "face"; "photograph" for a coloured scene among radiographs or slices; or the kind of the text (date,
            number, name, other).
        text: the text as read; "" for a face.
        box: its box in pixels of the prepared image.
    """

    kind: str
    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class PrivacyGate:
    """A check of images for text and faces that may identify a patient; thread-safe.

    Attributes:
        readings: store of the text read, so that each image is read once; None on a worker.
        reader: the text reader; None if none is installed or text is not checked.
    """

    readings: Catalogue | None
    reader: TextReader | None

    def texts(self, data: bytes, image: SourceImage) -> tuple[Text, ...] | None:
        """Return the text in a prepared image, as recorded before or read now; None without a reader."""
        if self.reader is None:
            return None
        kept = self.readings.reading(image.prepared_sha256) if self.readings else None
        if kept is not None and kept[0] == self.reader.name:
            return texts_from_json(kept[1])
        return read_prepared(decode(data), image.geometry, self.reader)

    def faces(self, entry: SourceEntry, image: SourceImage, pixels: Pixels) -> tuple[Suspicion, ...]:
        """Detect faces in a decoded image, and photographs among grey images; boxes refer to the prepared image."""
        from plantain.privacy.faces import coloured_scene  # heavy

        kinds = [(FACE, box) for box in entry.faces(image, pixels)]
        if image.modality in GREY and coloured_scene(pixels):
            kinds.append((PHOTOGRAPH, Box(0, 0, pixels.shape[1], pixels.shape[0])))
        return tuple(Suspicion(kind, "", in_prepared(box, image.geometry)) for kind, box in kinds)

    def small(
        self, image: SourceImage, pixels: Pixels, texts: Iterable[Text] | None
    ) -> tuple[Suspicion, ...]:
        """Read text in a decoded image that is illegible in the prepared one; boxes refer to the prepared image.

        Args:
            image: complete record of the image.
            pixels: the decoded image in its original size.
            texts: text read in the prepared image, which is not reported again; None if no text is read.
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
        """Store the text read in an image; call it from the thread that adds to the catalogue."""
        assert self.reader is not None and self.readings is not None
        self.readings.remember_reading(image.prepared_sha256, self.reader.name, texts_to_json(texts))


def suspicious(texts: Iterable[Text]) -> tuple[Suspicion, ...]:
    """Return those texts that may identify a patient, as suspicions."""
    return tuple(Suspicion(text.kind.value, text.text, text.box) for text in texts if text.kind.identifying)


def in_prepared(box: Box, geometry: Geometry) -> Box:
    """Convert a box of the original to pixels of the prepared square."""
    across, down = geometry.inner_width / geometry.width, geometry.inner_height / geometry.height
    left, top = round(geometry.left + box.left * across), round(geometry.top + box.top * down)
    return Box(left, top, max(1, round(box.width * across)), max(1, round(box.height * down)))
