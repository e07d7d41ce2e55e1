"""The WebDataset layout: reproducible tar shards, one edited image and its JSON a sample."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, cast

import orjson

from plantain.journal import BlobRef
from plantain.release.layouts.columns import ReleaseColumns, columns_of, task_cells
from plantain.release.layouts.contract import Layout
from plantain.release.plan import ReleaseFile
from plantain.release.released_images import ImageRequest, ReleasedImage, ReleasedImages
from plantain.release.staging import HashingFile, StagedEntry, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

Sample = tuple[list[tuple[str, bytes]], ReleaseFile]
"""Members of a tar by name, and the line of the image in the list of files."""


def write_webdataset(staging: Staging, released: ReleasedImages) -> None:
    """Write `wds/success-train-00000.tar` and the like; masks, with the same keys, in separate tars.

    All samples of a tar have the same fields, which readers expect. Only some edits have masks. Many edits share an
    original: those are files in `originals/`, found by `original_sha256`. The index is the release's manifest.
    """
    columns = columns_of(staging.facts.frozen)
    _write(staging, "webdataset", lambda entries: _edits(entries, released, columns))
    _write(staging, "masks", lambda entries: _masks(entries, released))


def sample_key(record: TaskRecord, attempt: AttemptRecord) -> str:
    """Return the key of a sample in a tar; it has no dots, which separate key and field."""
    return f"{record.task_id}-g{attempt.generation}-r{attempt.round or 0}"


def _write(
    staging: Staging, layout: str, samples: Callable[[Iterator[StagedEntry]], Iterator[Sample]]
) -> None:
    for stem, shards, _ in staging.shards(layout):
        for shard in range(shards):
            fill = partial(_fill, samples=samples(staging.entries(layout, stem, shard)))
            staging.write(f"{stem}-{shard:05d}.tar", "shard", fill)


def _fill(file: HashingFile, samples: Iterator[Sample]) -> Iterator[ReleaseFile]:
    out = cast("IO[bytes]", file)
    with tarfile.TarFile(mode="w", fileobj=out, format=tarfile.USTAR_FORMAT, copybufsize=1 << 20) as tar:
        for members, listed in samples:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            yield listed


def _edits(
    entries: Iterator[StagedEntry], released: ReleasedImages, columns: ReleaseColumns
) -> Iterator[Sample]:
    for record, attempt, image in _read(entries, released, lambda attempt: attempt.edited):
        key = sample_key(record, attempt)
        fields = {
            **task_cells(record),
            **columns.attempt_cells(attempt),
            "sha256": image.sha256,
            "role": attempt.role,
        }
        members = [(f"{key}.jpg", image.data), (f"{key}.json", orjson.dumps(fields))]
        yield members, image.listed(record.task_id, attempt, attempt.role, member=f"{key}.jpg")


def _masks(entries: Iterator[StagedEntry], released: ReleasedImages) -> Iterator[Sample]:
    for record, attempt, image in _read(entries, released, lambda attempt: attempt.mask):
        name = f"{sample_key(record, attempt)}.png"
        yield [(name, image.data)], image.listed(record.task_id, attempt, "mask", member=name)


def _read(
    entries: Iterator[StagedEntry],
    released: ReleasedImages,
    choose: Callable[[AttemptRecord], BlobRef | None],
) -> Iterator[tuple[TaskRecord, AttemptRecord, ReleasedImage]]:
    """Yield every planned attempt with its chosen image."""

    def wanted() -> Iterator[tuple[tuple[TaskRecord, AttemptRecord], list[ImageRequest]]]:
        for entry in entries:
            record = from_json(entry.record)
            attempt = record.attempts[entry.first]
            image = choose(attempt)
            assert image is not None
            signed_as = (record.task_id, attempt.round or 0) if image is attempt.edited else None
            yield (record, attempt), [(image, signed_as)]

    for item, (image,) in released.stream(wanted()):
        yield (*item, image)


LAYOUT = Layout(write_webdataset)
