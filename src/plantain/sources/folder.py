"""A folder of images, sorted by label (PATH/<label>/*.jpg, as Med-Banana reads it) or labelled by a table."""

from __future__ import annotations

import hashlib
import os
import shlex
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plantain.files.opening import is_inside, read_regular
from plantain.findings import Taxonomy
from plantain.pixels.decode import one_line
from plantain.records import InputError, SourceImage
from plantain.records.counts import counted
from plantain.records.suggestions import suggest
from plantain.sources.brain_slice import PLANES, STATED, UNKNOWN
from plantain.sources.entries import (
    CLUTTER,
    UNPREPARED,
    Found,
    Refused,
    SourceEntry,
    SourceOptions,
    refused,
    shown,
    walk,
)
from plantain.sources.label_table import NAMES, NO_LABEL, LabelTable, RowLabels
from plantain.sources.registry import Setting, SourceKind, resolve_settings

PICTURES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".png", ".bmp", ".tif", ".tiff", ".webp", ".gif"}
    | {".heic", ".heif", ".avif", ".jp2", ".dcm"}
)
"""Names of images; those that cannot be read are refused with what they are."""

SETTINGS = {
    "plane": Setting(UNKNOWN, (*PLANES, UNKNOWN)),
    "sequence": Setting(UNKNOWN, (*STATED, UNKNOWN)),
}
"""For brain slices of which a table says nothing; other images have none."""

_UNLABELLED = (
    "no label: put it into a folder named like its finding, or list it in a labels.csv beside it "
    "(file,labels[,group,split])"
)
_LINK = "a link that leads out of the folder, or nowhere"


@dataclass(frozen=True, slots=True)
class _File:
    folder: str
    name: str
    path: Path
    row: RowLabels

    @property
    def shown(self) -> str:
        return one_line(f"{self.folder}/{self.name}" if self.folder else self.name)


class FolderReader:
    """Lists PATH/<label>/<image>; a label folder is named like a finding, its case, spaces and underscores aside.

    A table PATH/labels.csv (see `label_table`) labels files anywhere below PATH and overrides label folders. An image's
    id is its file name without ending. Files that share it are one image with several labels if their bytes are the
    same; else all of them get the folder's name (and the ending) into their ids.
    """

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if not options.modality:
            raise InputError(f"--modality: name what the images show: {', '.join(taxonomy.modalities)}")
        self._settings = resolve_settings("folder", SETTINGS, options.settings)
        if options.settings and options.modality != "brain_mri":
            raise InputError(f"--set {min(options.settings)}: for brain_mri only, not for {options.modality}")
        own = taxonomy.of(options.modality)
        self._order = {finding.name: rank for rank, finding in enumerate(own)}
        self._normal = frozenset(finding.name for finding in own if finding.normal)
        if not options.path.is_dir():
            raise InputError(f"{options.path}: not a folder")
        self._options, self._taxonomy = options, taxonomy
        self._root = options.path.resolve()
        below = (shown(path, self._root) for path in walk(self._root) if _is_picture(path))
        self._table = LabelTable(self._root, taxonomy, below, options)
        self._refused: list[Refused] = []
        self._seen: list[str] = []
        self._by_stem: dict[str, list[_File]] = {}
        for file in self._list():
            self._by_stem.setdefault(_clean(Path(file.name).stem), []).append(file)
        self._refused += self._table.rejected(self._seen)

    def count(self) -> int:
        """Return the number of files that `scan` will look at."""
        return sum(len(files) for files in self._by_stem.values()) + len(self._refused)

    def scan(self) -> Iterator[Found]:
        """Yield how the table was understood, what is refused by name or place, then images by their names."""
        if self._table.read is not None:
            yield self._table.read
        yield from self._refused
        for stem in sorted(self._by_stem):
            yield from self._same_stem(stem, self._by_stem[stem])

    def _list(self) -> Iterator[_File]:
        for child in self._children(self._root):
            name = one_line(child.name)
            folder = child.is_dir()
            if self._table.path is not None and child.resolve() == self._table.path.resolve():
                continue
            if child.is_symlink() and not is_inside(child, self._root):
                self._refuse(f"{name}/" if folder else name, _LINK)
            elif folder and self._taxonomy.match_label(self._options.modality, child.name):
                yield from self._label_folder(child)
            elif self._table.path is not None:
                yield from self._in_table(child)
            elif folder:
                hint = suggest(child.name, list(self._order))
                why = f"no {self._options.modality} finding is named like this folder; {hint}"
                if any((child / table).is_file() for table in NAMES):
                    why = "has a table of labels of its own: ingest it by itself"
                self._refuse_folder(child, f"{name}/", why)
            else:
                self._refuse(name, _UNLABELLED if _is_picture(child) else _no_picture(child))

    def _label_folder(self, folder: Path) -> Iterator[_File]:
        for path in self._children(folder):
            name = one_line(f"{folder.name}/{path.name}")
            if path.is_symlink() and not is_inside(path, self._root):
                self._refuse(name, _LINK)
            elif path.is_dir():
                self._refuse_folder(path, f"{name}/", "a folder inside a label folder is not read")
            elif not _is_picture(path):
                self._refuse(name, _no_picture(path))
            else:
                yield from self._with_row(folder.name, path)

    def _in_table(self, place: Path) -> Iterator[_File]:
        """Yield a file beside the label folders, or the files below a folder that is none, that have a row."""
        assert self._table.path is not None
        for path in walk(place) if place.is_dir() else [place]:
            below = path.relative_to(self._root)
            name = one_line(below.as_posix())
            if not _is_picture(path):
                self._refuse(name, _no_picture(path))
            elif not self._table.names(below.as_posix()):
                self._refuse(name, f"has no row in {self._table.path.name}")
            else:
                folder = below.parent.as_posix()
                yield from self._with_row("" if folder == "." else folder, path)

    def _with_row(self, folder: str, path: Path) -> Iterator[_File]:
        name = f"{folder}/{path.name}" if folder else path.name
        self._seen.append(name)
        try:
            yield _File(folder, path.name, path, self._table.of(name, self._options.modality))
        except InputError as error:
            self._refused.append(refused(one_line(name), error))

    def _children(self, folder: Path) -> list[Path]:
        """Return a folder's content in the order of its names as bytes, without hidden files and clutter."""
        try:
            children = [path for path in folder.iterdir() if not path.name.startswith(".")]
        except OSError as error:
            self._refuse(f"{one_line(folder.name)}/", f"cannot be read ({error.strerror})")
            return []
        children = [path for path in children if path.name.lower() not in CLUTTER]
        return sorted(children, key=lambda path: os.fsencode(path.name))

    def _refuse_folder(self, folder: Path, name: str, reason: str) -> None:
        files = sum(_is_picture(Path(file)) for _, _, files in os.walk(folder) for file in files)
        why = f"{reason}; {counted(files, 'picture')} in it" if files else reason
        self._refused.append(Refused(name, why, max(1, files)))

    def _refuse(self, name: str, reason: str) -> None:
        self._refused.append(Refused(name, reason))

    def _same_stem(self, stem: str, files: list[_File]) -> Iterator[SourceEntry | Refused]:
        """Yield one image per different content among files of one stem."""
        if len(files) == 1:
            yield self._entry(stem, files)
            return
        contents: dict[str, list[_File]] = {}
        for file in files:
            try:
                digest = hashlib.sha256(read_regular(file.path, file.shown)).hexdigest()
            except InputError as error:
                yield refused(file.shown, error)
                continue
            contents.setdefault(digest, []).append(file)
        folders = [copies[0].folder for copies in contents.values()]
        for copies in contents.values():
            first = copies[0]
            alone = folders.count(first.folder) == 1
            name = f"{_prefix(first.folder)}{stem if alone else _clean(first.name)}"
            yield self._entry(stem if len(contents) == 1 else name, copies)

    def _entry(self, image_id: str, copies: list[_File]) -> SourceEntry | Refused:
        first = copies[0]
        labels = {label: file for file in copies for label in file.row.labels}
        normal = next((file for label, file in labels.items() if label in self._normal), None)
        other = next((file for label, file in labels.items() if label not in self._normal), None)
        if normal is not None and other is not None:
            return Refused(normal.shown, f"the same picture as {other.shown}: it cannot be normal and not")
        for copy in copies:
            if (copy.row.group, copy.row.split) != (first.row.group, first.row.split):
                why = f"the same picture as {first.shown}, which is of another group or split"
                return Refused(copy.shown, why)
        image = SourceImage(
            id=image_id,
            dataset=_clean(self._root.name),
            modality=self._options.modality,
            labels=tuple(sorted(labels, key=self._order.__getitem__)),
            licence=self._options.licence,
            source_sha256="",
            prepared_sha256="",
            geometry=UNPREPARED,
            group=first.row.group,
            split=first.row.split,
            sequence=first.row.sequence or self._settings["sequence"],
            plane=first.row.plane or self._settings["plane"],
            note="" if labels else NO_LABEL,
        )
        return SourceEntry(image, first.path, first.shown)


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in PICTURES


def _no_picture(path: Path) -> str:
    if path.suffix.lower() in (".csv", ".tsv", ".xlsx"):
        return f"a table; to read labels and patients from it say --table {shlex.quote(path.name)}"
    return "not a picture by its name"


def _clean(name: str) -> str:
    """Return a name as an id: composed Unicode (macOS decomposes it), printable, without undecodable bytes."""
    return one_line(unicodedata.normalize("NFC", name)).strip() or "unnamed"


def _prefix(folder: str) -> str:
    return "_".join(_clean(folder).replace("/", "_").split()) + "_" if folder else ""


KIND = SourceKind(
    "pictures in folders named like a finding, or listed in PATH/labels.csv "
    "(file,labels[,group,split,sequence,plane]); needs --modality",
    FolderReader,
    label_table=True,
    settings=SETTINGS,
)
