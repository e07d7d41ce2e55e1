"""The WebDataset layout: tar shards that come out the same every time, one edited image and its JSON a sample."""

from __future__ import annotations

import tarfile
from collections import deque
from collections.abc import Iterator

import orjson

from plantain.release.layouts.columns import attempt_cells, task_cells
from plantain.release.pictures import PictureRequest, Pictures, Released
from plantain.release.plan import ReleaseFile
from plantain.release.staging import HashingFile, StagedEntry, Staging
from plantain.release.task_record import AttemptRecord, RecordedPicture, TaskRecord, from_json

_Planned = deque[tuple[StagedEntry, TaskRecord, AttemptRecord]]


def write_webdataset(staging: Staging, pictures: Pictures) -> None:
    """`wds/success-train-00000.tar` and the like, and masks under the same keys in tars of their own.

    Samples of one tar all have the same fields, which readers expect; so masks, which only some edits have, lie
    apart. The index is the release's manifest.
    """
    for layout, mask in (("webdataset", False), ("masks", True)):
        for stem, shards, _ in staging.shards(layout):
            for shard in range(shards):

                def fill(
                    file: HashingFile,
                    layout: str = layout,
                    stem: str = stem,
                    shard: int = shard,
                    mask: bool = mask,
                ) -> Iterator[ReleaseFile]:
                    return _fill(file, staging.entries(layout, stem, shard), pictures, mask)

                staging.write(f"{stem}-{shard:05d}.tar", "shard", fill)


def sample_key(record: TaskRecord, attempt: AttemptRecord) -> str:
    """A sample's name: no dots, which would end the key and begin the field."""
    return f"{record.task_id}-g{attempt.generation}-r{attempt.round or 0}"


def _fill(
    file: HashingFile, entries: Iterator[StagedEntry], pictures: Pictures, mask: bool
) -> Iterator[ReleaseFile]:
    planned: _Planned = deque()
    for image in pictures.stream(_wanted(entries, planned, mask)):
        entry, record, attempt = planned.popleft()
        key = sample_key(record, attempt)
        name = f"{key}.png" if mask else f"{key}.jpg"
        _add(file, name, image.data)
        if not mask:
            _add(file, f"{key}.json", _sample_json(entry, record, attempt, image))
        yield image.listed(record.task_id, attempt, "mask" if mask else attempt.role, member=name)
    # Two empty blocks end an archive, and its length is a multiple of the record size.
    file.write(bytes(2 * tarfile.BLOCKSIZE + -(file.size + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE))


def _wanted(entries: Iterator[StagedEntry], planned: _Planned, mask: bool) -> Iterator[PictureRequest]:
    for entry in entries:
        record = from_json(entry.record)
        attempt = record.attempts[entry.first]
        picture: RecordedPicture | None = attempt.mask if mask else attempt.edited
        assert picture is not None
        planned.append((entry, record, attempt))
        yield PictureRequest(picture, record.task_id, attempt.round or 0, edited=not mask)


def _sample_json(entry: StagedEntry, record: TaskRecord, attempt: AttemptRecord, image: Released) -> bytes:
    """What a training loop needs at hand, and the whole record of the task."""
    told = {
        **task_cells(record),
        **attempt_cells(record, attempt),
        "sha256": image.sha256,
        "role": attempt.role,
    }
    return orjson.dumps(told)[:-1] + b',"record":' + entry.record + b"}"


def _add(file: HashingFile, name: str, data: bytes) -> None:
    """One member. By hand, because tarfile copies the data in pieces of 16 kB; its header is tarfile's own."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o644
    info.mtime = 0
    file.write(info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict"))
    file.write(data)
    file.write(bytes(-len(data) % tarfile.BLOCKSIZE))
