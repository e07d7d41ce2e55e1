"""Preferences of a release in the `parquet` layout, with originals of the release, a run or a catalogue."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from pydantic import TypeAdapter, ValidationError

from plantain.catalogue.groups import Groups
from plantain.catalogue.store import NAME as CATALOGUE
from plantain.catalogue.store import Catalogue
from plantain.files.opening import check_received, files_like
from plantain.files.parquet import open_parquet, rows_of_table
from plantain.journal import JsonValue
from plantain.journal.blobs import BlobStore
from plantain.journal.connect import JOURNAL_NAME
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, check_header, decode, decode_untrusted
from plantain.records import InputError, SourceImage
from plantain.train.pairs import ListedExample, PreferencePair

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = "data"
"""Folder of a release with one folder per table."""

TRAINING, TEST = "train", "test"

_IMAGE = TypeAdapter(SourceImage)
_WHERE = (
    "a release has the originals that it may pass on; name the run or the catalogue that it was made from with "
    "--originals"
)


class StoredOriginals:
    """Prepared source images by SHA-256, from a run, a catalogue, or a release's tables with its accepted edits.

    Raises:
        InputError: the folder is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._blobs: BlobStore | None = None
        if (folder / JOURNAL_NAME).is_file():
            self._blobs = BlobStore(folder / "blobs")
        elif (folder / CATALOGUE).is_file():
            with Catalogue.open(folder) as catalogue:
                self._blobs = catalogue.blobs
        elif not folder.is_dir():
            raise InputError(f"{folder}: no such folder")

    def has(self, sha256: str) -> bool:
        """Return True if the folder contains the original with this SHA-256."""
        return sha256 in self._places if self._blobs is None else self._blobs.path(sha256).is_file()

    def read(self, sha256: str) -> Pixels:
        """Return the image, uint8 (H, W, 3). Raise InputError if it is missing or damaged."""
        if not self.has(sha256):
            raise InputError(f"{self.folder}: no original {sha256[:12]}… here; {_WHERE}")
        if self._blobs is not None:
            return decode(self._blobs.read(sha256))
        path, group, row = self._places[sha256]
        data = bytes(_images_of(path, group)[row].as_py()["bytes"])
        if hashlib.sha256(data).hexdigest() != sha256:
            raise InputError(f"{path}: the original {sha256[:12]}… is damaged")
        check_header(data, sha256)
        return decode(data)

    @cached_property
    def _places(self) -> dict[str, tuple[Path, int, int]]:
        """Where each original of a release is: (table, row group, row in it)."""
        places: dict[str, tuple[Path, int, int]] = {}
        tables = [self.folder / TABLES / name for name in ("success", "originals")]
        for path in (path for table in tables for path in files_like(table, "*.parquet")):
            with open_parquet(path) as table:
                for group in range(table.num_row_groups):
                    names = table.read_row_group(group, columns=["sha256"])["sha256"].to_pylist()
                    places |= {str(name): (path, group, row) for row, name in enumerate(names)}
        return places


@dataclass(frozen=True, slots=True)
class _Example:
    """A record's task; `split` is "" in a release without splits."""

    task: str
    image: SourceImage
    split: str

    def listed(self, name: str, groups: Groups) -> ListedExample:
        reserved = self.split not in ("", TRAINING)
        return ListedExample(name, self.task, groups.name(self.image), reserved, self.split == TEST)


class ReleasePreferences:
    """Preferences of a release: (original, winner, loser) of one task, by row number.

    Args:
        release: folder of the release, with the preference table of the `parquet` layout.
        originals: the images before the edits.

    Raises:
        InputError: the release has no such table.
    """

    def __init__(self, release: Path, originals: StoredOriginals) -> None:
        check_received(release)
        self._files = files_like(release / TABLES / "preference", "*.parquet")
        if not self._files:
            raise InputError(
                f"{release}: no table {TABLES}/preference here; export the run with --layout parquet,preference"
            )
        self._originals, self._own = originals, StoredOriginals(release)
        self.name = release.name
        sums = release / "SHA256SUMS"
        self.digest = hashlib.sha256(sums.read_bytes()).hexdigest() if sums.is_file() else ""

    @cached_property
    def _examples(self) -> Mapping[str, _Example]:
        return {str(number): _example(row) for number, row in enumerate(_rows(self._files, ["record"]))}

    @cached_property
    def _groups(self) -> Groups:
        return Groups(example.image for example in self._examples.values())

    def listed(self) -> list[ListedExample]:
        """Return every example whose original is available. Raise InputError if there is none."""
        listed = [
            example.listed(name, self._groups)
            for name, example in self._examples.items()
            if self._holder(example.image.prepared_sha256).has(example.image.prepared_sha256)
        ]
        if not listed:
            raise InputError(f"{self._originals.folder}: no original of {self.name} here; {_WHERE}")
        return listed

    def left_out(self) -> str:
        """Return a sentence that counts the examples without their image before the edit; "" if all have it."""
        missing = len(self._examples) - len(self.listed())
        line = f"{self.name}: {missing} of {len(self._examples)} examples left out: no image before the edit; {_WHERE}"
        return line if missing else ""

    def read(self, ids: Sequence[str]) -> Iterator[PreferencePair]:
        """Yield the pairs of these ids, in the release's order."""
        wanted = set(ids)
        columns = ["jpg_0", "jpg_1", "label_0", "caption_0", "caption_1"]
        for number, row in enumerate(_rows(self._files, columns)):
            if (name := str(number)) in wanted:
                better = 0 if row["label_0"] == 1 else 1
                winner, loser = (_decoded(row[f"jpg_{slot}"], name) for slot in (better, 1 - better))
                cluster = self._groups.name(self._examples[name].image)
                task, caption = self._examples[name].task, str(row[f"caption_{better}"])
                sha256 = self._examples[name].image.prepared_sha256
                before = self._holder(sha256).read(sha256)
                yield PreferencePair(name, task, cluster, caption, before, winner, loser)

    def _holder(self, sha256: str) -> StoredOriginals:
        """Return where an image is before an edit: a later turn edits an accepted edit of the release."""
        return self._originals if self._originals.has(sha256) else self._own


def _rows(files: Sequence[Path], columns: list[str]) -> Iterator[Mapping[str, JsonValue]]:
    """Rows of a table, a few at a time; only the named columns are read."""
    return (row for path in files for row in rows_of_table(path, columns))


@lru_cache(maxsize=2)  # row groups: originals come in the order of the tasks, as pairs are read
def _images_of(path: Path, group: int) -> pa.ChunkedArray:
    with open_parquet(path) as table:
        return table.read_row_group(group, columns=["image"])["image"]


def _example(row: Mapping[str, JsonValue]) -> _Example:
    try:
        document = orjson.loads(str(row["record"]))
        image = _IMAGE.validate_python(document["image"])
        return _Example(f"{document['direction']} {document['finding']}", image, str(document["split"] or ""))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValidationError) as error:
        raise InputError(f"a row's record is not plantain's: {error}") from error


def _decoded(data: JsonValue, name: str) -> Pixels:
    if not isinstance(data, bytes):
        raise InputError(f"row {name}: no image in it")
    try:
        return decode_untrusted(data, name)
    except BadImage as error:
        raise InputError(str(error)) from error
