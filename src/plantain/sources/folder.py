"""A folder of images, sorted by label (PATH/<label>/*.jpg, as Med-Banana reads it) or labelled by a table."""

from __future__ import annotations

import hashlib
import shlex
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.files.opening import read_regular
from plantain.findings import Taxonomy
from plantain.pixels.decode import grey_bits, one_line
from plantain.records import InputError, SourceImage
from plantain.records.messages import suggest
from plantain.sources.brain_slice import PLANES, STATED, UNKNOWN
from plantain.sources.label_table import MASK, NO_LABEL, LabelTable, RowLabels
from plantain.sources.registry import (
    UNREAD,
    Found,
    Refused,
    Setting,
    SourceEntry,
    SourceKind,
    SourceOptions,
    refused,
    resolve_settings,
    shown,
    walk,
)

IMAGE_ENDINGS = frozenset(
    {".jpg", ".jpeg", ".jpe", ".png", ".bmp", ".tif", ".tiff", ".webp", ".gif"}
    | {".heic", ".heif", ".avif", ".jp2", ".dcm"}
)
"""Endings of images; unreadable kinds are refused by name."""

SETTINGS = {"plane": Setting(UNKNOWN, (*PLANES, UNKNOWN)), "sequence": Setting(UNKNOWN, (*STATED, UNKNOWN))}
"""Of brain slices for which a table states none."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """One image file with a label, or a row in the table; `name` is its path relative to the source."""

    path: Path
    name: str
    row: RowLabels

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def stem(self) -> str:
        return _clean(self.path.stem)


class FolderReader:
    """A reader of the images below a folder; labels come from a table or from the nearest folder named like a finding.

    A table PATH/labels.csv (see `label_table`) overrides label folders. An image's id is its file name without ending.
    Files with the same name are one image with several labels if their bytes are equal; otherwise folder names (and
    endings) are added to their ids.
    """

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if not options.modality:
            raise InputError(f"--modality: name the modality of the images: {', '.join(taxonomy.modalities)}")
        self._settings = resolve_settings("folder", SETTINGS, options.settings)
        if options.settings and options.modality != "brain_mri":
            raise InputError(f"--set {min(options.settings)}: for brain_mri only, not for {options.modality}")
        self._read(options, taxonomy, options.modality)

    def _read(self, options: SourceOptions, taxonomy: Taxonomy, modality: str) -> None:
        own = taxonomy.of(modality)
        self._order = {finding.name: rank for rank, finding in enumerate(own)}
        self._normal = frozenset(finding.name for finding in own if finding.normal)
        self._options, self._taxonomy, self._modality = options, taxonomy, modality
        self._refused: list[Refused] = []
        self._root = options.path.resolve()
        paths = list(walk(self._root, leads_out=self._refuse_link))
        images = [shown(path, self._root) for path in paths if _is_image(path)]
        self._table = LabelTable(self._root, taxonomy, images, options)
        self._files: list[ImageFile] = []
        for path in paths:
            name = shown(path, self._root)
            try:
                if _is_image(path):
                    self._files.append(ImageFile(path, name, self.row(name)))
                elif self._table.path is None or path != self._table.path.resolve():
                    self._refused.append(Refused(one_line(name), _not_image(path)))
            except InputError as error:
                self._refused.append(refused(one_line(name), error))
        self._refused += self._table.rejected(images)

    def _refuse_link(self, path: Path) -> None:
        name = one_line(shown(path, self._root))
        self._refused.append(Refused(name, "a link that leads out of the folder, to a folder, or nowhere"))

    def row(self, name: str) -> RowLabels:
        """Return labels and further fields of a file. Raise InputError if it has neither a label nor a row."""
        row, listed = self._table.of(name, self._modality), self._table.names(name)
        if not listed and MASK.search(name):
            raise InputError(
                "a mask or label map by its name; an image of this name needs a row in labels.csv"
            )
        if row.labels or listed:
            return row
        if self._table.path is not None:
            raise InputError(f"has no row in {self._table.path.name}")
        folder = name.rpartition("/")[0].rpartition("/")[2]
        hint = f" ({suggest(folder, list(self._order))})" if folder else ""
        raise InputError(
            f"no label: put it into a folder named like its {self._modality} finding{hint}, or list it in a labels.csv "
            "next to it (file,labels[,group,split])"
        )

    def count(self) -> int:
        """Return the number of files that `scan` will read."""
        return len(self._files) + len(self._refused)

    def scan(self) -> Iterator[Found]:
        """Yield the `TableRead` if there is a table, files refused by name or place, then images by name."""
        if self._table.read is not None:
            yield self._table.read
        yield from self._refused
        images: list[list[ImageFile]] = []
        for alike in self._alike().values():
            contents: dict[str, list[ImageFile]] = {}
            for file in alike:
                try:
                    alone = len(alike) == 1
                    digest = "" if alone else hashlib.sha256(read_regular(file.path, file.name)).hexdigest()
                except InputError as error:
                    yield refused(one_line(file.name), error)
                    continue
                contents.setdefault(digest, []).append(file)
            images += contents.values()
        stems = Counter(copies[0].stem for copies in images)
        places = Counter((copies[0].folder, copies[0].stem) for copies in images)
        bits = self._bits(copies[0] for copies in images)
        for copies in sorted(images, key=lambda copies: (copies[0].stem, copies[0].name)):
            first = copies[0]
            unique = stems[first.stem] == 1
            name = first.stem if places[first.folder, first.stem] == 1 else _clean(first.path.name)
            image_id = name if unique else f"{_prefix(first.folder)}{name}"
            for item in self._image(image_id, copies):
                depth = bits.get(_series(first), 0)
                yield replace(item, bits=depth) if isinstance(item, SourceEntry) else item

    def _bits(self, files: Iterable[ImageFile]) -> dict[object, int]:
        """Return the bits in use of 16-bit slices by series, so that they keep their relation; images are decoded."""
        found: dict[object, int] = {}
        for file in files if self._modality == "brain_mri" else ():
            if file.path.suffix.lower() in (".png", ".tif", ".tiff"):
                try:
                    bits = grey_bits(read_regular(file.path, file.name), file.name)
                except InputError:
                    continue  # refused when it is decoded
                found[_series(file)] = max(bits, found.get(_series(file), 0))
        return found

    def _alike(self) -> Mapping[object, list[ImageFile]]:
        """Return files that may be the same image, and are compared by their bytes: those that share a name."""
        found: dict[object, list[ImageFile]] = {}
        for file in self._files:
            found.setdefault(file.stem, []).append(file)
        return found

    def _image(self, image_id: str, copies: list[ImageFile]) -> Iterator[SourceEntry | Refused]:
        """Yield the image of files with the same bytes, or why it is refused."""
        first = copies[0]
        labels = {label: file for file in copies for label in file.row.labels}
        normal = next((file for label, file in labels.items() if label in self._normal), None)
        other = next((file for label, file in labels.items() if label not in self._normal), None)
        if normal is not None and other is not None:
            why = f"the same image as {one_line(other.name)}: it cannot be normal and not"
            yield Refused(one_line(normal.name), why)
            return
        for copy in copies:
            if (copy.row.group, copy.row.split) != (first.row.group, first.row.split):
                why = f"the same image as {one_line(first.name)}, which is of another group or split"
                yield Refused(one_line(copy.name), why)
                return
        image = SourceImage(
            id=image_id,
            dataset=_clean(self._root.name),
            modality=self._modality,
            labels=tuple(sorted(labels, key=self._order.__getitem__)),
            licence=self._options.licence,
            **UNREAD,
            group=first.row.group,
            split=first.row.split,
            sequence=first.row.sequence or self._settings["sequence"],
            plane=first.row.plane or self._settings["plane"],
            note="" if labels else NO_LABEL,
        )
        yield SourceEntry(image, first.path, one_line(first.name))


def _series(file: ImageFile) -> object:
    """Return what slices of one volume share: folder, name without the number at its end, patient and sequence."""
    name = file.stem.rstrip("0123456789")
    return file.folder, name if name != file.stem else file.path, file.row.group, file.row.sequence


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_ENDINGS


def _not_image(path: Path) -> str:
    if path.suffix.lower() in (".csv", ".tsv", ".xlsx"):
        return f"a table; to read labels and patients from it use --table {shlex.quote(path.name)}"
    return "not an image by its name"


def _clean(name: str) -> str:
    """Return a name as an id: composed Unicode (macOS decomposes it), printable, without undecodable bytes."""
    return one_line(unicodedata.normalize("NFC", name)).strip() or "unnamed"


def _prefix(folder: str) -> str:
    return "_".join(_clean(folder).replace("/", "_").split()) + "_" if folder else ""


KIND = SourceKind(
    "images in folders named like a finding, or listed in PATH/labels.csv "
    "(file,labels[,group,split,sequence,plane]); needs --modality",
    FolderReader,
    label_table=True,
    settings=SETTINGS,
)
