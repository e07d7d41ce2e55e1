"""Where the blobs of a run stand is settled when it begins."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from plantain.journal import Journal, RunHeader
from plantain.journal.disk.blobs import keep_blobs_in
from plantain.records import InputError

HEADER = RunHeader("r", "run", 1, {}, "0")


def test_a_run_finds_its_blobs_again_and_no_others(tmp_path: Path) -> None:
    run, storage = tmp_path / "run", tmp_path / "storage"
    storage.mkdir()
    keep_blobs_in(run, storage)
    journal = Journal.create(run, HEADER)
    blob = journal.put_blob(b"a picture", "image/png")
    asyncio.run(journal.close())
    assert [path.read_bytes() for path in storage.glob(f"run-*/blobs/*/{blob.sha256}")] == [b"a picture"]

    keep_blobs_in(run, storage)  # the same command goes on
    keep_blobs_in(tmp_path / "other", storage)
    assert len(list(storage.iterdir())) == 2
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InputError, match="fixed when a run starts"):
        keep_blobs_in(run, tmp_path / "elsewhere")

    shutil.move(storage, tmp_path / "unmounted")
    with pytest.raises(InputError, match=f"images are in {re.escape(str(storage))}.*mount it first"):
        Journal.open(run)


def test_a_run_that_has_its_own_keeps_them(tmp_path: Path) -> None:
    asyncio.run(Journal.create(tmp_path / "run", HEADER).close())
    with pytest.raises(InputError, match="fixed when a run starts"):
        keep_blobs_in(tmp_path / "run", tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        keep_blobs_in(tmp_path / "new", tmp_path / "nowhere")


def test_a_link_that_a_stranger_put_there_is_refused(tmp_path: Path) -> None:
    run, home = tmp_path / "run", tmp_path / "home"
    asyncio.run(Journal.create(run, HEADER).close())
    (run / "blobs").rmdir()
    home.mkdir()
    (run / "blobs").symlink_to(home)
    with pytest.raises(InputError, match="a link that leads out"):
        Journal.open(run)
