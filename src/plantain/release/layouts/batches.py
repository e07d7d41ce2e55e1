"""Many small files, made durable in batches: a sync of each would cost more than writing them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from plantain.files.writing import create
from plantain.release.plan import ReleaseFile
from plantain.release.staging import StagedEntry, Staging, make_folder, part_name, sync_everything

Read = Callable[[StagedEntry], tuple[bytes, ReleaseFile]]
"""From an entry to its file: the bytes, and its line in the list of files, the path included."""


def write_batches(staging: Staging, layout: str, read: Read) -> None:
    """Writes every planned file of a layout that is not done; `read` is called in threads."""
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="plantain-tree") as pool:
        for stem, shards, _ in staging.shards(layout):
            for shard in range(shards):
                batch = list(staging.entries(layout, stem, shard))
                if not all(staging.is_done(entry.path) for entry in batch):
                    _write_batch(staging, batch, read, pool)


def _write_batch(staging: Staging, batch: list[StagedEntry], read: Read, pool: ThreadPoolExecutor) -> None:
    for folder in sorted({(staging.out / entry.path).parent for entry in batch}):
        make_folder(staging.out, folder)

    def write(entry: StagedEntry) -> ReleaseFile:
        data, listed = read(entry)
        with create(part_name(staging.out / entry.path)) as file:
            file.write(data)
        return listed

    files = list(pool.map(write, batch))
    targets = [staging.out / entry.path for entry in batch]
    # Data first, then names: a name must never stand for bytes that a power cut can take back.
    sync_everything(staging.out, [part_name(target) for target in targets])
    for target in targets:
        part_name(target).replace(target)
    sync_everything(staging.out, targets)
    staging.record(files)
