"""One file of a source decoded, prepared and looked at: in a thread here, or on a worker of an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plantain.catalogue.gate import NoReadings, PrivacyGate, Suspicion, suspicious
from plantain.engines.repeating import EngineThread
from plantain.pixels.likeness import likeness
from plantain.privacy.text import Text
from plantain.privacy.text_reader import reader_named
from plantain.records import SourceImage
from plantain.sources.entries import Refused, SourceEntry, finish

MIN_SIDE = 32
"""Smallest side in pixels of an image worth editing."""

ROLE = "ingest"


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """A file's prepared image; without bytes where the catalogue holds the file's already."""

    entry: SourceEntry
    image: SourceImage
    data: bytes | None
    code: bytes = b""
    texts: tuple[Text, ...] | None = None
    seen: tuple[Suspicion, ...] = ()
    """Faces, and letters too small for the prepared image."""

    @property
    def found(self) -> tuple[Suspicion, ...]:
        """What may identify a person."""
        return (*self.seen, *suspicious(self.texts or ()))


@dataclass(frozen=True, slots=True)
class Preparing:
    """How files are prepared: `mode` and `side` as in `pixels.prepare`; `gate` None looks for nothing."""

    mode: str
    side: int
    gate: PrivacyGate | None

    def here(self, entry: SourceEntry, image: SourceImage, data: bytes) -> PreparedFile | Refused:
        """In this thread. Raises InputError for a file that cannot be read."""
        pixels = entry.decode(data)
        height, width = pixels.shape[:2]
        if min(width, height) < MIN_SIDE:
            return Refused(entry.name, f"{width}x{height} pixels; each side must have at least {MIN_SIDE}")
        image = entry.describe(image, pixels)
        image, prepared = finish(image, pixels, self.side, self.mode)
        done = PreparedFile(entry, image, prepared, likeness(pixels))
        if self.gate is None:
            return done
        texts = self.gate.texts(prepared, image)
        seen = (*self.gate.faces(entry, image, pixels), *self.gate.small(image, pixels, texts))
        return replace(done, image=replace(image, text_checked=texts is not None), texts=texts, seen=seen)

    def on(
        self, engine: EngineThread, entry: SourceEntry, image: SourceImage, data: bytes
    ) -> PreparedFile | Refused:
        """The same on a worker; here where no worker has the gate's reader of text. Blocks; raises the same."""
        reads = self.gate.reader.name if self.gate is not None and self.gate.reader is not None else ""
        made = engine.run(
            ROLE, prepared_there, self.mode, self.side, self.gate is not None, reads, entry, image, data
        )
        return self.here(entry, image, data) if made is None else made


def prepared_there(
    mode: str, side: int, gated: bool, reads: str, entry: SourceEntry, image: SourceImage, data: bytes
) -> PreparedFile | Refused | None:
    """`Preparing.here` on a worker; None where it has not the reader of text of that name."""
    reader = reader_named(reads) if reads else None
    if reads and reader is None:
        return None
    gate = PrivacyGate(NoReadings(), reader) if gated else None
    return Preparing(mode, side, gate).here(entry, image, data)
