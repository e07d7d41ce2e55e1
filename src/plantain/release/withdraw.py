"""Withdrawing a patient or study from a run: what it concerns, and taking it out."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

import orjson

from plantain.findings.taxonomy import suggest
from plantain.journal import JournalReader
from plantain.journal.disk.blobs import sync_folder
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.journal.withdrawal import (
    Extent,
    Note,
    account_of,
    extent_of,
    finish,
    held_for_withdrawal,
    take_out,
)
from plantain.records import InputError, SourceImage
from plantain.release.naming import Pseudonyms
from plantain.release.proof.provenance import PROVENANCE
from plantain.release.register import forget, releases_with

DERIVED = (
    *("report.html", "report.json", "report.telemetry.json", "report.telemetry.html"),
    *("leaderboard.html", "leaderboard.json", "leaderboard.csv", "leaderboard.tex"),
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
        before: True where the group was withdrawn earlier and nothing is left to take.
    """

    extent: Extent
    released_as: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    before: bool = False
    image_ids: frozenset[str] = field(default=frozenset(), repr=False)
    tasks: frozenset[str] = field(default=frozenset(), repr=False)


def concerned(
    run: Path,
    group: str,
    others: Collection[SourceImage] = (),
    samples: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> WithdrawnRun | None:
    """What withdrawing a group from a run would take; None where the run knows nothing of it. Changes nothing.

    Args:
        run: the run's folder.
        group: as the source, a joined group or a release calls it.
        others: images of the group that a catalogue names: the run may know them by another group.
        samples: of the group, by the name of the benchmark that holds them.
    """
    with JournalReader.open(run) as reader:
        names = Pseudonyms(run, imported=False)
        wanted = {group, *names.behind(group)}
        ids = {image.id for image in reader.images() if image.group in wanted}
        ids |= _same(reader, others) | _samples(reader, samples)
        account = account_of(reader.connection)
        if not ids and account.holds(f"group {group}"):
            releases = account.releases.get(account.mark(f"group {group}"), [])
            return WithdrawnRun(Extent(), (), tuple(releases), before=True)
        if not ids:
            return None
        extent = extent_of(reader.connection, ids)
        released = sorted(names.called(image) for image in reader.images() if image.id in ids)
        query = "SELECT id FROM task WHERE image_id = ?"
        tasks = {task for name in ids for (task,) in reader.connection.execute(query, (name,))}
    held = tuple(releases_with(run, ids))
    return WithdrawnRun(extent, tuple(released), held, False, frozenset(ids), frozenset(tasks))


def withdraw_from_run(run: Path, group: str, found: WithdrawnRun) -> None:
    """Takes out what `concerned` found; killed at any moment, doing it again finishes it.

    Raises:
        InputError: another process writes to the run, or answers are still to come from a batch job.
    """
    with held_for_withdrawal(run) as connection:
        if found.image_ids:
            take_out(connection, group, found.image_ids, found.releases)
        finish(connection, run, partial(_clear, run, connection))


def _clear(run: Path, connection: sqlite3.Connection, note: Note) -> None:
    """What names the images beside the journal's rows: pages, lists, the crosswalk, the register of releases."""
    for name in DERIVED:
        (run / name).unlink(missing_ok=True)
    _cut_samples(connection, set(note.images))
    _cut_provenance(run, set(note.tasks))
    names = Pseudonyms(run, imported=False)
    for group in note.groups:
        names.forget(note.images, group)
    forget(run, note.images)
    sync_folder(run)


def unknown_group(run: Path, group: str) -> InputError:
    """One line that says so, with the nearest group that there is."""
    with JournalReader.open(run) as reader:
        known = sorted({image.group for image in reader.images() if image.group is not None})
    hint = suggest(group, known) if known else "none of its images has a group"
    return InputError(f"{run}: no image of the group {group!r}; {hint}")


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
    planned = {image.id for image in others} - met.keys()
    query = "SELECT 1 FROM task WHERE image_id = ? LIMIT 1"
    return ids | {name for name in planned if reader.connection.execute(query, (name,)).fetchone()}


def _samples(reader: JournalReader, samples: Mapping[str, Collection[str]]) -> set[str]:
    """Those of a benchmark's samples that a run of it holds or plans."""
    header = orjson.loads(reader.meta(BENCH) or "{}")
    wanted = set(samples.get(str(header.get("name")), ()))
    known = {str(row["id"]) for row in orjson.loads(reader.meta(BENCH_SAMPLES) or "[]")}
    return wanted & known


def _cut_samples(connection: sqlite3.Connection, gone: Collection[str]) -> None:
    """What a benchmark's run says of withdrawn samples, and distances that were computed with them."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (BENCH_SAMPLES,)).fetchone()
    if row is None:
        return
    kept = [sample for sample in orjson.loads(row[0]) if sample["id"] not in gone]
    connection.execute(
        "UPDATE meta SET value = ? WHERE key = ?", (orjson.dumps(kept).decode(), BENCH_SAMPLES)
    )
    connection.execute("DELETE FROM meta WHERE key = ?", (BENCH_SETS,))


def _cut_provenance(run: Path, tasks: Collection[str]) -> None:
    """Lines of an imported run's list of embedded manifests that speak of withdrawn tasks."""
    path = run / PROVENANCE
    if not path.is_file():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if orjson.loads(line)["task"] not in tasks]
    if len(kept) < len(lines):
        temporary = path.with_name(f".{path.name}.part")
        temporary.write_bytes(b"".join(kept))
        temporary.replace(path)
