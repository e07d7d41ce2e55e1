"""The interface of a layout of a release, the images that it reads, and the trees of files that layouts share.

Images are blobs, checked as they are read, a few ahead of their writer.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import orjson

from plantain.files.installed import entry_named, installed, load_entry
from plantain.files.opening import create, open_plain, replace_file
from plantain.journal import BlobRef, BlobStore
from plantain.records import InputError
from plantain.release.plan import ORIGINAL, ORIGINALS_INDEX, ReleaseFile
from plantain.release.proof.provenance import C2paSigner
from plantain.release.staging import StagedEntry, Staging, make_folder, sync_everything
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

AHEAD = 16
"""Rows whose images are read before they are needed: enough to keep two cores busy, and about 10 MB."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReleasedImage:
    """One image as released: the blob's bytes, or these with a signed manifest."""

    data: bytes
    sha256: str
    recorded: BlobRef

    def listed(
        self,
        task: str | None,
        attempt: AttemptRecord | None,
        role: str,
        *,
        path: str = "",
        row: int | None = None,
        member: str | None = None,
    ) -> ReleaseFile:
        """Return its line in the list of files; the path of an embedded image is set when its file is written."""
        return ReleaseFile(
            path=path,
            sha256=self.sha256,
            bytes=len(self.data),
            role=role,
            pixel_sha256=self.recorded.pixel_sha256,
            task=task,
            generation=attempt.generation if attempt else None,
            round=attempt.round if attempt else None,
            row=row,
            member=member,
            source_sha256="" if self.sha256 == self.recorded.sha256 else self.recorded.sha256,
        )


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """One image to be read, and its attempt."""

    image: BlobRef
    task: str
    round: int
    edited: bool = True


class ReleasedImages:
    """Reads blobs in threads, in order. A signed image is kept: signing again gives other bytes.

    Hashing an image costs as much as writing it, and it may be in several tables: a blob is hashed when it is first
    read, and again if its file changed.
    """

    def __init__(self, blobs: BlobStore, signer: C2paSigner | None, kept: Path) -> None:
        self._blobs = blobs
        self._signer = signer
        self._kept = kept
        self._signing = threading.Lock()
        self._checked: dict[str, tuple[int, int, int]] = {}
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="plantain-release")

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def stream(
        self, wanted: Iterable[tuple[T, Sequence[ImageRequest]]]
    ) -> Iterator[tuple[T, list[ReleasedImage]]]:
        """Yield every item with its images, in order. Raises BadBlob for an image that is missing or changed."""
        waiting: deque[tuple[T, list[Future[ReleasedImage]]]] = deque()
        for item, requests in wanted:
            waiting.append((item, [self._pool.submit(self.read, one) for one in requests]))
            if len(waiting) > AHEAD:
                item, images = waiting.popleft()
                yield item, [image.result() for image in images]
        for item, images in waiting:
            yield item, [image.result() for image in images]

    def holds(self, image: BlobRef) -> bool:
        """Return True if the run has the bytes: an imported one may not."""
        return self._blobs.holds(image.sha256)

    def read(self, wanted: ImageRequest) -> ReleasedImage:
        """Return one image, in the calling thread. Raises BadBlob."""
        image = wanted.image
        data = self._read(image.sha256)
        if self._signer is None or not wanted.edited:
            return ReleasedImage(data, image.sha256, image)
        signed = self._signed(self._signer, data, wanted)
        return ReleasedImage(signed, hashlib.sha256(signed).hexdigest(), image)

    def _read(self, sha256: str) -> bytes:
        path = self._blobs.path(sha256)
        if sha256 in self._checked:
            with contextlib.suppress(OSError), open_plain(path) as file:
                if _stamp(os.fstat(file.fileno())) == self._checked[sha256]:
                    return file.read()
        data = self._blobs.read(sha256)
        self._checked[sha256] = _stamp(path.stat())
        return data

    def _signed(self, signer: C2paSigner, data: bytes, wanted: ImageRequest) -> bytes:
        # By attempt, not by image: the manifest names the task and the round.
        path = self._kept / f"{wanted.task}-{wanted.round}-{wanted.image.sha256[:20]}"
        with self._signing:  # a chosen image can be in several pairs that are read at the same time
            if path.exists():
                return path.read_bytes()
            signed = signer.sign(data, wanted.task, wanted.round)
            replace_file(path, signed)
            return signed


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


GROUP = "plantain.layouts"
"""Entry point group: name of the layout -> a `Layout`."""

LAYOUTS = tuple(installed(GROUP))
"""Names of all layouts. `parquet` includes the `preference` table."""

ALWAYS = "trajectory"
"""The layout of every release: the records that an import reads."""

ORIGINALS = "tree-originals"
"""Name under which originals are planned as files."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout.

    Attributes:
        write: writes its files, except those that are done; called again when an export is resumed.
        path_of: path of an edited image in a tree of files, relative to the release, "" to leave it out;
            `write_images` writes it there. None for a layout without such a tree.
    """

    write: Callable[[Staging, ReleasedImages], None]
    path_of: Callable[[TaskRecord, AttemptRecord], str] | None = None


def chosen(names: Iterable[str]) -> dict[str, Layout]:
    """Return the layouts of these names, after the one of every release.

    Raises:
        InputError: a name is unknown (the nearest is suggested), or its package cannot be loaded.
    """
    found: dict[str, Layout] = {}
    for name in dict.fromkeys([ALWAYS, *names]):
        layout = load_entry(entry_named(GROUP, name, "--layout"), "layout")
        if not isinstance(layout, Layout):
            raise InputError(
                f"layout {name!r}: its entry point is not a plantain.release.layouts.contract.Layout"
            )
        found[name] = layout
    return found


def write_images(staging: Staging, released: ReleasedImages, name: str) -> None:
    """Write the edited images of a layout's tree at their `path_of`, in batches that become durable together."""

    def read(entry: StagedEntry) -> tuple[bytes, list[ReleaseFile]]:
        record = from_json(entry.record)
        attempt = record.attempts[entry.first]
        assert attempt.edited is not None
        image = released.read(ImageRequest(attempt.edited, record.task_id, attempt.round or 0))
        return image.data, [image.listed(record.task_id, attempt, attempt.role, path=entry.path)]

    write_batches(staging, name, read)


def write_originals(staging: Staging, released: ReleasedImages) -> None:
    """Write source images as `originals/DATASET/ID.jpeg`, each once, then their index."""

    def read(entry: StagedEntry) -> tuple[bytes, list[ReleaseFile]]:
        image = released.read(ImageRequest(original_of(staging, entry), "", 0, edited=False))
        return image.data, [image.listed(None, None, ORIGINAL, path=entry.path)]

    def index() -> Iterator[bytes]:
        for stem, shards, _ in staging.shards(ORIGINALS):
            for shard in range(shards):
                for entry in staging.entries(ORIGINALS, stem, shard):
                    _, cells = staging.described_original(original_of(staging, entry).sha256)
                    yield orjson.dumps({"path": entry.path, **orjson.loads(cells)}) + b"\n"

    write_batches(staging, ORIGINALS, read)
    if staging.shards(ORIGINALS):
        staging.write_chunks(ORIGINALS_INDEX, index)


def original_of(staging: Staging, entry: StagedEntry) -> BlobRef:
    """Return the original of an entry's task."""
    original = staging.original(from_json(entry.record).image.prepared_sha256)
    assert original is not None
    return original


_Batch = tuple[list[Path], list[Future[list[ReleaseFile]]]]


def write_batches(
    staging: Staging, layout: str, read: Callable[[StagedEntry], tuple[bytes, list[ReleaseFile]]]
) -> None:
    """Write every planned file of a layout that is not done.

    `read` is called in threads. It returns a file's bytes, and its line in the list of files with those of the images
    inside it.

    Syncing each file would cost more than writing it, so a batch is synced at once, while the next is written.
    """
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="plantain-tree") as pool:

        def start(entries: Sequence[StagedEntry]) -> _Batch:
            paths = [staging.out / entry.path for entry in entries]
            for folder in sorted({path.parent for path in paths}):
                make_folder(staging.out, folder)
            return paths, [pool.submit(write, entry) for entry in entries]

        def write(entry: StagedEntry) -> list[ReleaseFile]:
            data, listed = read(entry)
            with create(staging.out / entry.path) as file:
                file.write(data)
            return listed

        def finish(batch: _Batch) -> None:
            files = [file for one in batch[1] for file in one.result()]
            # Recorded last: files that are not recorded are written again.
            sync_everything(staging.out, batch[0])
            staging.record(files)

        before: _Batch | None = None
        for stem, shards, _ in staging.shards(layout):
            for shard in range(shards):
                entries = list(staging.entries(layout, stem, shard))
                if all(staging.is_done(entry.path) for entry in entries):
                    continue
                started = start(entries)
                if before is not None:
                    finish(before)
                before = started
        if before is not None:
            finish(before)
