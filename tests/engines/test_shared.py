"""Pictures in a folder that machines share: written once by a worker, and taken by the head that asked alone."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from plantain.engines import shared
from plantain.engines.packing import LARGE, pack, unpack
from plantain.engines.shared import NotShared, SharedPictures
from plantain.journal import Journal, RunHeader
from plantain.journal.disk.blobs import keep_blobs_in
from plantain.runs.engine import arrivals

PICTURE = bytes(range(256)) * (LARGE // 256)
SHA256 = hashlib.sha256(PICTURE).hexdigest()


def begun(tmp_path: Path) -> Journal:
    """A new run whose blobs stand elsewhere."""
    (tmp_path / "shared").mkdir(exist_ok=True)
    keep_blobs_in(tmp_path / "run", tmp_path / "shared")
    return Journal.create(tmp_path / "run", RunHeader("r", "run", 1, {}, "0"))


def answered(store: SharedPictures, value: object) -> object:
    """What a head reads of a worker's answer."""
    answer, files = pack(value, store.on_workers())
    assert not files and PICTURE not in answer
    return unpack(answer, files, store)


def test_what_a_worker_wrote_is_moved_not_written_again(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    with arrivals(journal) as store:
        assert store is not None
        assert answered(store, {"picture": PICTURE}) == {"picture": PICTURE}
        left = Path(store.arriving, SHA256)
        # The same picture of another call, which is read once this one is moved.
        another, _ = pack(PICTURE, store.on_workers())
        written = left.stat().st_ino
        blob = journal.put_blob(PICTURE, "image/png")
        assert not left.exists() and journal.reader.blobs.path(blob.sha256).stat().st_ino == written
        assert unpack(another, {}, store) == PICTURE
        work, files = pack(("judge this", PICTURE), store)
        assert not files and unpack(work, files, store.on_workers()) == ("judge this", PICTURE)
        assert answered(store, PICTURE) == PICTURE  # nobody takes this one
    asyncio.run(journal.close())
    assert list((tmp_path / "shared").glob("*/arriving/*")) == []


def test_a_picture_that_no_run_has_travels(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    with arrivals(journal) as store:
        _, files = pack(PICTURE, store)
    asyncio.run(journal.close())
    assert files == {SHA256: PICTURE}


def test_what_an_earlier_head_asked_for_reaches_no_later_one(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    first = arrivals(journal)
    killed = first.__enter__()  # its head never leaves the block
    assert killed is not None
    asyncio.run(journal.close())
    answer, _ = pack(PICTURE, killed.on_workers())

    journal = Journal.open(tmp_path / "run")
    with arrivals(journal) as store:
        assert store is not None and store.arriving != killed.arriving
        assert not Path(killed.arriving).exists()
        with pytest.raises(NotShared, match="same path"):
            pack(PICTURE, killed.on_workers())  # it comes too late, and leaves nothing
        assert [path.name for path in Path(store.arriving).parent.iterdir()] == [Path(store.arriving).name]
    asyncio.run(journal.close())
    assert answer
    first.__exit__(None, None, None)


def test_bytes_that_were_changed_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "SEEN_WITHIN_S", 0.0)
    journal = begun(tmp_path)
    with arrivals(journal) as store:
        assert store is not None
        answer, files = pack(PICTURE, store.on_workers())
        Path(store.arriving, SHA256).write_bytes(PICTURE[:-1] + b"x")
        with pytest.raises(NotShared, match="other bytes"):
            unpack(answer, files, store)
        Path(store.arriving, SHA256).unlink()
        with pytest.raises(NotShared, match="No such file"):
            unpack(answer, files, store)
    asyncio.run(journal.close())
