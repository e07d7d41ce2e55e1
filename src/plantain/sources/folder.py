"""A folder of pictures sorted by label, PATH/<label>/*.jpg: the layout that Med-Banana's own scripts read."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plantain.findings import Taxonomy
from plantain.findings.taxonomy import suggest
from plantain.pixels.decode import one_line
from plantain.records import Finding, InputError, SourceImage
from plantain.sources.entries import UNPREPARED, Entry, Refused, SourceOptions
from plantain.sources.files import read_regular
from plantain.sources.registry import SourceKind

PICTURES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".png", ".bmp", ".tif", ".tiff", ".webp", ".gif"}
    | {".heic", ".heif", ".avif", ".jp2", ".dcm"}
)
"""Names that claim to be a picture; those that we cannot read are refused with what they are."""

_CLUTTER = frozenset({"thumbs.db", "desktop.ini"})


@dataclass(frozen=True, slots=True)
class _File:
    folder: str
    name: str
    path: Path
    finding: Finding

    @property
    def shown(self) -> str:
        return one_line(f"{self.folder}/{self.name}")

    @property
    def stem(self) -> str:
        return _clean(Path(self.name).stem)


class FolderReader:
    """Lists PATH/<label>/<picture>; a label folder is named like a finding, its case, spaces and underscores aside.

    An image's id is its file name without ending. Files that share it are one image with several labels
    when their bytes are the same, else all of them get the folder's name (and the ending) into their ids.
    """

    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if not options.modality:
            raise InputError(f"--modality: say what the pictures show: {', '.join(taxonomy.modalities)}")
        self._order = {finding.name: rank for rank, finding in enumerate(taxonomy.of(options.modality))}
        if not options.path.is_dir():
            raise InputError(f"{options.path}: not a folder")
        self._options = options
        self._taxonomy = taxonomy
        self._root = options.path.resolve()
        self._refused: list[Refused] = []
        self._by_stem: dict[str, list[_File]] = {}
        for file in self._list():
            self._by_stem.setdefault(file.stem, []).append(file)

    def count(self) -> int:
        """Number of files that `scan` will look at."""
        return sum(len(files) for files in self._by_stem.values()) + len(self._refused)

    def scan(self) -> Iterator[Entry | Refused]:
        """Files that are refused by name or place first, then images in order of their ids' stems."""
        yield from self._refused
        for stem in sorted(self._by_stem):
            yield from self._same_stem(stem, self._by_stem[stem])

    def _list(self) -> Iterator[_File]:
        for child in self._children(self._root):
            shown = one_line(child.name)
            if not child.is_dir():
                self._refuse(shown, "lies beside the label folders, not in one")
                continue
            finding = self._taxonomy.match_label(self._options.modality, child.name)
            if finding is None:
                names = list(self._order)
                hint = suggest(child.name, names)
                why = f"no {self._options.modality} finding is named like this folder; {hint}"
                self._refuse_folder(child, f"{shown}/", why)
            elif not self._inside(child):
                self._refuse(f"{shown}/", "a link that leads out of the folder")
            else:
                yield from self._pictures(child, finding)

    def _pictures(self, folder: Path, finding: Finding) -> Iterator[_File]:
        for path in self._children(folder):
            file = _File(folder.name, path.name, path, finding)
            if path.is_symlink() and not self._inside(path):
                self._refuse(file.shown, "a link that leads out of the folder, or nowhere")
            elif path.is_dir():
                self._refuse_folder(path, f"{file.shown}/", "a folder inside a label folder is not read")
            elif path.suffix.lower() not in PICTURES:
                self._refuse(file.shown, "not a picture by its name")
            else:
                yield file

    def _children(self, folder: Path) -> list[Path]:
        """A folder's content in order of its names as bytes, which no locale changes; hidden files left out."""
        try:
            children = [path for path in folder.iterdir() if not path.name.startswith(".")]
        except OSError as error:
            self._refuse(f"{one_line(folder.name)}/", f"cannot be read ({error.strerror})")
            return []
        children = [path for path in children if path.name.lower() not in _CLUTTER]
        return sorted(children, key=lambda path: os.fsencode(path.name))

    def _inside(self, path: Path) -> bool:
        try:
            return path.resolve(strict=True).is_relative_to(self._root)
        except (OSError, RuntimeError):
            return False

    def _refuse_folder(self, folder: Path, name: str, reason: str) -> None:
        """A folder that is not read, with the number of pictures that this leaves out."""
        files = sum(
            Path(file).suffix.lower() in PICTURES for _, _, files in os.walk(folder) for file in files
        )
        told = f"{reason}; {files} pictures in it" if files else reason
        self._refused.append(Refused(name, told, max(1, files)))

    def _refuse(self, name: str, reason: str) -> None:
        self._refused.append(Refused(name, reason))

    def _same_stem(self, stem: str, files: list[_File]) -> Iterator[Entry | Refused]:
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
                yield self._entry(f"{_slug(first.folder)}_{stem}", copies)
            else:
                yield self._entry(f"{_slug(first.folder)}_{_clean(first.name)}", copies)

    def _entry(self, image_id: str, copies: list[_File]) -> Entry | Refused:
        first = copies[0]
        labels = {file.finding.name: file for file in copies}
        normal = next((file for file in labels.values() if file.finding.normal), None)
        if normal is not None and len(labels) > 1:
            other = next(file for file in labels.values() if not file.finding.normal)
            return Refused(normal.shown, f"the same picture as {other.shown}: it cannot be normal and not")
        image = SourceImage(
            id=image_id,
            dataset=_clean(self._root.name),
            modality=self._options.modality,
            labels=tuple(sorted(labels, key=self._order.__getitem__)),
            licence=self._options.licence,
            source_sha256="",
            prepared_sha256="",
            geometry=UNPREPARED,
        )
        return Entry(image, first.path, first.shown)


def _clean(name: str) -> str:
    """A name as an id: composed Unicode (a Mac writes the same name decomposed), printable, no bytes left over."""
    return one_line(unicodedata.normalize("NFC", name)).strip() or "unnamed"


def _slug(folder: str) -> str:
    return "_".join(_clean(folder).split())


KIND = SourceKind(
    "pictures sorted into folders by finding: PATH/<label>/*.{jpg,png,...}; needs --modality",
    FolderReader,
)
