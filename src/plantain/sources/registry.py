"""The interface of sources: the kinds, ours and those of other packages, their settings, and their readers.

A reader yields described images, not yet decoded, and refused files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from plantain.files.installed import entry_named, installed, load_entry
from plantain.files.opening import is_inside, is_system_file
from plantain.findings import Taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.decode import decode_planes
from plantain.pixels.encode import encode_prepared, prepare, settle_grey
from plantain.records import Geometry, InputError, Licence, SourceImage
from plantain.records.messages import suggest
from plantain.sources.columns import Columns

UNPREPARED = Geometry(0, 0, "pad", 0, 0, 0, 0)
"""Geometry of an image that is described but not prepared."""

UNREAD: dict[str, Any] = {"source_sha256": "", "prepared_sha256": "", "geometry": UNPREPARED}
"""Fields of an image whose file has not been read."""

STUDY_GROUP = "study:"
"""Prefix of the group of an image with a known study and an unknown patient."""

LOCALIZER, MOSAIC, SHARES = "a localizer", "a mosaic of slices", "values from 0 to 1, as in a probability map"
DOUBTFUL = frozenset({LOCALIZER, MOSAIC, SHARES})
"""Notes on images that may not be suited to editing."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A user's options for reading a source.

    Attributes:
        path: file or folder to read.
        modality: modality of the images; "" if the source states it.
        licence: licence of the images, by their owner.
        settings: values of settings of this kind of source, by name, see `Setting`; others have their defaults.
        table: table of labels and patients; None for labels.csv in the source, if there is one.
        columns: name of the table's column by role ("file", "labels", "group", ...), where its name does not show it.
    """

    path: Path
    modality: str = ""
    licence: Licence = Licence.UNKNOWN
    settings: Mapping[str, str] = field(default_factory=dict)
    table: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One image that a reader found, not decoded yet.

    Attributes:
        image: its record with empty hashes and the geometry `UNPREPARED`; `spacing_mm` is the original's, horizontally.
        path: the file to read.
        name: the file's name in messages and rejected.csv, relative to the source.
        aspect: height of a decoded pixel over its width.
        bits: bits in use (8 to 16) from which 16-bit grey is scaled to 8, the same for all slices of a volume; 0: those
            in use in the image itself.
    """

    image: SourceImage
    path: Path
    name: str
    aspect: float = field(default=1.0, kw_only=True)
    bits: int = field(default=0, kw_only=True)

    def decode(self, data: bytes) -> Pixels:
        """Decode the file's bytes to uint8 (H, W, 3) RGB or (H, W) grey. Called in a worker thread. Raise BadImage."""
        return decode_planes(data, self.name, self.bits)

    def describe(self, image: SourceImage, pixels: Pixels) -> SourceImage:
        """Return the record with fields set from the decoded pixels; default: unchanged. Called in a worker thread."""
        return image

    def faces(self, image: SourceImage, pixels: Pixels) -> tuple[Box, ...]:
        """Return boxes of faces in the pixels: photographed faces, unless overridden. Called in a worker thread."""
        from plantain.privacy.faces import photographed_faces  # heavy, and only the gate asks

        return photographed_faces(pixels)


@dataclass(frozen=True, slots=True)
class Refused:
    """A file, folder or row that the reader rejects.

    Attributes:
        name: name of the file, folder or table.
        reason: the reason in one line.
        files: number of files that are rejected with it.
        row, field: line (from 1) and column at fault in a table; 0 and "" if there is none.
    """

    name: str
    reason: str
    files: int = 1
    row: int = 0
    field: str = ""


class BadRow(InputError):
    """Raised for a table's row that cannot be used, with its line and field."""

    def __init__(self, message: str, row: int, field: str) -> None:
        super().__init__(message)
        self.row, self.field = row, field


def refused(name: str, error: InputError) -> Refused:
    """Make the rejection of a file for an error, with row and field if the error is a `BadRow`."""
    row, field = (error.row, error.field) if isinstance(error, BadRow) else (0, "")
    return Refused(name, str(error).removeprefix(f"{name}: "), row=row, field=field)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The number of a source's images that its settings exclude, e.g. lateral views, and the reason in one line."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table of labels as it was read: which columns were used, and for how many images.

    Attributes:
        name: name of the table's file.
        columns: names of the used columns by role.
        files: number of images with a row.
        grouped: number of these whose row states a group (patient or study); `groups` is the number of groups.
    """

    name: str
    columns: Columns
    files: int
    grouped: int
    groups: int


Found = SourceEntry | Refused | LeftOut | TableRead


class Reader(Protocol):
    """The interface of readers, each of one source: `scan` lists and describes its images without decoding them."""

    def count(self) -> int | None:
        """Return the number of images and rejections of `scan`, for a progress bar; None if counting costs a scan."""
        ...

    def scan(self) -> Iterator[Found]:
        """Yield every image once, each rejection and exclusion, and each table read, in a reproducible order."""
        ...


def walk(root: Path, *, leads_out: Callable[[Path], None] = lambda _: None) -> Iterator[Path]:
    """Yield every file below a folder, sorted by names as bytes, without hidden and system files.

    Args:
        root: the folder; folders more than 100 levels below it are not read.
        leads_out: called with each link that is broken or leads out of the folder; such links are not followed.

    Raises:
        InputError: the root is not a readable folder.
    """
    if not root.is_dir():
        raise InputError(f"{root}: not a folder")
    for folder, folders, files in os.walk(root, onerror=_stop):
        here = Path(folder)
        if len(here.relative_to(root).parts) >= 100:
            folders.clear()
        folders[:] = sorted((name for name in folders if not _is_left_out(name)), key=os.fsencode)
        for link in (here / name for name in folders if (here / name).is_symlink()):
            leads_out(link)
        for name in sorted(files, key=os.fsencode):
            path = here / name
            if _is_left_out(name):
                continue
            if not path.is_symlink() or is_inside(path, root):
                yield path
            else:
                leads_out(path)


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or is_system_file(name)


def _stop(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error


def shown(path: Path, root: Path) -> str:
    """Return a file's name for messages: relative to its source, with forward slashes."""
    return path.relative_to(root).as_posix()


def finish(
    image: SourceImage, pixels: Pixels, side: int = 1024, aspect: float = 1.0
) -> tuple[SourceImage, bytes]:
    """Prepare decoded pixels, uint8 (H, W, 3) or (H, W); return the complete record and a JPEG of `side` pixels.

    `aspect` is the height of a pixel over its width.
    """
    prepared, geometry = prepare(pixels, side, aspect)
    prepared = settle_grey(prepared) if prepared.ndim == 3 else np.repeat(prepared[:, :, None], 3, axis=2)
    data = encode_prepared(prepared, synthetic=image.synthetic)
    complete = replace(
        image,
        geometry=geometry,
        prepared_sha256=hashlib.sha256(data).hexdigest(),
        spacing_mm=_spacing(image.spacing_mm, aspect, geometry),
    )
    return complete, data


def _spacing(original_mm: float | None, aspect: float, geometry: Geometry) -> float | None:
    """Return millimetres per prepared pixel; None if the scale differs between the two directions."""
    if original_mm is None:
        return None
    across, down = geometry.width / geometry.inner_width, aspect * geometry.height / geometry.inner_height
    return round(original_mm * across, 6) if abs(across - down) < 0.01 * across else None


GROUP = "plantain.sources"
"""Entry point group: name = kind, value = "package.module:KIND", a `SourceKind`."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of one kind of source: its default, and the allowed values; () allows any text."""

    default: str
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of source, such as a folder or MIMIC-CXR, and how to open it.

    Attributes:
        summary: one line for `plantain ingest --list`.
        open: function that makes the reader; raises InputError if path or options do not fit.
        dataset: name of the dataset if this kind reads only one; "" otherwise.
        label_table: True if labels may come from a table (default PATH/labels.csv), even one added after an ingest.
        settings: its settings by name, given as `--set name=value`; other names and values are errors.
    """

    summary: str
    open: Callable[[SourceOptions, Taxonomy], Reader]
    dataset: str = ""
    label_table: bool = False
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def reader(self, name: str, options: SourceOptions, taxonomy: Taxonomy) -> Reader:
        """Check the settings and open a source; return its reader. InputError if path, options or settings do not fit.

        `name` is the name of the kind, for messages.
        """
        resolve_settings(name, self.settings, options.settings)
        return self.open(options, taxonomy)


def kinds() -> dict[str, str]:
    """Return the summary of every kind of source by name, or "unusable: REASON"."""
    summaries: dict[str, str] = {}
    for name in installed(GROUP):
        try:
            summaries[name] = load(name).summary
        except InputError as error:
            summaries[name] = f"unusable: {error}"
    return summaries


def load(name: str) -> SourceKind:
    """Return the kind of source of that name. Raise InputError if it is unknown or cannot be imported."""
    kind = load_entry(entry_named(GROUP, name, "kind"), "kind")
    if not isinstance(kind, SourceKind):
        raise InputError(f"kind {name!r}: its entry point is not a plantain.sources.registry.SourceKind")
    return kind


def resolve_settings(kind: str, known: Mapping[str, Setting], given: Mapping[str, str]) -> dict[str, str]:
    """Return every setting with its given or default value. Raise InputError for an unknown name or value."""
    for name, value in given.items():
        if name not in known:
            hint = suggest(name, sorted(known)) if known else "it has none"
            raise InputError(f"--set {name}: {kind} has no such setting; {hint}")
        allowed = known[name].allowed
        if allowed and value not in allowed:
            raise InputError(f"--set {name}={value}: {suggest(value, allowed)}")
    return {name: given.get(name, setting.default) for name, setting in known.items()}


def whole_number(name: str, value: str, least: int = 0) -> int:
    """Parse a setting's text as an integer. Raise InputError unless it is one of at least `least`."""
    if not (value.isascii() and value.isdigit()) or len(value) > 9 or int(value) < least:
        raise InputError(f"--set {name}={value}: a whole number of at least {least} is needed")
    return int(value)
