"""Where a download of MIMIC-CXR has its tables and images, and which images are there.

Downloads differ: the folder may be some levels down (physionet.org/files/mimic-cxr-jpg/2.1.0), DICOM users keep the
tables of MIMIC-CXR-JPG elsewhere, folders of images are links to another disk, and half of them may be missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from plantain.records import InputError

DEEPEST = 5
"""Levels below PATH that are searched for the tables and the images."""

_TOP = re.compile(r"p1[0-9]")
_PATIENT = re.compile(r"p[0-9]{8}")
_STUDY = re.compile(r"s[0-9]{8}")
_IMAGE = re.compile(r"(?P<dicom>[0-9a-f]{8}(?:-[0-9a-f]{8}){4})(?P<ending>\.(?i:jpe?g|dcm))")
_METADATA = re.compile(r"mimic-cxr-[\d.]+-metadata\.csv(\.gz)?")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


class MimicPlace(NamedTuple):
    """One image file: its folder as "p10/p10000032/s50414267", its dicom id, and its ending as on disk."""

    folder: str
    dicom: str
    ending: str


class MimicFiles:
    """A download of MIMIC-CXR at or below a folder. Raise InputError if it is incomplete or there are several.

    Args:
        root: the folder.
        tables: the folder of the tables if they are elsewhere, or "".
    """

    def __init__(self, root: Path, tables: str) -> None:
        if not root.is_dir():
            raise InputError(f"{root}: not a folder")
        folder = Path(tables).expanduser() if tables else root
        if not folder.is_dir():
            raise InputError(f"--set tables={tables}: not a folder")
        self._tables = _only(folder, _METADATA, "mimic-cxr-2.0.0-metadata.csv.gz")
        self.images = _only(root, _TOP, "files/p10 ... files/p19")

    @property
    def version(self) -> str:
        """The release that a folder's name states; "" if none does."""
        names = (folder.resolve().name for folder in (self.images.parent, self._tables))
        return next((name for name in names if _VERSION.fullmatch(name)), "")

    def table(self, what: str) -> Path:
        """Return the path of a table, packed or not, of the newest release. Raise InputError if it is missing."""
        names = _names(self._tables, re.compile(rf"mimic-cxr-[\d.]+-{what}\.csv(\.gz)?"))
        if not names:
            name = f"mimic-cxr-2.0.0-{what}.csv.gz"
            raise InputError(f"{self._tables}: {name} is not there; it is a file of MIMIC-CXR-JPG")
        return self._tables / names[-1]

    def tops(self) -> set[str]:
        """Return the names of the folders p10 to p19 that exist."""
        return set(_names(self.images, _TOP))

    def listing(self) -> Iterator[MimicPlace]:
        """Yield every image file in order of its path; links to folders are followed, other files ignored."""
        for top in _names(self.images, _TOP):
            for patient in _names(self.images / top, _PATIENT):
                for study in _names(self.images / top / patient, _STUDY):
                    folder = f"{top}/{patient}/{study}"
                    for name in _names(self.images / folder, _IMAGE):
                        if match := _IMAGE.fullmatch(name):
                            yield MimicPlace(folder, match["dicom"], match["ending"])

    def shown(self, stem: str) -> str:
        """Return an image's path as messages show it: with "files/" in front if that is the images' folder."""
        return f"files/{stem}" if self.images.name == "files" else stem


def _only(root: Path, pattern: re.Pattern[str], what: str) -> Path:
    """Return the one folder at or below `root` with a name like that; search no deeper than where one is found."""
    level = [root]
    for _ in range(DEEPEST + 1):
        found = [folder for folder in level if _names(folder, pattern)]
        if len(found) > 1:
            raise InputError(f"{root}: {what} is in both {found[0]} and {found[1]}; name one of them")
        if found:
            return found[0]
        below = [folder / name for folder in level for name in _names(folder, re.compile(r"[^.].*"))]
        level = [path for path in below if not _PATIENT.fullmatch(path.name) and path.is_dir()]
    raise InputError(f"{root}: {what} is not there; it is a part of MIMIC-CXR-JPG")


def _names(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    try:
        listed = os.listdir(folder)  # noqa: PTH208 - a quarter of a million folders are listed, names are enough
    except NotADirectoryError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error
    return sorted(name for name in listed if pattern.fullmatch(name))
