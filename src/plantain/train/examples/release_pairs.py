"""Pairs and preferences out of a release in the `parquet` layout, read as a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson
from pydantic import TypeAdapter, ValidationError

from plantain.catalogue.groups import Groups
from plantain.files.installing import install_line
from plantain.files.opening import check_received
from plantain.journal import JsonValue
from plantain.pixels.decode import BadImage, decode_mask, decode_untrusted
from plantain.records import InputError, SourceImage
from plantain.train.examples.originals import StoredOriginals
from plantain.train.examples.pairs import ListedExample, PreferencePair, TrainingPair

TABLES = "data"
"""Folder of a release's tables; each has one of its own."""

TRAINING = "train"
"""The split that may be learned from."""

TEST = "test"
"""The split that nothing may be chosen by, either."""


_IMAGE = TypeAdapter(SourceImage)


@dataclass(frozen=True, slots=True)
class _Example:
    """What a release's record says of a task that training needs; `split` is "" in a release without splits."""

    task: str
    image: SourceImage
    split: str

    @property
    def prepared(self) -> str:
        return self.image.prepared_sha256

    def listed(self, name: str, groups: Groups) -> ListedExample:
        return ListedExample(
            name, self.task, groups.name(self.image), self.split not in ("", TRAINING), self.split == TEST
        )


class ReleasePairs:
    """Successful edits of a release: (original, instruction, edited image).

    Args:
        release: its folder, with the `parquet` layout.
        originals: where the originals are.

    Raises:
        InputError: no such tables in it.
    """

    def __init__(self, release: Path, originals: StoredOriginals) -> None:
        self._files = _files(release, "success")
        self._records = _files(release, "trajectories")
        self._originals = originals
        self.name = release.name
        self.digest = _digest(release)

    def listed(self) -> list[ListedExample]:
        """Every success whose original is at hand, by task id. Raises InputError when there is none."""
        listed = [
            example.listed(task_id, self._groups)
            for task_id, example in sorted(self._examples.items())
            if self._originals.has(example.prepared)
        ]
        return self._originals.some(listed, self.name)

    def read(self, ids: Sequence[str]) -> Iterator[TrainingPair]:
        """The pairs of these ids, in the release's order, one at a time."""
        wanted = set(ids)
        for row in _rows(self._files, ["task_id", "instruction", "image", "mask"]):
            task_id = str(row["task_id"])
            if task_id in wanted and task_id in self._examples:
                wanted.discard(task_id)
                yield self._pair(task_id, row)
        if wanted:
            raise InputError(f"{self.name}: no success of task {min(wanted)}")

    def source_image(self, task_id: str) -> SourceImage:
        """The record of a success's original."""
        return self._examples[task_id].image

    @cached_property
    def _examples(self) -> dict[str, _Example]:
        examples = {}
        for row in _rows(self._records, ["task_id", "outcome", "record"]):
            if row["outcome"] == "success":
                examples[str(row["task_id"])] = _read_record(row["record"])
        return examples

    @cached_property
    def _groups(self) -> Groups:
        return Groups(example.image for example in self._examples.values())

    def _pair(self, task_id: str, row: Mapping[str, JsonValue]) -> TrainingPair:
        example, image = self._examples[task_id], row["image"]
        assert isinstance(image, dict)
        after = _decoded(image["bytes"], task_id)
        before = self._originals.read(example.prepared, example.image.id)
        if before.shape != after.shape:
            raise InputError(
                f"{self.name}: task {task_id}: the edited image is {after.shape[:2]}, its original {before.shape[:2]}"
            )
        return TrainingPair(
            task_id,
            example.task,
            self._groups.name(example.image),
            str(row["instruction"]),
            before,
            after,
            _region(row["mask"]),
        )


class ReleasePreferences:
    """Preferences of a release: (original, winner, loser) of one task.

    Args and Raises: as for `ReleasePairs`.
    """

    def __init__(self, release: Path, originals: StoredOriginals) -> None:
        self._files = _files(release, "preference")
        self._originals = originals
        self.name = release.name
        self.digest = _digest(release)

    def listed(self) -> list[ListedExample]:
        """Every pair whose original is at hand, in the release's order. Raises InputError when there is none."""
        listed = [
            example.listed(str(number), self._groups)
            for number, example in enumerate(self._examples)
            if self._originals.has(example.prepared)
        ]
        return self._originals.some(listed, self.name)

    def read(self, ids: Sequence[str]) -> Iterator[PreferencePair]:
        """The pairs of these ids, in the release's order, one at a time."""
        wanted = set(ids)
        columns = ["jpg_0", "jpg_1", "label_0", "caption_0", "caption_1"]
        for number, row in enumerate(_rows(self._files, columns)):
            if str(number) not in wanted:
                continue
            example = self._examples[number]
            better = 0 if row["label_0"] == 1 else 1
            images = [_decoded(row[f"jpg_{slot}"], str(number)) for slot in (better, 1 - better)]
            yield PreferencePair(
                str(number),
                example.task,
                self._groups.name(example.image),
                str(row[f"caption_{better}"]),
                self._originals.read(example.prepared, example.image.id),
                images[0],
                images[1],
            )

    @cached_property
    def _examples(self) -> list[_Example]:
        return [_read_record(row["record"]) for row in _rows(self._files, ["record"])]

    @cached_property
    def _groups(self) -> Groups:
        return Groups(example.image for example in self._examples)


def table_rows(release: Path, table: str, columns: list[str]) -> Iterator[Mapping[str, JsonValue]]:
    """Rows of a release's table, a few at a time; only the columns named are read. Raises InputError."""
    return _rows(_files(release, table), columns)


def source_image(document: object) -> SourceImage:
    """An image of a release's record. Raises ValueError when it is none."""
    return _IMAGE.validate_python(document)


def _files(release: Path, table: str) -> list[Path]:
    """A table's shards. Raises InputError when there is none, or a link in the release leads out of it."""
    check_received(release)
    files = sorted((release / TABLES / table).glob("*.parquet"))
    if not files:
        raise InputError(
            f"{release}: no table {TABLES}/{table} here; export the run with --layout parquet (and preference)"
        )
    return files


def _rows(files: Sequence[Path], columns: list[str]) -> Iterator[Mapping[str, JsonValue]]:
    """Rows of a table, a few at a time; only the columns named are read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(f"reading a release needs pyarrow: {install_line('release')}") from error

    for path in files:
        try:
            with pq.ParquetFile(path) as table:
                for batch in table.iter_batches(batch_size=16, columns=columns):
                    yield from batch.to_pylist()
        except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not a table of a release: {error}") from error


def _read_record(record: JsonValue) -> _Example:
    """What a row's record says of its task. Raises InputError when it is not a record of ours."""
    try:
        document = orjson.loads(str(record))
        image = _IMAGE.validate_python(document["image"])
        return _Example(f"{document['direction']} {document['finding']}", image, str(document["split"] or ""))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValidationError) as error:
        raise InputError(f"a row's record is not what a release of ours holds: {error}") from error


def _decoded(data: JsonValue, name: str) -> npt.NDArray[np.uint8]:
    if not isinstance(data, bytes):
        raise InputError(f"row {name}: no image in it")
    try:
        return decode_untrusted(data, name)
    except BadImage as error:
        raise InputError(str(error)) from error


def _region(cell: JsonValue) -> npt.NDArray[np.bool_] | None:
    data = cell["bytes"] if isinstance(cell, dict) else None
    return decode_mask(data) if isinstance(data, bytes) else None


def _digest(release: Path) -> str:
    """Of the release's checksums: it changes whenever a file does."""
    sums = release / "SHA256SUMS"
    return hashlib.sha256(sums.read_bytes()).hexdigest() if sums.is_file() else ""
