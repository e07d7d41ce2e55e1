"""Source images as files, for the layouts that have no table: `originals/DATASET/ID.jpeg`, each picture once."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from plantain.release.layouts.batches import write_batches
from plantain.release.originals import INDEX
from plantain.release.pictures import PictureRequest, Pictures
from plantain.release.plan import ORIGINAL, ReleaseFile
from plantain.release.staging import HashingFile, StagedEntry, Staging
from plantain.release.task_record import RecordedPicture, from_json

LAYOUT = "tree-originals"


def write_originals(staging: Staging, pictures: Pictures) -> None:
    """Writes the pictures in batches that become durable together, then their index."""

    def read(entry: StagedEntry) -> tuple[bytes, ReleaseFile]:
        picture = original_of(staging, entry)
        image = pictures.read(PictureRequest(picture, "", 0, edited=False))
        return image.data, image.listed(None, None, ORIGINAL, path=entry.path)

    write_batches(staging, LAYOUT, read)
    if staging.shards(LAYOUT):
        staging.write(INDEX, "record", lambda file: _index(staging, file))


def original_of(staging: Staging, entry: StagedEntry) -> RecordedPicture:
    """The original that an entry stands for."""
    picture = staging.original(from_json(entry.record).image.prepared_sha256)
    assert picture is not None
    return picture


def _index(staging: Staging, file: HashingFile) -> Iterator[ReleaseFile]:
    for stem, shards, _ in staging.shards(LAYOUT):
        for shard in range(shards):
            for entry in staging.entries(LAYOUT, stem, shard):
                sha256 = from_json(entry.record).image.prepared_sha256
                _, description = staging.described_original(sha256)
                file.write(orjson.dumps({"path": entry.path, **orjson.loads(description)}) + b"\n")
    return iter(())
