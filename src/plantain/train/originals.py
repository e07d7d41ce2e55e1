"""The images that were edited, which a release names by hash and does not carry."""

from __future__ import annotations

from pathlib import Path

from plantain.catalogue.store import Catalogue
from plantain.journal.disk.blobs import BlobStore
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError
from plantain.train.pairs import ListedExample


class Originals:
    """Prepared source images by the SHA-256 of their bytes, out of a run's folder or a catalogue.

    Raises:
        InputError: the folder is neither.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if (folder / JOURNAL_NAME).is_file():
            self._blobs = BlobStore(folder / "blobs")
        else:
            with Catalogue.open(folder) as catalogue:
                self._blobs = catalogue.blobs

    def has(self, prepared_sha256: str) -> bool:
        return self._blobs.path(prepared_sha256).is_file()

    def some(self, listed: list[ListedExample], release: str) -> list[ListedExample]:
        """What was listed, unless nothing was. Raises InputError then: no original is here."""
        if not listed:
            raise InputError(
                f"{self.folder}: holds no original of {release}; a release does not carry them: name the run or the "
                "catalogue that it was made from"
            )
        return listed

    def read(self, prepared_sha256: str, image: str) -> Pixels:
        """The image, uint8 (H, W, 3). Raises InputError when it is not here, or damaged."""
        if not self.has(prepared_sha256):
            raise InputError(
                f"{self.folder}: the original of image {image!r} ({prepared_sha256[:12]}…) is not here; a release does "
                "not carry originals: name the run or the catalogue that it was made from"
            )
        return decode(self._blobs.read(prepared_sha256))
