"""What a reader of a source hands over: images described, not yet decoded, and files that it refuses."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.decode import decode_planes
from plantain.pixels.encode import encode_prepared
from plantain.pixels.prepare import prepare, settle_grey
from plantain.records import Geometry, Licence, SourceImage
from plantain.sources.columns import Columns

UNPREPARED = Geometry(0, 0, "pad", 0, 0, 0, 0)
"""Geometry of an image that was described but not prepared yet."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a person says about a source on the command line.

    Attributes:
        path: file or folder to read.
        modality: of its images, where the source does not say; "" otherwise.
        licence: what the owner of the images allows.
        settings: choices that only this kind of source knows, see `sources.settings`.
        table: what tells labels and patients, where it is not labels.csv in the source.
        columns: role -> column of that table, where its name does not tell, see `sources.columns`.
    """

    path: Path
    modality: str = ""
    licence: Licence = Licence.UNKNOWN
    settings: Mapping[str, str] = field(default_factory=dict)
    table: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One image that a reader found. `image` lacks only what preparing brings: hashes and geometry.

    Attributes:
        image: what the source says of it; `spacing_mm` is the original's.
        path: the file to read.
        name: how messages and rejected.csv name it, relative to the source.
    """

    image: SourceImage
    path: Path
    name: str

    def decode(self, data: bytes) -> Pixels:
        """The file's bytes as uint8 (H, W, 3), or (H, W) where grey. Runs in a worker thread; raises BadImage."""
        return decode_planes(data, self.name)

    def describe(self, image: SourceImage, pixels: Pixels) -> SourceImage:
        """The record with what only the decoded pixels tell. Runs in a worker thread; by default nothing is added."""
        return image

    def faces(self, image: SourceImage, pixels: Pixels) -> tuple[Box, ...]:
        """Where the decoded pixels show a face; by default as in photographs. Runs in a worker thread.

        Args:
            image: the record as `describe` left it.
            pixels: what `decode` returned.
        """
        from plantain.privacy.faces import photographed_faces  # heavy, and only the gate asks

        return photographed_faces(pixels)


@dataclass(frozen=True, slots=True)
class Refused:
    """A file, folder or row that the reader leaves out, and why, in one line; `files` is how many that leaves out."""

    name: str
    reason: str
    files: int = 1


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many images of a source were not asked for (lateral views, surplus over a cap), and why.

    They are counted, not listed: nothing is wrong with them, and there may be a hundred thousand.
    """

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class TableRead:
    """How a person's table was understood.

    Attributes:
        name: of the table.
        columns: which column tells what.
        files: pictures that have a row.
        grouped: those of them whose group is told.
        groups: how many groups they are.
    """

    name: str
    columns: Columns
    files: int
    grouped: int
    groups: int


Found = SourceEntry | Refused | LeftOut | TableRead


class Reader(Protocol):
    """One kind of source. `scan` is cheap: it lists and describes, and decodes nothing."""

    def count(self) -> int | None:
        """Number of images that `scan` will yield, for a progress bar; None where counting would cost a scan."""
        ...

    def scan(self) -> Iterator[Found]:
        """Every image of the source once, in an order that depends on the source alone."""
        ...


def finish(
    image: SourceImage, pixels: Pixels, side: int = 1024, mode: str = "pad"
) -> tuple[SourceImage, bytes]:
    """Prepares a decoded image, (H, W, 3) or (H, W), and completes its record: the record, and the bytes to keep."""
    prepared, geometry = prepare(pixels, side, mode)
    prepared = settle_grey(prepared) if prepared.ndim == 3 else np.repeat(prepared[:, :, None], 3, axis=2)
    data = encode_prepared(prepared, synthetic=image.synthetic)
    complete = replace(
        image,
        geometry=geometry,
        prepared_sha256=hashlib.sha256(data).hexdigest(),
        spacing_mm=_spacing(image.spacing_mm, geometry),
    )
    return complete, data


def _spacing(original_mm: float | None, geometry: Geometry) -> float | None:
    """Millimetres per prepared pixel; unknown where the stretch differs between the two directions."""
    if original_mm is None:
        return None
    across, down = geometry.width / geometry.inner_width, geometry.height / geometry.inner_height
    return round(original_mm * across, 6) if abs(across - down) < 0.01 * across else None


def __getattr__(name: str) -> object:
    """`Entry`, as the first edition called what a reader yields."""
    if name != "Entry":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("plantain.sources.entries.Entry is now SourceEntry", DeprecationWarning, stacklevel=2)
    return SourceEntry
