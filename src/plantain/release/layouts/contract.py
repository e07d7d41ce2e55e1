"""What a layout of a release is, and which there are: ours and those of other packages, all by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from plantain.files.installed import entry_named, installed, load_entry
from plantain.records import InputError
from plantain.release.layouts.batches import write_batches
from plantain.release.pictures import PictureRequest, Pictures
from plantain.release.plan import ReleaseFile
from plantain.release.staging import StagedEntry, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

GROUP = "plantain.layouts"
"""Entry point group: name of the layout -> a `Layout`."""

LAYOUTS = tuple(installed(GROUP))
"""Every layout that can be asked for. `parquet` brings the `preference` table with it."""

ALWAYS = "trajectory"
"""The layout that comes with every release: the record that an import reads."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout.

    Attributes:
        write: writes its files, those that are done excepted; called again when an export is gone on with.
        path_of: where an edited image stands in a tree of files, relative to the release, "" for one that is left out;
            `write_pictures` puts it there. None for a layout without such a tree.
    """

    write: Callable[[Staging, Pictures], None]
    path_of: Callable[[TaskRecord, AttemptRecord], str] | None = None


def chosen(names: Iterable[str]) -> dict[str, Layout]:
    """The layouts of these names, after that which comes with every release.

    Raises:
        InputError: there is none of a name, the nearest is suggested; or its package cannot be loaded.
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


def write_pictures(staging: Staging, pictures: Pictures, name: str) -> None:
    """Writes the edited images of a layout's tree where `path_of` said, in batches that become durable together."""

    def read(entry: StagedEntry) -> tuple[bytes, ReleaseFile]:
        record = from_json(entry.record)
        attempt = record.attempts[entry.first]
        assert attempt.edited is not None
        image = pictures.read(PictureRequest(attempt.edited, record.task_id, attempt.round or 0))
        return image.data, image.listed(record.task_id, attempt, attempt.role, path=entry.path)

    write_batches(staging, name, read)
