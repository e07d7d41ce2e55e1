"""The WebDataset layout: reproducible tar shards, one edited image and its JSON a sample."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from functools import partial
from typing import IO, cast

import orjson

from plantain.release.layouts.columns import ReleaseColumns, columns_of, task_cells
from plantain.release.layouts.contract import Layout
from plantain.release.plan import ReleaseFile
from plantain.release.released_images import ImageRequest, ReleasedImages
from plantain.release.staging import HashingFile, StagedEntry, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

Sample = tuple[list[tuple[str, bytes]], ReleaseFile]
"""Members of a tar by name, and the line of the image in the list of files."""


def write_webdataset(staging: Staging, released: ReleasedImages) -> None:
    """Write `wds/success-train-00000.tar` and the like.

    All samples have the same fields, which readers expect: masks, which only some edits have, are in Parquet. Many
    edits share an original: those are files in `originals/`, found by `original_sha256`. The index is the manifest.
    """
    columns = columns_of(staging.facts.frozen)
    for stem, shards, _ in staging.shards("webdataset"):
        for shard in range(shards):
            samples = _samples(staging.entries("webdataset", stem, shard), released, columns)
            staging.write(f"{stem}-{shard:05d}.tar", "shard", partial(_fill, samples=samples))


def sample_key(record: TaskRecord, attempt: AttemptRecord) -> str:
    """Return the key of a sample in a tar; it has no dots, which separate key and field."""
    return f"{record.task_id}-g{attempt.generation}-r{attempt.round or 0}"


def _fill(file: HashingFile, samples: Iterator[Sample]) -> Iterator[ReleaseFile]:
    out = cast("IO[bytes]", file)
    with tarfile.TarFile(mode="w", fileobj=out, format=tarfile.USTAR_FORMAT, copybufsize=1 << 20) as tar:
        for members, listed in samples:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            yield listed


def _samples(
    entries: Iterator[StagedEntry], released: ReleasedImages, columns: ReleaseColumns
) -> Iterator[Sample]:
    def wanted() -> Iterator[tuple[tuple[TaskRecord, AttemptRecord], list[ImageRequest]]]:
        for entry in entries:
            record = from_json(entry.record)
            attempt = record.attempts[entry.first]
            assert attempt.edited is not None
            yield (record, attempt), [(attempt.edited, (record.task_id, attempt.round or 0))]

    for (record, attempt), (image,) in released.stream(wanted()):
        key = sample_key(record, attempt)
        fields = {
            **task_cells(record),
            **columns.attempt_cells(attempt),
            "sha256": image.sha256,
            "role": attempt.role,
        }
        members = [(f"{key}.jpg", image.data), (f"{key}.json", orjson.dumps(fields))]
        yield members, image.listed(record.task_id, attempt, attempt.role, member=f"{key}.jpg")


LAYOUT = Layout(write_webdataset)
