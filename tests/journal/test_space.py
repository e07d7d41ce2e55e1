"""A full disk stops a run cleanly, and the run continues once there is room."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from journal.examples import a_call, a_run, a_task
from plantain.journal import DiskFull, Journal, verify
from plantain.journal import blobs as room


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB of its own; mounting one needs root."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_no_call_is_started_that_could_not_be_kept(small_disk: Path) -> None:
    """3 MB are less than one edit may bring: the answer would be paid and lost."""

    async def work() -> None:
        async with await a_run(small_disk / "run", tasks=5) as journal:
            with pytest.raises(DiskFull) as caught:
                await journal.start_call(a_call(a_task(0).id))
            needed = (room.BASE_ROOM + room.EDIT_ROOM) / 1e6
            assert f"at least {needed:.0f} MB needed" in str(caught.value)
            assert not journal.reader.open_calls()

    asyncio.run(work())


LIMITED = """
import asyncio, json, resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from journal.examples import a_run
from plantain.journal import DiskFull
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # the limit would cut it short

async def main():
    journal = await a_run(Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    written, kinds = 0, []
    try:
        journal.put_blob(bytes(500_000), "image/png")
    except DiskFull:
        kinds.append("blob")
    try:
        for number in range(1000):
            await journal.set_meta(f"key {number}", "x" * 5000)
            written += 1
    except DiskFull:
        kinds.append("journal")
    await journal.close()
    print(json.dumps([written, kinds]))

asyncio.run(main())
"""


def test_limit_on_file_size_is_a_full_disk_too(tmp_path: Path) -> None:
    """Needs no root: files of this process may not grow beyond 400 kB."""
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(run), str(Path(__file__).parents[1])],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    written, kinds = json.loads(done.stdout)
    assert kinds == ["blob", "journal"]
    assert written > 10

    async def look() -> None:
        async with Journal.open(run) as journal:
            assert verify(journal.reader).ok
            assert journal.reader.meta(f"key {written - 1}") is not None
            assert journal.reader.meta(f"key {written}") is None

    asyncio.run(look())
