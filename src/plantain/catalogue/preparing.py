"""Decode, prepare and check one file of a source, in a thread or on a worker of an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plantain.catalogue.gate import PrivacyGate, Suspicion
from plantain.pixels.decode import colour_note
from plantain.pixels.likeness import likeness
from plantain.privacy.rapid_text import reader_named
from plantain.records import SourceImage
from plantain.sources.registry import Refused, SourceEntry, finish

MIN_SIDE = 32
"""Smallest side in pixels of an image that is taken."""

ROLE = "ingest"


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """A file's prepared image, and the results of the privacy checks.

    Attributes:
        data: bytes of the prepared file; None if the catalogue contains it already.
        code: its 256-bit code, see `pixels.likeness`.
        found: marks that may identify a patient.
    """

    entry: SourceEntry
    image: SourceImage
    data: bytes | None
    code: bytes = b""
    found: tuple[Suspicion, ...] = ()


def prepare_file(
    entry: SourceEntry, image: SourceImage, data: bytes, gate: PrivacyGate | None
) -> PreparedFile | Refused:
    """Decode, prepare and check a file; return Refused if it is too small. Raise InputError if it is unreadable.

    Args:
        entry, image, data: the file's entry, record and bytes.
        gate: check for text and faces; None for no check.
    """
    pixels = entry.decode(data)
    height, width = pixels.shape[:2]
    if min(width, height) < MIN_SIDE:
        return Refused(entry.name, f"{width}x{height} pixels; each side must have at least {MIN_SIDE}")
    image = entry.describe(image, pixels)
    image = replace(image, note="; ".join(filter(None, (image.note, colour_note(data)))))
    image, prepared = finish(image, pixels, aspect=entry.aspect)
    done = PreparedFile(entry, image, prepared, likeness(pixels))
    if gate is None:
        return done
    image = replace(image, text_checked=gate.reader is not None)
    return replace(done, image=image, found=gate.check(entry, image, pixels, prepared))


def prepared_there(
    entry: SourceEntry, image: SourceImage, data: bytes, gated: bool, reads: str
) -> PreparedFile | Refused | None:
    """Prepare a file on a worker; return None if it has no text reader named `reads` ("" reads no text)."""
    reader = reader_named(reads) if reads else None
    if reads and reader is None:
        return None
    return prepare_file(entry, image, data, PrivacyGate(reader) if gated else None)
