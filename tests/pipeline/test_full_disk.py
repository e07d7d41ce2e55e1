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
from plantain.pipeline.run import run_build


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk_stops_the_build_and_room_lets_it_go_on(small_disk: Path, tmp_path: Path) -> None:
    catalogue = quick_catalogue(tmp_path / "catalogue")
    recipe = quick_recipe(catalogue)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * 3_000_000)

    stopped = asyncio.run(run_build(recipe, small_disk / "run", method=quick_method(CallLog(None))))
    assert stopped.stopped is not None and "MB" in stopped.stopped and not stopped.failed
    check_wreck(small_disk / "run")

    subprocess.run(["mount", "-o", "remount,size=128m", small_disk], check=True)
    resumed = asyncio.run(run_build(recipe, small_disk / "run", method=quick_method(CallLog(None))))
    assert resumed.stopped is None
    asyncio.run(run_build(recipe, tmp_path / "undisturbed", method=quick_method(CallLog(None))))
    assert derived(small_disk / "run") == derived(tmp_path / "undisturbed")
