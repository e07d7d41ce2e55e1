"""Pictures of a run: bytes on demand, in memory up to a bound, checked when they come from disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from plantain.journal import BadBlob, Journal, RunHeader
from plantain.runs.open_run import ImageCache


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal.create(tmp_path / "run", RunHeader("id", "pictures", 1, {}, "0"))
    yield made
    asyncio.run(made.close())


def test_picture_that_changed_on_disk_is_not_handed_out(journal: Journal) -> None:
    sha256 = journal.put_blob(b"a picture", "image/jpeg").sha256
    image = ImageCache(journal.reader).image(sha256)
    (journal.run / "blobs" / sha256[:2] / sha256).write_bytes(b"another")
    with pytest.raises(BadBlob):
        _ = image.data
