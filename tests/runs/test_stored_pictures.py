"""Pictures of a run: bytes on demand, in memory up to a bound, checked when they come from disk."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from plantain.journal import BadBlob, Journal, RunHeader
from plantain.runs.image_cache import ImageCache


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal.create(tmp_path / "run", RunHeader("id", "pictures", 1, {}, "0"))
    yield made
    asyncio.run(made.close())


def test_pictures_in_memory_stay_under_the_bound_and_the_latest_remain(journal: Journal) -> None:
    stored = [journal.put_blob(bytes([number]) * 1_000, "image/jpeg").sha256 for number in range(5)]
    pictures = ImageCache(journal.reader, megabytes=0.003)  # three of them
    images = [pictures.image(sha256) for sha256 in stored]
    assert not any(pictures.holds(sha256) for sha256 in stored)
    assert [image.data[0] for image in images] == [0, 1, 2, 3, 4]
    assert [pictures.holds(sha256) for sha256 in stored] == [False, False, True, True, True]
    assert images[2].data[0] == 2  # looked at again, so 3 is now the oldest
    pictures.put("f" * 64, b"x" * 1_000)
    assert [pictures.holds(sha256) for sha256 in stored] == [False, False, True, False, True]


def test_picture_that_changed_on_disk_is_not_handed_out(journal: Journal) -> None:
    sha256 = journal.put_blob(b"a picture", "image/jpeg").sha256
    image = ImageCache(journal.reader).image(sha256)
    (journal.run / "blobs" / sha256[:2] / sha256).write_bytes(b"another")
    with pytest.raises(BadBlob):
        _ = image.data


def test_a_stored_picture_goes_to_another_process_as_its_bytes(journal: Journal) -> None:
    """Offline judges run in processes of their own and are handed whole requests."""
    sha256 = journal.put_blob(b"a picture", "image/jpeg").sha256
    picture = pickle.loads(pickle.dumps(ImageCache(journal.reader).image(sha256)))
    assert (picture.data, picture.media_type) == (b"a picture", "image/jpeg")
