"""The interface of a layout of a release, and the trees of files that layouts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import orjson

from plantain.files.installed import entry_named, installed, load_entry
from plantain.files.opening import create
from plantain.journal import BlobRef
from plantain.records import InputError
from plantain.release.plan import ORIGINAL, ORIGINALS_INDEX, ReleaseFile
from plantain.release.released_images import ReleasedImages
from plantain.release.staging import StagedEntry, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

GROUP = "plantain.layouts"
"""Entry point group: name of the layout -> a `Layout`."""

LAYOUTS = tuple(installed(GROUP))
"""Names of all layouts. `parquet` includes the `preference` table."""

ALWAYS = "trajectory"
"""The layout of every release: the records that an import reads."""

ORIGINALS = "tree-originals"
"""Name under which originals are planned as files."""

_AT_ONCE = 1024
"""Files of a tree that are planned in memory."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout of a release: how its files are written.

    Attributes:
        write: function that writes the layout's files with the methods of `Staging`.
        path_of: function (task, attempt) -> path at which `write_images` writes the edited image, relative to the
            release, or "" to omit it; a taken path gets a suffix. None for a layout without image files of its own.
    """

    write: Callable[[Staging, ReleasedImages], None]
    path_of: Callable[[TaskRecord, AttemptRecord], str] | None = None


def chosen(names: Iterable[str]) -> dict[str, Layout]:
    """Return the layouts of these names, after the layout that every release has.

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
    """Write the edited images of the layout `name` to the paths from its `path_of`.

    Call it in `Layout.write` with the arguments received there. Raise BadBlob if an image is missing.
    """

    def read(entry: StagedEntry) -> tuple[bytes, list[ReleaseFile]]:
        record = from_json(entry.record)
        attempt = record.attempts[entry.first]
        assert attempt.edited is not None
        image = released.read((attempt.edited, (record.task_id, attempt.round or 0)))
        return image.data, [image.listed(record.task_id, attempt, attempt.role, path=entry.path)]

    write_each(staging, name, read)


def write_originals(staging: Staging, released: ReleasedImages) -> None:
    """Write source images as `originals/DATASET/ID.jpeg`, each once, then their index."""

    def read(entry: StagedEntry) -> tuple[bytes, list[ReleaseFile]]:
        image = released.read((original_of(staging, entry), None))
        return image.data, [image.listed(None, None, ORIGINAL, path=entry.path)]

    def index() -> Iterator[bytes]:
        for entry in staging.every_entry(ORIGINALS):
            _, cells = staging.described_original(original_of(staging, entry).sha256)
            yield orjson.dumps({"path": entry.path, **orjson.loads(cells)}) + b"\n"

    write_each(staging, ORIGINALS, read)
    if staging.shards(ORIGINALS):
        staging.write_chunks(ORIGINALS_INDEX, index())


def original_of(staging: Staging, entry: StagedEntry) -> BlobRef:
    """Return the reference of the source image of an entry's task."""
    original = staging.original(from_json(entry.record).image.prepared_sha256)
    assert original is not None
    return original


def write_each(
    staging: Staging, layout: str, read: Callable[[StagedEntry], tuple[bytes, list[ReleaseFile]]]
) -> None:
    """Write every planned file of a layout that is a tree of files.

    `read` is called in threads. It returns a file's bytes, and the entries for the list of files: its own and those
    of images inside it.
    """

    def write(entry: StagedEntry) -> list[ReleaseFile]:
        data, listed = read(entry)
        target = staging.out / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with create(target) as file:
            file.write(data)
        return listed

    entries = staging.every_entry(layout)
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="plantain-tree") as pool:
        while batch := list(islice(entries, _AT_ONCE)):
            for listed in pool.map(write, batch):
                staging.record(listed)
