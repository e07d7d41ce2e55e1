"""Withdrawing patients, studies or single images from a run: what it concerns, and taking it out."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

import orjson

from plantain.files.writing import replace_file
from plantain.journal import JournalReader
from plantain.journal.batches import files_left_of
from plantain.journal.disk.blobs import sync_folder
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.journal.questions.tasks import tasks_of_image
from plantain.journal.withdrawal import (
    Extent,
    Note,
    account_of,
    extent_of,
    finish,
    held_for_withdrawal,
    meta_value,
    replace_meta,
    take_out,
)
from plantain.records import SourceImage, Withdrawal
from plantain.release.naming import Pseudonyms
from plantain.release.proof.provenance import PROVENANCE
from plantain.release.register import forget, releases_with

DERIVED = (
    *("report.html", "report.json", "report.telemetry.json", "report.telemetry.html"),
    *("leaderboard.html", "leaderboard.json", "leaderboard.csv", "leaderboard.tex"),
    "leaderboard.pairs.csv",
    *("attention.html", "learning.html"),
)
"""Made of a run's pictures and numbers; `plantain report` and `plantain bench table` make them again without them."""

BENCH, BENCH_SAMPLES, BENCH_SETS = "bench", "bench.samples", "bench.sets"
"""What a benchmark's run keeps beside its tasks: which it is, what it knows of each sample, distances between all."""


@dataclass(frozen=True, slots=True)
class WithdrawnRun:
    """What a withdrawal takes, or took, out of a run.

    Attributes:
        extent: how much.
        released_as: the ids under which releases call the images.
        releases: folders of releases that hold something of them.
        batch_jobs: at a provider, by its names for them, whose files hold the images and could not be deleted there.
        before: True where they were withdrawn earlier and nothing is left to take.
        known: those of the asked names that the run knows, or knew before they were withdrawn.
        groups: those of which the run has no other image.
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
    """What a withdrawal from a run would take; None where the run knows nothing of it. Changes nothing.

    Args:
        run: the run's folder.
        asked: groups as the source, a joined group or a release calls them; images likewise.
        others: images that a catalogue knows by these names: the run may know them by others.
        samples: of them, by the name of the benchmark that holds them.
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
        account = account_of(reader.connection)
        before = {name for name, mark in asked.marks().items() if account.holds(mark)}
        known = frozenset(before | {name for name in asked.names if {name, *behind[name]} & (met | planned)})
        if not ids:
            marks = [mark for name in sorted(before) for mark in account.marks_of(asked.marks()[name])]
            releases = {path for mark in marks for path in account.releases.get(mark, [])}
            published = WithdrawnRun(Extent(), (), tuple(sorted(releases)), before=True, known=known)
            return published if before else None
        extent = extent_of(reader.connection, ids)
        gone = [image for image in images if image.id in ids]
        released = sorted(names.called(image) for image in gone)
        left = files_left_of(reader, ids)
        tasks = {task for name in ids for task in tasks_of_image(reader, name)}
    groups = {image.group for image in gone if image.group}
    groups -= {image.group for image in images if image.id not in ids}
    held = tuple(releases_with(run, ids))
    return WithdrawnRun(
        extent,
        tuple(released),
        held,
        tuple(left),
        image_ids=frozenset(ids),
        tasks=frozenset(tasks),
        known=known,
        groups=frozenset(groups),
    )


def withdraw_from_run(run: Path, asked: Withdrawal, found: WithdrawnRun) -> None:
    """Takes out what `concerned` found; killed at any moment, doing it again finishes it.

    Raises:
        InputError: another process writes to the run, or answers are still to come from a batch job.
    """
    with held_for_withdrawal(run) as connection:
        if found.image_ids:
            take_out(connection, asked, found.image_ids, found.releases, found.groups)
        finish(connection, run, partial(_clear, run, connection))


def _clear(run: Path, connection: sqlite3.Connection, note: Note) -> None:
    """What names the images beside the journal's rows: pages, lists, the crosswalk, the register of releases."""
    for name in DERIVED:
        (run / name).unlink(missing_ok=True)
    _cut_samples(connection, set(note.images))
    _cut_provenance(run, set(note.tasks))
    Pseudonyms(run, imported=False).forget(note.images, note.groups)
    forget(run, note.images)
    sync_folder(run)


def names_of(run: Path) -> tuple[list[str], list[str]]:
    """The groups and the images that a run knows, sorted, for suggestions."""
    with JournalReader.open(run) as reader:
        images = list(reader.images())
    return sorted({image.group for image in images if image.group}), sorted(image.id for image in images)


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run."""
    return (folder / JOURNAL_NAME).is_file()


def is_bench_run(run: Path) -> bool:
    """Whether a run is one of a benchmark."""
    with JournalReader.open(run) as reader:
        return reader.meta(BENCH) is not None


def _same(reader: JournalReader, others: Collection[SourceImage]) -> set[str]:
    """Ids of tasks' images that are those of a catalogue: by content, or by id where the run has not met them yet."""
    sources = {(image.source_sha256, image.frame) for image in others}
    met = {image.id: (image.source_sha256, image.frame) for image in reader.images()} if sources else {}
    ids = {image_id for image_id, source in met.items() if source in sources}
    return ids | _planned(reader, {image.id for image in others} - met.keys())


def _planned(reader: JournalReader, image_ids: Collection[str]) -> set[str]:
    """Those of which there are tasks, though none has met the image yet."""
    return {name for name in image_ids if tasks_of_image(reader, name)}


def _samples(reader: JournalReader, samples: Mapping[str, Collection[str]]) -> set[str]:
    """Those of a benchmark's samples that a run of it holds or plans."""
    header = orjson.loads(reader.meta(BENCH) or "{}")
    wanted = set(samples.get(str(header.get("name")), ()))
    known = {str(row["id"]) for row in orjson.loads(reader.meta(BENCH_SAMPLES) or "[]")}
    return wanted & known


def _cut_samples(connection: sqlite3.Connection, gone: Collection[str]) -> None:
    """What a benchmark's run says of withdrawn samples, and distances that were computed with them."""
    samples = meta_value(connection, BENCH_SAMPLES)
    if samples is None:
        return
    kept = [sample for sample in orjson.loads(samples) if sample["id"] not in gone]
    replace_meta(connection, BENCH_SAMPLES, orjson.dumps(kept).decode())
    replace_meta(connection, BENCH_SETS, None)


def _cut_provenance(run: Path, tasks: Collection[str]) -> None:
    """Lines of an imported run's list of embedded manifests that speak of withdrawn tasks."""
    path = run / PROVENANCE
    if not path.is_file():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if orjson.loads(line)["task"] not in tasks]
    if len(kept) < len(lines):
        replace_file(path, b"".join(kept))
