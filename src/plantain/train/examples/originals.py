"""The images that were edited: out of the release itself, the run that made it, or a catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from plantain.catalogue.store import Catalogue
from plantain.journal.disk.blobs import BlobStore
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError
from plantain.train.examples.pairs import ListedExample
from plantain.train.examples.release_originals import ReleaseOriginals

_WHERE = "a release has those that it may pass on: name the run or catalogue that it was made from with --originals"


class _Store(Protocol):
    def has(self, sha256: str) -> bool: ...

    def read(self, sha256: str) -> bytes: ...


class StoredOriginals:
    """Prepared source images by the SHA-256 of their bytes, out of a release, a run's folder or a catalogue.

    Raises:
        InputError: the folder is none of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store: _Store
        if ReleaseOriginals.recognised(folder):
            self._store = ReleaseOriginals(folder)
        elif (folder / JOURNAL_NAME).is_file():
            self._store = _Blobs(BlobStore(folder / "blobs"))
        else:
            with Catalogue.open(folder) as catalogue:
                self._store = _Blobs(catalogue.blobs)

    def has(self, prepared_sha256: str) -> bool:
        return self._store.has(prepared_sha256)

    def some(self, listed: list[ListedExample], release: str) -> list[ListedExample]:
        """What was listed, unless nothing was. Raises InputError then: no original is here."""
        if not listed:
            raise InputError(f"{self.folder}: holds no original of {release}; {_WHERE}")
        return listed

    def read(self, prepared_sha256: str, image: str) -> Pixels:
        """The image, uint8 (H, W, 3). Raises InputError when it is not here, or damaged."""
        return decode(self.encoded(prepared_sha256, image))

    def encoded(self, prepared_sha256: str, image: str) -> bytes:
        """The image's file. Raises InputError when it is not here, or damaged."""
        if not self.has(prepared_sha256):
            raise InputError(
                f"{self.folder}: the original of image {image!r} ({prepared_sha256[:12]}…) is not here; {_WHERE}"
            )
        return self._store.read(prepared_sha256)


class _Blobs:
    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    def has(self, sha256: str) -> bool:
        return self._blobs.path(sha256).is_file()

    def read(self, sha256: str) -> bytes:
        return self._blobs.read(sha256)
