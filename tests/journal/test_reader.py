"""Reading without a lock: while another process writes, from copies, from folders that cannot be written."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from journal.examples import Do, a_run, a_task, one_round
from plantain.journal import BadBlob, BlobStore, Journal, RunHeader
from plantain.records import InputError, TaskState

COUNT = """
import os, sys
from pathlib import Path
from plantain.journal import JournalReader, rows
from plantain.records import Verdict
rows._adapter(Verdict)  # imports that the other user may not make
if os.geteuid() == 0:
    os.setuid(65534)  # permissions do not bind root
with JournalReader.open(Path(sys.argv[1])) as reader:
    print(sum(reader.counts().values()), reader.attempt_count(), len(list(reader.all_attempts())))
"""


def count_in_another_process(run: Path) -> list[int]:
    program = COUNT if run.name == "copy" else COUNT.replace("os.geteuid() == 0", "False")
    done = subprocess.run([sys.executable, "-c", program, str(run)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_another_process_reads_while_this_one_writes(do: Do, journal: Journal, tmp_path: Path) -> None:
    do(one_round(journal, a_task(0).id))
    assert count_in_another_process(tmp_path) == [3, 1, 1]
    do(one_round(journal, a_task(1).id))
    assert count_in_another_process(tmp_path) == [3, 2, 2]


@pytest.mark.parametrize("what", ["closed", "killed"])
def test_copy_in_a_folder_that_cannot_be_written(tmp_path: Path, what: str) -> None:
    run = tmp_path / "run"

    async def work(copy: Path) -> None:
        async with await a_run(run) as journal:
            await one_round(journal, a_task(0).id)
            if what != "closed":
                shutil.copytree(run, copy)  # as a kill leaves it: the log not yet in the database
        if what == "closed":
            shutil.copytree(run, copy)

    with tempfile.TemporaryDirectory() as readable:  # pytest's own folder is closed to other users
        copy = Path(readable) / "copy"
        asyncio.run(work(copy))
        assert (copy / "journal.sqlite-wal").exists() == (what != "closed")
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        Path(readable).chmod(0o755)
        before = sorted(copy.rglob("*"))
        assert count_in_another_process(copy) == [3, 1, 1]
        assert sorted(copy.rglob("*")) == before
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)


def test_listing_continues_while_tasks_are_closed(do: Do, journal: Journal) -> None:
    """A build closes the tasks that it has read while it reads further ones."""
    do(journal.add_tasks(a_task(number) for number in range(2200)))
    seen = []
    for number, row in enumerate(journal.reader.tasks(TaskState.PENDING)):
        seen.append(row.id)
        if number % 50 == 0:
            do(journal.close_task(row.id, TaskState.FAILED, 1, ""))
    assert seen == sorted(a_task(number).id for number in range(2200))


def test_task_by_prefix(do: Do, journal: Journal) -> None:
    do(journal.add_tasks(a_task(number) for number in range(40)))
    ids = [row.id for row in journal.reader.tasks()]
    assert journal.reader.task(ids[7]).id == ids[7]
    assert journal.reader.task(ids[7][:12]).id == ids[7]
    with pytest.raises(InputError, match="could be any of"):
        journal.reader.task("")
    with pytest.raises(InputError, match="no task's id starts with 'xyz'"):
        journal.reader.task("xyz")
    with pytest.raises(InputError, match="no image has the id 'i9'"):
        journal.reader.image("i9")


def test_reader_cannot_write(journal: Journal) -> None:
    with pytest.raises(Exception, match="readonly"):
        journal.reader.connection.execute("DELETE FROM meta")


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


def test_unreferenced_blobs_are_removed_when_a_killed_run_is_resumed(tmp_path: Path) -> None:
    """The journal's table `blob` lists its files; a killed process may have stored more."""
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


def test_a_planted_link_is_refused(tmp_path: Path) -> None:
    run, home = tmp_path / "run", tmp_path / "home"
    asyncio.run(Journal.create(run, HEADER).close())
    (run / "blobs").rmdir()
    home.mkdir()
    (run / "blobs").symlink_to(home)
    with pytest.raises(InputError, match="a link that leads out"):
        Journal.open(run)
