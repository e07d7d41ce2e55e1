"""Folders of killed imports and merges: the next command that writes a run beside them removes them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from plantain.journal import Journal, RunHeader
from plantain.journal.connect import new_run
from plantain.journal.rows import RunLocked
from plantain.records import InputError

HEADER = RunHeader("id", "name", 0, {}, "")


async def make(run: Path) -> None:
    async with Journal.create(run, HEADER):
        pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next_writer_of_any_run(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with new_run(tmp_path / "killed") as folder:
            asyncio.run(make(folder))
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert names(tmp_path) == [".killed.unfinished"]
    asyncio.run(make(tmp_path / "other"))
    assert names(tmp_path) == ["other"]


def test_a_running_import_keeps_its_folder_and_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="stop"), new_run(tmp_path / "run") as folder:
        asyncio.run(make(folder))
        asyncio.run(make(tmp_path / "other"))
        with pytest.raises(RunLocked), new_run(tmp_path / "run"):
            pass
        assert names(tmp_path) == [".run.unfinished", "other"] and names(folder.parent) == ["lock", "run"]
        raise InputError("stop")
    assert names(tmp_path) == ["other"]


def test_no_link_is_followed_to_a_folder_that_looks_unfinished(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/lock").write_text("kept")
    (tmp_path / ".x.unfinished").symlink_to("mine")
    asyncio.run(make(tmp_path / "run"))
    assert (tmp_path / "mine/lock").read_text() == "kept"
