"""The order of syncs and renames by which acknowledged records survive a power cut (fsync(2), rename(2))."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from pathlib import Path

import pytest

from journal.examples import HEADER
from plantain.journal import BlobStore, Journal
from plantain.journal.connect import JOURNAL_NAME, open_for_writing


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files and folders that are synced, and of files that get their final name, in order."""
    events: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        events.append(f"sync {'file' if path.is_file() else path.name}")
        sync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        events.append(f"rename to {target.name}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    return events


def test_a_blobs_bytes_name_and_folder_are_synced_before_it_is_used(
    events: list[str], tmp_path: Path
) -> None:
    reference, _ = BlobStore(tmp_path / "blobs").put(b"pixels", "image/png")
    folder = reference.sha256[:2]
    assert events == ["sync blobs", "sync file", f"rename to {reference.sha256}", f"sync {folder}"]
    events.clear()
    # A process killed between rename and sync leaves a name that is not durable yet.
    BlobStore(tmp_path / "blobs").put(b"pixels", "image/png")
    assert events == ["sync blobs", f"sync {folder}"]


def test_a_new_journal_is_whole_before_it_has_its_name(events: list[str], tmp_path: Path) -> None:
    asyncio.run(Journal.create(tmp_path / "runs" / "a", HEADER).close())
    assert events == ["sync runs", f"sync {tmp_path.name}", f"rename to {JOURNAL_NAME}", "sync a"]


def test_every_commit_of_the_writer_is_synced(tmp_path: Path) -> None:
    with closing(open_for_writing(tmp_path / JOURNAL_NAME)) as connection:
        pragmas = ("journal_mode", "synchronous", "fullfsync")
        values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert values == ["wal", 2, 1]  # 2 is FULL (sqlite.org/pragma.html)
