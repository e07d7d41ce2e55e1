"""Blobs are whole, durable before they are referred to, and written once; where they are is settled at the start."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plantain.journal import BadBlob, BlobStore, Journal, RunHeader
from plantain.records import InputError


def test_put_then_read(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    reference, is_new = store.put(b"pixels", "image/png")
    assert is_new
    assert reference.sha256 == hashlib.sha256(b"pixels").hexdigest()
    assert (reference.bytes, reference.media_type) == (6, "image/png")
    assert store.path(reference.sha256) == tmp_path / "blobs" / reference.sha256[:2] / reference.sha256
    assert store.read(reference.sha256) == b"pixels"
    assert store.put(b"pixels", "image/png") == (reference, False)


@pytest.mark.parametrize("damage", [b"pixelS", b"pix"])
def test_damaged_blob_is_reported_and_written_again(tmp_path: Path, damage: bytes) -> None:
    store = BlobStore(tmp_path)
    reference, _ = store.put(b"pixels", "image/png")
    store.path(reference.sha256).write_bytes(damage)
    with pytest.raises(BadBlob, match=reference.sha256):
        store.read(reference.sha256)
    assert store.put(b"pixels", "image/png") == (reference, True)
    assert store.read(reference.sha256) == b"pixels"


def test_many_threads_put_the_same_and_other_bytes(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    contents = [f"image {number % 7}".encode() for number in range(70)]
    with ThreadPoolExecutor(8) as pool:
        references = list(pool.map(lambda data: store.put(data, "image/png")[0], contents))
    assert [store.read(reference.sha256) for reference in references] == contents
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 7  # no temporary file is left


def test_what_no_row_names_is_collected_when_a_killed_run_is_resumed(tmp_path: Path) -> None:
    """What the journal names is in its table `blob` (the schema); a killed process may have stored more."""
    run = tmp_path / "run"
    asyncio.run(Journal.create(run, HEADER).close())
    orphan, _ = BlobStore(run / "blobs").put(b"pixels", "image/png")
    folder = run / "blobs" / orphan.sha256[:2]
    (folder / f".{orphan.sha256}.123.0.tmp").write_bytes(b"pix")
    asyncio.run(Journal.open(run).close())  # closed properly: nothing is looked for
    assert len(list(folder.iterdir())) == 2
    with contextlib.closing(sqlite3.connect(run / "journal.sqlite")) as database, database:
        database.execute("UPDATE session SET ended_at = NULL")
    asyncio.run(Journal.open(run).close())
    assert list(folder.iterdir()) == []


HEADER = RunHeader("r", "run", 1, {}, "0")


def test_a_link_that_a_stranger_put_there_is_refused(tmp_path: Path) -> None:
    run, home = tmp_path / "run", tmp_path / "home"
    asyncio.run(Journal.create(run, HEADER).close())
    (run / "blobs").rmdir()
    home.mkdir()
    (run / "blobs").symlink_to(home)
    with pytest.raises(InputError, match="a link that leads out"):
        Journal.open(run)
