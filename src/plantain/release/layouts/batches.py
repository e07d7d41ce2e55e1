"""Many small files, made durable in batches: a sync of each would cost more than writing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from plantain.files.writing import create
from plantain.release.plan import ReleaseFile
from plantain.release.staging import StagedEntry, Staging, make_folder, sync_everything

Read = Callable[[StagedEntry], tuple[bytes, ReleaseFile]]
"""From an entry to its file: the bytes, and its line in the list of files, the path included."""


def write_batches(staging: Staging, layout: str, read: Read) -> None:
    """Writes every planned file of a layout that is not done; `read` is called in threads.

    While one batch is being made durable the next is written, so that neither waits for the other.
    """
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="plantain-tree") as pool:
        before: _Batch | None = None
        for stem, shards, _ in staging.shards(layout):
            for shard in range(shards):
                entries = list(staging.entries(layout, stem, shard))
                if all(staging.is_done(entry.path) for entry in entries):
                    continue
                begun = _begin(staging, entries, read, pool)
                if before is not None:
                    _finish(staging, before)
                before = begun
        if before is not None:
            _finish(staging, before)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Files under way; their names count for nothing until they are recorded."""

    targets: Sequence[Path]
    written: Sequence[Future[ReleaseFile]]


def _begin(staging: Staging, entries: Sequence[StagedEntry], read: Read, pool: ThreadPoolExecutor) -> _Batch:
    for folder in sorted({(staging.out / entry.path).parent for entry in entries}):
        make_folder(staging.out, folder)

    def write(entry: StagedEntry) -> ReleaseFile:
        data, listed = read(entry)
        with create(staging.out / entry.path) as file:
            file.write(data)
        return listed

    return _Batch(
        [staging.out / entry.path for entry in entries], [pool.submit(write, entry) for entry in entries]
    )


def _finish(staging: Staging, batch: _Batch) -> None:
    files = [one.result() for one in batch.written]
    # Recorded last: what is not recorded is written anew, whatever a kill or a power cut left under its name.
    sync_everything(staging.out, batch.targets)
    staging.record(files)
