"""A build on a disk that fills up stops cleanly, says what it still needs, and goes on once there is room."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from pipeline.wrecks import check_wreck, derived
from plantain.journal.disk.space import BASE_ROOM, EDIT_ROOM
from plantain.journal.reader import JournalReader
from plantain.pipeline.run import run_build

DISK = 64 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk_stops_the_build_and_room_lets_it_go_on(small_disk: Path, tmp_path: Path) -> None:
    catalogue = quick_catalogue(tmp_path / "catalogue")
    recipe = quick_recipe(catalogue)
    recipe = recipe.model_copy(update={"limits": recipe.limits.model_copy(update={"concurrency": 1})})
    asyncio.run(run_build(recipe, tmp_path / "undisturbed", method=quick_method(CallLog(None))))
    with JournalReader.open(tmp_path / "undisturbed") as reader:
        blobs = reader.blob_bytes()
    # Room for one edit at a time and for half of the images that the run stores, however its commits are grouped.
    (small_disk / "ballast").write_bytes(b"\0" * (DISK - BASE_ROOM - EDIT_ROOM - blobs // 2))

    stopped = asyncio.run(run_build(recipe, small_disk / "run", method=quick_method(CallLog(None))))
    assert stopped.stopped is not None and "MB" in stopped.stopped and not stopped.failed
    check_wreck(small_disk / "run")
    with JournalReader.open(small_disk / "run") as reader:
        assert 0 < reader.blob_bytes() < blobs

    subprocess.run(["mount", "-o", "remount,size=128m", small_disk], check=True)
    resumed = asyncio.run(run_build(recipe, small_disk / "run", method=quick_method(CallLog(None))))
    assert resumed.stopped is None
    assert derived(small_disk / "run") == derived(tmp_path / "undisturbed")
