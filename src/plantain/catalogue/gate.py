"""The privacy gate of ingest: it reads text, looks for faces, and reports marks that may identify a patient."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.decode import decode
from plantain.privacy.small_text import read_prepared, small_texts
from plantain.privacy.text import Text, TextReader
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

    `reader` is the text reader; None if none is installed or text is not checked.
    """

    reader: TextReader | None

    def check(
        self, entry: SourceEntry, image: SourceImage, pixels: Pixels, prepared: bytes
    ) -> tuple[Suspicion, ...]:
        """Return marks that may identify a patient, with boxes in pixels of the prepared image.

        Args:
            entry, image: entry and complete record of the image.
            pixels: the decoded image in its original size, in which small text is read.
            prepared: the prepared file.
        """
        from plantain.privacy.faces import coloured_scene  # heavy

        geometry = image.geometry
        kinds = [(FACE, box) for box in entry.faces(image, pixels)]
        if image.modality in GREY and coloured_scene(pixels):
            kinds.append((PHOTOGRAPH, Box(0, 0, pixels.shape[1], pixels.shape[0])))
        found = [Suspicion(kind, "", in_prepared(box, geometry)) for kind, box in kinds]
        if self.reader is None:
            return tuple(found)
        texts = self.texts(prepared, image)
        small = suspicious(small_texts(pixels, self.reader, max(geometry.inner_width, geometry.inner_height)))
        moved = [replace(one, box=in_prepared(one.box, geometry)) for one in small]
        found += [one for one in moved if not any(one.box.overlaps(text.box) for text in texts)]
        return (*found, *texts)

    def texts(self, prepared: bytes, image: SourceImage) -> tuple[Suspicion, ...]:
        """Return the text in a prepared image that may identify a patient; () without a reader."""
        if self.reader is None:
            return ()
        return suspicious(read_prepared(decode(prepared), image.geometry, self.reader))


def suspicious(texts: Iterable[Text]) -> tuple[Suspicion, ...]:
    """Return those texts that may identify a patient, as suspicions."""
    return tuple(Suspicion(text.kind.value, text.text, text.box) for text in texts if text.kind.identifying)


def in_prepared(box: Box, geometry: Geometry) -> Box:
    """Convert a box of the original to pixels of the prepared square."""
    across, down = geometry.inner_width / geometry.width, geometry.inner_height / geometry.height
    left, top = round(geometry.left + box.left * across), round(geometry.top + box.top * down)
    return Box(left, top, max(1, round(box.width * across)), max(1, round(box.height * down)))
