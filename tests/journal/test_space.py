"""A full disk stops a run cleanly, and the run continues once there is room."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from journal.examples import a_call, a_run, a_task
from plantain.journal import DiskFull, Journal, verify
from plantain.journal import blobs as room


def test_no_call_starts_without_room_for_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3 MB are less than the possible size of one edit: the answer would be paid and lost."""

    async def work() -> None:
        async with await a_run(tmp_path / "run", tasks=5) as journal:
            monkeypatch.setattr(room.shutil, "disk_usage", lambda folder: SimpleNamespace(free=3_000_000))
            with pytest.raises(DiskFull) as caught:
                await journal.start_call(a_call(a_task(0).id))
            needed = (room.BASE_ROOM + room.EDIT_ROOM) / 1e6
            assert f"at least {needed:.0f} MB needed" in str(caught.value)
            assert not journal.reader.open_calls()

    asyncio.run(work())


LIMITED = """
import asyncio, json, resource, signal, sys
from pathlib import Path
from types import SimpleNamespace
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
