"""The WebDataset layout: reproducible tar shards, one edited image and its JSON a sample."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from functools import partial

import orjson

from plantain.journal import BlobRef
from plantain.release.layouts.columns import ReleaseColumns, columns_of, task_cells
from plantain.release.layouts.contract import Layout, original_of
from plantain.release.plan import ORIGINAL, ReleaseFile
from plantain.release.released_images import ImageRequest, ReleasedImage, ReleasedImages
from plantain.release.staging import HashingFile, StagedEntry, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

Sample = tuple[list[tuple[str, bytes]], ReleaseFile]
"""Members of a tar by name, and the line of the image in the list of files."""


def write_webdataset(staging: Staging, released: ReleasedImages) -> None:
    """Write `wds/success-train-00000.tar` and the like; masks, with the same keys, and originals in separate tars.

    All samples of a tar have the same fields, which readers expect. Only some edits have masks, and many edits share
    an original. The index is the release's manifest.
    """
    columns = columns_of(staging.facts.frozen)
    _write(staging, "webdataset", lambda entries: _edits(entries, released, columns))
    _write(staging, "masks", lambda entries: _masks(entries, released))
    _write(staging, "wds-originals", lambda entries: _originals(entries, staging, released))


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
    for members, listed in samples:
        for name, data in members:
            _add(file, name, data)
        yield listed
    # Two empty blocks end an archive, and its length is a multiple of the record size.
    file.write(bytes(2 * tarfile.BLOCKSIZE + -(file.size + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE))


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


def _originals(
    entries: Iterator[StagedEntry], staging: Staging, released: ReleasedImages
) -> Iterator[Sample]:
    """Yield originals, named by the hash in `original_sha256` of other samples."""
    originals = (original_of(staging, entry) for entry in entries)
    wanted = ((one, [ImageRequest(one, "", 0, edited=False)]) for one in originals)
    for original, (image,) in released.stream(wanted):
        name = f"{original.sha256}.{'jpg' if original.media_type == 'image/jpeg' else 'png'}"
        _, cells = staging.described_original(original.sha256)
        members = [(name, image.data), (f"{original.sha256}.json", cells)]
        yield members, image.listed(None, None, ORIGINAL, member=name)


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
            edited = image is attempt.edited
            request = ImageRequest(image, record.task_id, attempt.round or 0, edited=edited)
            yield (record, attempt), [request]

    for item, (image,) in released.stream(wanted()):
        yield (*item, image)


def _add(file: HashingFile, name: str, data: bytes) -> None:
    """Write one member with tarfile's header; tarfile itself copies data in pieces of 16 kB, which is slow."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o644
    info.mtime = 0
    file.write(info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict"))
    file.write(data)
    file.write(bytes(-len(data) % tarfile.BLOCKSIZE))


LAYOUT = Layout(write_webdataset)
