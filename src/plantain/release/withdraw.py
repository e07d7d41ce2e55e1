"""Withdraws patients, studies or single images from a run: preview, and removal."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

import orjson

from plantain.journal import JournalReader
from plantain.journal.batches import FOLDER as JOBS
from plantain.journal.batches import files_left_of
from plantain.journal.blobs import BLOBS, sync_folder
from plantain.journal.cards import FOLDER as CARDS
from plantain.journal.connect import JOURNAL_NAME, LOCK_NAME, remove_unfinished
from plantain.journal.questions.tasks import tasks_of_image
from plantain.journal.reader import account_of, meta_value
from plantain.journal.withdrawal import (
    Extent,
    Note,
    extent_of,
    finish,
    held_for_withdrawal,
    replace_meta,
    take_out,
)
from plantain.records import SourceImage, Withdrawal
from plantain.release.naming import CROSSWALK, Pseudonyms
from plantain.release.register import REGISTER, forget, releases_with

JOURNAL = (LOCK_NAME, BLOBS, CARDS, CROSSWALK, REGISTER)
"""Files of a run that are kept, besides its journal and settings; withdrawn images are removed from each."""

OWN = (JOURNAL_NAME, "catalogue.sqlite", "study.json", "manifest.parquet", "benchmark.json", "training.json")
"""Files that make a folder inside a run something of its own, which is withdrawn from by its own name."""

BENCH, BENCH_SAMPLES, BENCH_SETS = "bench", "bench.samples", "bench.sets"
"""Meta keys of a benchmark's run: its name, its samples, and distances between sets of them."""


@dataclass(frozen=True, slots=True)
class WithdrawnRun:
    """The content that a withdrawal removes, or has removed, from a run.

    Attributes:
        extent: how much it is.
        released_as: ids of the images in releases.
        releases: folders of releases that contain the images or their edits, and of studies made from the run.
        batch_jobs: a provider's jobs whose files contain the images and could not be deleted there.
        before: True if they were withdrawn earlier, and no content is left to remove.
        image_ids, tasks: ids of the images, and of the tasks that edit them.
        known: the requested names that the run contains, or contained before a withdrawal.
        groups: groups of which the run has no other image.
    """

    extent: Extent
    released_as: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    batch_jobs: tuple[str, ...] = ()
    before: bool = False
    image_ids: frozenset[str] = field(default=frozenset(), repr=False)
    tasks: frozenset[str] = field(default=frozenset(), repr=False)
    known: frozenset[str] = field(default=frozenset(), repr=False)
    groups: frozenset[str] = field(default=frozenset(), repr=False)


def concerned(
    run: Path,
    asked: Withdrawal,
    others: Collection[SourceImage] = (),
    samples: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> WithdrawnRun | None:
    """Find the content that a withdrawal would remove, or has removed, without changing it; None if none matches.

    Args:
        asked: groups and images by their names in the source, a joined group or a release.
        others: images of these names in a catalogue, which may have other names in the run.
        samples: ids of samples to remove, by the name of their benchmark.
    """
    with JournalReader.open(run) as reader:
        names = Pseudonyms(run, imported=False)
        behind = {name: names.behind(name) for name in asked.names}
        wanted = Withdrawal(
            asked.groups.union(*(behind[name] for name in asked.groups)),
            asked.images.union(*(behind[name] for name in asked.images)),
        )
        images = list(reader.images())
        found = {image.id: wanted.naming(image) for image in images}
        met = frozenset().union(*found.values())
        ids = {image_id for image_id, named in found.items() if named}
        planned = _planned(reader, wanted.images - found.keys())
        ids |= planned | _same(reader, others) | _samples(reader, samples)
        tasks = {task for name in ids for task in tasks_of_image(reader, name)}
        while further := {image.id for image in images if image.parent in tasks} - ids:  # of later turns
            ids |= further
            tasks.update(task for name in further for task in tasks_of_image(reader, name))
        account = account_of(reader.connection)
        before = {name for name, mark in asked.marks().items() if account.holds(mark)}
        known = frozenset(before | {name for name in asked.names if {name, *behind[name]} & (met | planned)})
        if not ids:
            marks = [mark for name in sorted(before) for mark in account.marks_of(asked.marks()[name])]
            releases = {path for mark in marks for path in account.releases.get(mark, [])}
            published = WithdrawnRun(Extent(), (), tuple(sorted(releases)), before=True, known=known)
            return published if before else None
        gone = [image for image in images if image.id in ids]
        others_of = {image.group for image in images if image.id not in ids}
        return WithdrawnRun(
            extent_of(reader.connection, ids),
            tuple(sorted(names.called(image) for image in gone)),
            tuple(releases_with(run, ids)),
            tuple(files_left_of(reader, ids)),
            image_ids=frozenset(ids),
            tasks=frozenset(tasks),
            known=known,
            groups=frozenset({image.group for image in gone if image.group} - others_of),
        )


def withdraw_from_run(run: Path, asked: Withdrawal, found: WithdrawnRun) -> None:
    """Remove the content that `concerned` found; if killed, call it again to finish.

    Raises:
        InputError: another process writes to the run, or a batch job is not finished.
    """
    with held_for_withdrawal(run) as connection:
        if found.image_ids:
            take_out(connection, asked, found.image_ids, found.releases, found.groups)
        finish(connection, run, partial(_clear, run, connection))


def _clear(run: Path, connection: sqlite3.Connection, note: Note) -> None:
    """Remove the images from pages, lists, the crosswalk and the register of releases."""
    for path in derived(run, connection):
        _remove(path)
    remove_unfinished(run.parent)
    _cut_samples(connection, set(note.images))
    Pseudonyms(run, imported=False).forget(note.images, note.groups)
    forget(run, note.images)
    sync_folder(run)


def derived(run: Path, connection: sqlite3.Connection) -> Iterator[Path]:
    """Yield every file and folder of a run that was made from its images: all except the journal's."""
    in_jobs = "SELECT count(*) FROM batch_job WHERE state <> 'closed'"
    kept = (*JOURNAL, *([JOBS] if connection.execute(in_jobs).fetchone()[0] else []))
    for path in sorted(run.iterdir()):
        if path.name in kept or path.name.startswith(JOURNAL_NAME) or path.suffix == ".toml":
            continue
        if not _is_own(path):
            yield path


def own_folders(run: Path) -> list[Path]:
    """Return the folders inside a run that a withdrawal does not remove, sorted."""
    return [path for path in sorted(run.iterdir()) if path.name not in JOURNAL and _is_own(path)]


def _is_own(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and any(next(path.rglob(own), None) for own in OWN)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def names_of(run: Path) -> tuple[list[str], list[str]]:
    """Return (groups, image ids) of a run, each sorted, for suggestions."""
    with JournalReader.open(run) as reader:
        images = list(reader.images())
    return sorted({image.group for image in images if image.group}), sorted(image.id for image in images)


def is_run(folder: Path) -> bool:
    """Return True if a folder is a run."""
    return (folder / JOURNAL_NAME).is_file()


def is_bench_run(run: Path) -> bool:
    """Return True if a run is a benchmark's, not a build's."""
    with JournalReader.open(run) as reader:
        return reader.meta(BENCH) is not None


def _same(reader: JournalReader, others: Collection[SourceImage]) -> set[str]:
    """Return ids of images that a catalogue has too: by content, or by id where no task has used them yet."""
    sources = {(image.source_sha256, image.frame) for image in others}
    met = {image.id: (image.source_sha256, image.frame) for image in reader.images()} if sources else {}
    ids = {image_id for image_id, source in met.items() if source in sources}
    return ids | _planned(reader, {image.id for image in others} - met.keys())


def _planned(reader: JournalReader, image_ids: Collection[str]) -> set[str]:
    """Return the images that have tasks, though none has used the image yet."""
    return {name for name in image_ids if tasks_of_image(reader, name)}


def _samples(reader: JournalReader, samples: Mapping[str, Collection[str]]) -> set[str]:
    """Return the samples that a run of their benchmark has."""
    header = orjson.loads(reader.meta(BENCH) or "{}")
    wanted = set(samples.get(str(header.get("name")), ()))
    known = {str(row["id"]) for row in orjson.loads(reader.meta(BENCH_SAMPLES) or "[]")}
    return wanted & known


def _cut_samples(connection: sqlite3.Connection, gone: Collection[str]) -> None:
    """Remove withdrawn samples from a benchmark's run, and the distances computed with them."""
    samples = meta_value(connection, BENCH_SAMPLES)
    if samples is None:
        return
    kept = [sample for sample in orjson.loads(samples) if sample["id"] not in gone]
    replace_meta(connection, BENCH_SAMPLES, orjson.dumps(kept).decode())
    replace_meta(connection, BENCH_SETS, None)
