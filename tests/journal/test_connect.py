"""One writer a run, on a file system whose locks can be trusted.

Folders of killed imports and merges: the next command that writes a run in the same folder removes them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from plantain.journal import Journal, RunHeader, RunLocked
from plantain.journal.connect import RunLock, check_filesystem, new_run
from plantain.records import InputError

HOLD = """
import sys, time
from pathlib import Path
from plantain.journal.connect import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_second_process_is_refused_with_pid_and_host_until_the_first_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunLocked, match=f"process {holder.pid} on {socket.gethostname()}"):
            RunLock(tmp_path)
        holder.send_signal(signal.SIGKILL)
    RunLock(tmp_path).release()  # the leftovers of the killed process do not block


FORK = """
import os, signal, sys, time
from pathlib import Path
from plantain.journal.connect import RunLock
lock = RunLock(Path(sys.argv[1]))
worker = os.fork()
if worker == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


def test_forked_worker_does_not_keep_the_lock_of_its_killed_parent(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORK, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        with pytest.raises(RunLocked):
            RunLock(tmp_path)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        try:
            RunLock(tmp_path).release()
        finally:
            os.kill(worker, signal.SIGKILL)


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A line of proc(5), mountinfo: the fifth field is the mount point, the type comes after the dash.
    shared = tmp_path / "with space"
    shared.mkdir()
    lines = [
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
        f"2 1 0:9 / {tmp_path}/with\\040space rw - nfs4 host:/x rw",
    ]
    mounts = tmp_path / "mountinfo"
    mounts.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr("plantain.journal.connect.MOUNTS", mounts)
    check_filesystem(tmp_path)
    with pytest.raises(InputError, match=r"on a network file system \(nfs4\)"):
        check_filesystem(shared / "run")


HEADER = RunHeader("id", "name", 0, {}, "")


async def make(run: Path) -> None:
    async with Journal.create(run, HEADER):
        pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_leftovers_of_a_killed_process_are_removed_by_the_next_writer(tmp_path: Path) -> None:
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
        assert names(tmp_path) == [".run.unfinished", "other"] and names(folder.parent) == ["lock", "new"]
        raise InputError("stop")
    assert names(tmp_path) == ["other"]


def test_no_link_is_followed_to_a_folder_that_looks_unfinished(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/lock").write_text("kept")
    (tmp_path / ".x.unfinished").symlink_to("mine")
    asyncio.run(make(tmp_path / "run"))
    assert (tmp_path / "mine/lock").read_text() == "kept"
