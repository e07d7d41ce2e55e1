"""A power cut at any system call: all acknowledged records survive, and every surviving file is whole."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from journal.power import CALLS, Disk, Event, read_trace
from plantain.journal import BadBlob, BlobStore, Journal, verify
from plantain.records import InputError

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from journal.examples import HEADER, a_task, an_image, one_round
from plantain.journal import Journal
from plantain.records import InputError, TaskState

def acknowledge(what):
    os.write(1, f"ACK {what}\\n".encode())

async def main():
    run = Path(sys.argv[1]) / "run"
    journal = Journal.create(run, HEADER)
    acknowledge("created")
    prepared = journal.put_blob(b"prepared" * 700, "image/jpeg")
    acknowledge(f"blob {prepared.sha256}")
    await journal.add_images([(an_image(prepared), prepared)])
    await journal.add_tasks(a_task(number) for number in range(6))
    acknowledge("planned")
    async def one(number):
        task = a_task(number).id
        attempt = await one_round(journal, task)
        acknowledge(f"attempt {task} {attempt.edited}")
        await journal.close_task(task, TaskState.SUCCESS, 1, "")
        acknowledge(f"closed {task}")
    await asyncio.gather(*(one(number) for number in range(3)))
    await journal.close()
    acknowledge("closed the run")
    journal = Journal.open(run)
    await asyncio.gather(*(one(number) for number in range(3, 6)))
    await journal.close()
    acknowledge("closed the run")

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The log of a traced run, and the folder it ran in."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    folder = tmp_path_factory.mktemp("traced")
    log = folder / "log"
    (folder / "disk").mkdir()
    tracing = [strace, "-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-e", "signal=none"]
    program = [sys.executable, "-c", PROGRAM, str(folder / "disk"), str(Path(__file__).parents[1])]
    done = subprocess.run([*tracing, "-o", str(log), *program], capture_output=True, text=True)
    if "ptrace" in done.stderr and done.returncode != 0:
        pytest.skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return log, folder / "disk"


def materialise(left: dict[str, bytes | None], root: str, onto: Path) -> None:
    for path, content in left.items():
        target = onto / Path(path).relative_to(root)
        if content is None:
            target.mkdir()
        else:
            target.write_bytes(content)


async def check(run: Path, acknowledged: list[list[str]]) -> None:
    for what, *rest in acknowledged:
        if what == "blob":  # before it is resumed, which removes what no row names yet
            BlobStore(run / "blobs").read(rest[0])
    try:
        journal = Journal.open(run)
    except InputError:
        assert not acknowledged, "the run is gone"
        return
    async with journal:
        assert verify(journal.reader).problems == ()
        for what, *rest in acknowledged:
            if what == "planned":
                assert sum(journal.reader.counts().values()) == 6
            elif what == "attempt":
                (attempt,) = journal.reader.attempts(rest[0])
                assert attempt.edited == rest[1]
                assert attempt.verdict is not None
            elif what == "closed" and len(rest) == 1:
                assert journal.reader.task(rest[0]).state == "success"


def cut_everywhere(
    trace: tuple[Path, Path],
    scratch: Path,
    chance: random.Random | None,
    struck: Callable[[Event], bool] = lambda event: False,
) -> int:
    """Cut the power after every event that changes the disk's contents; return the number of cuts.

    Events that `struck` picks never reach the disk.
    """
    log, root = trace
    disk = Disk(str(root))
    acknowledged: list[list[str]] = []
    cuts = 0
    before: tuple[dict[str, bytes | None], int] | None = None
    for number, event in enumerate(read_trace(log)):
        if event.name == "write" and event.texts and event.texts[-1].startswith(b"ACK "):
            acknowledged.append(event.texts[-1].decode().split()[1:])
        elif struck(event) or not disk.play(event):
            continue
        if chance is not None and chance.random() < 0.6:
            continue  # a sample is enough: every cut differs by chance
        left = disk.after_power_cut(chance)
        if (left, len(acknowledged)) == before:
            continue
        before = left, len(acknowledged)
        cut = scratch / f"cut{number}"
        cut.mkdir()
        materialise(left, str(root), cut)
        asyncio.run(check(cut / "run", acknowledged))
        shutil.rmtree(cut)
        cuts += 1
    assert acknowledged[-1] == ["closed", "the", "run"]
    return cuts


@pytest.mark.parametrize("seed", [None, 1])
def test_power_cut_after_any_system_call(trace: tuple[Path, Path], tmp_path: Path, seed: int | None) -> None:
    """Without seed nothing unsynced survives; with one, chance decides page by page."""
    print("seed", seed)
    cuts = cut_everywhere(trace, tmp_path, None if seed is None else random.Random(seed))
    # Syncs alone: 7 blobs of three each, the making of the database, one for each group of commits.
    assert cuts > 40


@pytest.mark.parametrize(
    "struck",
    [
        pytest.param(lambda event: event.file.endswith(".tmp"), id="blob"),
        pytest.param(lambda event: event.file.endswith("-wal"), id="log"),
    ],
)
def test_a_missing_sync_is_detected(
    trace: tuple[Path, Path], tmp_path: Path, struck: Callable[[Event], bool]
) -> None:
    """The same trace without one kind of sync must fail, or the test above proves nothing."""
    with pytest.raises((AssertionError, BadBlob)):
        cut_everywhere(
            trace, tmp_path, None, lambda event: event.name in {"fsync", "fdatasync"} and struck(event)
        )
