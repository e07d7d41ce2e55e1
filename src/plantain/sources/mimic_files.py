"""Where a download of MIMIC-CXR has its tables and its images, and which images are really there.

Downloads differ: the folder may lie some levels down (physionet.org/files/mimic-cxr-jpg/2.1.0), DICOM users keep the
tables of MIMIC-CXR-JPG elsewhere, folders of images are links to another disk, and half of them may be missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from plantain.records import InputError

DEEPEST = 5
"""How many levels below the folder that was named the tables and the images are looked for."""

_TOP = re.compile(r"p1[0-9]")
_PATIENT = re.compile(r"p[0-9]{8}")
_STUDY = re.compile(r"s[0-9]{8}")
_PICTURE = re.compile(r"(?P<dicom>[0-9a-f]{8}(?:-[0-9a-f]{8}){4})(?P<ending>\.(?i:jpe?g|dcm))")
_METADATA = re.compile(r"mimic-cxr-[\d.]+-metadata\.csv(\.gz)?")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class MimicPlace:
    """One image file: its folder as "p10/p10000032/s50414267", its dicom id, and its ending as written on disk."""

    folder: str
    dicom: str
    ending: str


class MimicFiles:
    """A download, found at or below a folder.

    Args:
        root: the folder that was named.
        tables: the folder of the tables where they lie elsewhere, or "".

    Raises:
        InputError: no tables, no images, or several downloads.
    """

    def __init__(self, root: Path, tables: str) -> None:
        if not root.is_dir():
            raise InputError(f"{root}: not a folder")
        self.root = root
        beside = Path(tables).expanduser() if tables else root
        if not beside.is_dir():
            raise InputError(f"--set tables={tables}: not a folder")
        self._tables = _only(beside, _has_metadata, "mimic-cxr-2.0.0-metadata.csv.gz")
        self.pictures = _only(root, _has_patients, "files/p10 ... files/p19")

    @property
    def version(self) -> str:
        """The release, where a folder's name or the name of the radiologists' table tells it; else ""."""
        for folder in (self.pictures.parent, self._tables):
            if _VERSION.fullmatch(folder.resolve().name):
                return folder.resolve().name
        newest = self._find("test-set-labeled")
        found = _VERSION.search(newest.name) if newest else None
        return found[0] if found else ""

    def table(self, what: str) -> Path:
        """The table of that name, packed or not; of several releases the newest by name."""
        found = self._find(what)
        if found is None:
            raise InputError(
                f"{self._tables}: mimic-cxr-2.0.0-{what}.csv.gz is not there; it is a file of MIMIC-CXR-JPG"
            )
        return found

    def tops(self) -> set[str]:
        """The folders p10 to p19 that are there."""
        return set(_names(self.pictures, _TOP))

    def listing(self) -> Iterator[MimicPlace]:
        """Every image file in order of its path; links to folders are followed, reports and other files not seen."""
        for top in _names(self.pictures, _TOP):
            for patient in _names(self.pictures / top, _PATIENT):
                for study in _names(self.pictures / top / patient, _STUDY):
                    folder = f"{top}/{patient}/{study}"
                    for name in sorted(_listed(self.pictures / folder)):
                        match = _PICTURE.fullmatch(name)
                        if match:
                            yield MimicPlace(folder, match["dicom"], match["ending"])

    def shown(self, stem: str) -> str:
        """A path below the pictures as messages name it."""
        named = self.pictures.name == "files"
        return f"files/{stem}" if named else stem

    def _find(self, what: str) -> Path | None:
        pattern = re.compile(rf"mimic-cxr-[\d.]+-{what}\.csv(\.gz)?")
        found = sorted(path for path in self._tables.iterdir() if pattern.fullmatch(path.name))
        return found[-1] if found else None


def _only(root: Path, is_it: Callable[[list[str]], bool], what: str) -> Path:
    """The one folder at or below `root` of that kind; the search goes no deeper than where it finds one."""
    level = [root]
    for _ in range(DEEPEST + 1):
        contents = {folder: _listed(folder) for folder in level}
        found = [folder for folder, names in contents.items() if is_it(names)]
        if len(found) > 1:
            raise InputError(
                f"{root}: {what} is in both {found[0]} and {found[1]}; name the one that you mean"
            )
        if found:
            return found[0]
        level = [
            folder / name
            for folder, names in contents.items()
            for name in sorted(names)
            if not name.startswith(".") and not _PATIENT.fullmatch(name) and (folder / name).is_dir()
        ]
    raise InputError(f"{root}: {what} is not there; it is a part of MIMIC-CXR-JPG")


def _has_metadata(names: list[str]) -> bool:
    return any(_METADATA.fullmatch(name) for name in names)


def _has_patients(names: list[str]) -> bool:
    return any(_TOP.fullmatch(name) for name in names)


def _names(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    return sorted(name for name in _listed(folder) if pattern.fullmatch(name))


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - a quarter of a million folders are listed, names are enough
    except NotADirectoryError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error
