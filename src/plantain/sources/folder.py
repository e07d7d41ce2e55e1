"""A folder of pictures, sorted by label (PATH/<label>/*.jpg, as Med-Banana reads it) or told by a labels.csv."""

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
from plantain.sources.entries import UNPREPARED, Found, Refused, SourceEntry, SourceOptions
from plantain.sources.label_table import NAMES, NO_LABEL, LabelTable, RowLabels
from plantain.sources.places import CLUTTER, walk
from plantain.sources.places import shown as relative
from plantain.sources.registry import SourceKind
from plantain.sources.settings import Setting, resolve_settings

PICTURES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".png", ".bmp", ".tif", ".tiff", ".webp", ".gif"}
    | {".heic", ".heif", ".avif", ".jp2", ".dcm"}
)
"""Names that claim to be a picture; those that we cannot read are refused with what they are."""

SETTINGS = {
    "plane": Setting(UNKNOWN, (*PLANES, UNKNOWN)),
    "sequence": Setting(UNKNOWN, (*STATED, UNKNOWN)),
}
"""Of brain slices: the word of whoever ingests, for each image of which a table says nothing; others have none."""

_UNLABELLED = (
    "no label: put it into a folder named like its finding, or list it in a labels.csv beside it "
    "(file,labels[,group,split])"
)


@dataclass(frozen=True, slots=True)
class _File:
    folder: str
    name: str
    path: Path
    row: RowLabels

    @property
    def shown(self) -> str:
        return one_line(f"{self.folder}/{self.name}" if self.folder else self.name)

    @property
    def stem(self) -> str:
        return _clean(Path(self.name).stem)


class FolderReader:
    """Lists PATH/<label>/<picture>; a label folder is named like a finding, its case, spaces and underscores aside.

    A table PATH/labels.csv (see `label_table`) tells labels, groups and splits of files that lie anywhere below PATH,
    and of brain slices sequence and plane; for a file in a label folder, what it says comes first.

    An image's id is its file name without ending. Files that share it are one image with several labels
    when their bytes are the same, else all of them get the folder's name (and the ending) into their ids.
    """

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if not options.modality:
            raise InputError(f"--modality: say what the pictures show: {', '.join(taxonomy.modalities)}")
        self._stated = resolve_settings("folder", SETTINGS, options.settings)
        if options.settings and options.modality != "brain_mri":
            raise InputError(
                f"--set {min(options.settings)}: says something of brain_mri only, not of {options.modality}"
            )
        own = taxonomy.of(options.modality)
        self._order = {finding.name: rank for rank, finding in enumerate(own)}
        self._normal = frozenset(finding.name for finding in own if finding.normal)
        if not options.path.is_dir():
            raise InputError(f"{options.path}: not a folder")
        self._options = options
        self._taxonomy = taxonomy
        self._root = options.path.resolve()
        self._table = LabelTable(self._root, taxonomy, _pictures_below(self._root), options)
        self._refused: list[Refused] = []
        self._seen: list[str] = []
        self._by_stem: dict[str, list[_File]] = {}
        for file in self._list():
            self._by_stem.setdefault(file.stem, []).append(file)

    def count(self) -> int:
        """Number of files that `scan` will look at."""
        return sum(len(files) for files in self._by_stem.values()) + len(self._refused)

    def scan(self) -> Iterator[Found]:
        """How the table was understood; files refused by name or place; then images in order of their ids' stems."""
        if self._table.read is not None:
            yield self._table.read
        yield from self._refused
        for stem in sorted(self._by_stem):
            yield from self._same_stem(stem, self._by_stem[stem])

    def _list(self) -> Iterator[_File]:
        for child in self._children(self._root):
            shown = one_line(child.name)
            folder = child.is_dir()
            if self._table.path is not None and child.resolve() == self._table.path.resolve():
                continue
            if child.is_symlink() and not is_inside(child, self._root):
                self._refuse(
                    f"{shown}/" if folder else shown, "a link that leads out of the folder, or nowhere"
                )
            elif folder and self._taxonomy.match_label(self._options.modality, child.name):
                yield from self._pictures(child)
            elif self._table.path is not None:
                yield from self._listed_in_table(child)
            elif folder:
                hint = suggest(child.name, list(self._order))
                why = f"no {self._options.modality} finding is named like this folder; {hint}"
                if any((child / name).is_file() for name in NAMES):
                    why = "has a table of labels of its own: ingest it by itself"
                self._refuse_folder(child, f"{shown}/", why)
            else:
                self._refuse(shown, _UNLABELLED if _is_picture(child) else _no_picture(child))
        self._refused += self._table.without(self._seen)

    def _pictures(self, folder: Path) -> Iterator[_File]:
        """What lies in a label folder."""
        for path in self._children(folder):
            shown = one_line(f"{folder.name}/{path.name}")
            if path.is_symlink() and not is_inside(path, self._root):
                self._refuse(shown, "a link that leads out of the folder, or nowhere")
            elif path.is_dir():
                self._refuse_folder(path, f"{shown}/", "a folder inside a label folder is not read")
            elif not _is_picture(path):
                self._refuse(shown, _no_picture(path))
            else:
                yield from self._with_row(folder.name, path)

    def _listed_in_table(self, place: Path) -> Iterator[_File]:
        """A file beside the label folders, or what lies below a folder that is none."""
        for path in walk(place) if place.is_dir() else [place]:
            below = path.relative_to(self._root)
            shown = one_line(below.as_posix())
            if path.name.lower() in CLUTTER:
                continue
            if not _is_picture(path):
                self._refuse(shown, _no_picture(path))
            elif not self._table.names(below.as_posix()):
                self._refuse(shown, f"has no row in {self._table.path.name if self._table.path else ''}")
            else:
                folder = below.parent.as_posix()
                yield from self._with_row("" if folder == "." else folder, path)

    def _with_row(self, folder: str, path: Path) -> Iterator[_File]:
        name = f"{folder}/{path.name}" if folder else path.name
        self._seen.append(name)
        try:
            yield _File(folder, path.name, path, self._table.of(name, self._options.modality))
        except InputError as error:
            self._refuse(one_line(name), str(error).removeprefix(f"{name}: "))

    def _children(self, folder: Path) -> list[Path]:
        """A folder's content in order of its names as bytes, which no locale changes; hidden files left out."""
        try:
            children = [path for path in folder.iterdir() if not path.name.startswith(".")]
        except OSError as error:
            self._refuse(f"{one_line(folder.name)}/", f"cannot be read ({error.strerror})")
            return []
        children = [path for path in children if path.name.lower() not in CLUTTER]
        return sorted(children, key=lambda path: os.fsencode(path.name))

    def _refuse_folder(self, folder: Path, name: str, reason: str) -> None:
        """A folder that is not read, with the number of pictures that this leaves out."""
        files = sum(
            Path(file).suffix.lower() in PICTURES for _, _, files in os.walk(folder) for file in files
        )
        why = f"{reason}; {counted(files, 'picture')} in it" if files else reason
        self._refused.append(Refused(name, why, max(1, files)))

    def _refuse(self, name: str, reason: str) -> None:
        self._refused.append(Refused(name, reason))

    def _same_stem(self, stem: str, files: list[_File]) -> Iterator[SourceEntry | Refused]:
        """One image per different content among files of one stem."""
        if len(files) == 1:
            yield self._entry(stem, files)
            return
        contents: dict[str, list[_File]] = {}
        for file in files:
            try:
                digest = hashlib.sha256(read_regular(file.path, file.shown)).hexdigest()
            except InputError as error:
                yield Refused(file.shown, str(error).removeprefix(f"{file.shown}: "))
                continue
            contents.setdefault(digest, []).append(file)
        folders = [copies[0].folder for copies in contents.values()]
        for copies in contents.values():
            first = copies[0]
            if len(contents) == 1:
                yield self._entry(stem, copies)
            elif folders.count(first.folder) == 1:
                yield self._entry(f"{_prefix(first.folder)}{stem}", copies)
            else:
                yield self._entry(f"{_prefix(first.folder)}{_clean(first.name)}", copies)

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
            sequence=first.row.sequence or self._stated["sequence"],
            plane=first.row.plane or self._stated["plane"],
            note="" if labels else NO_LABEL,
        )
        return SourceEntry(image, first.path, first.shown)


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in PICTURES


def _no_picture(path: Path) -> str:
    if path.suffix.lower() in (".csv", ".tsv", ".xlsx"):
        return f"a table; to read labels and patients from it say --table {shlex.quote(path.name)}"
    return "not a picture by its name"


def _pictures_below(root: Path) -> Iterator[str]:
    return (relative(path, root) for path in walk(root) if _is_picture(path))


def _clean(name: str) -> str:
    """A name as an id: composed Unicode (a Mac writes the same name decomposed), printable, no bytes left over."""
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
