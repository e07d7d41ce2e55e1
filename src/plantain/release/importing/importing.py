"""Imports a release as a run, to look at it, report on it, judge it again or export it again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from plantain.catalogue.store import Catalogue
from plantain.files.opening import check_received
from plantain.journal import BlobRef, BlobStore, Journal, JsonValue, RunHeader
from plantain.journal.cards import cards_of, keep_card
from plantain.journal.connect import JOURNAL_NAME, check_new_run, new_run
from plantain.journal.reader import BLOBS_ABSENT
from plantain.pixels.decode import check_header
from plantain.privacy.permission import sha256_of
from plantain.records import InputError, SourceImage
from plantain.records.messages import like_path
from plantain.release.importing.published import PublishedTree, tree_id
from plantain.release.importing.reading import OurRelease
from plantain.release.naming import safe
from plantain.release.plan import CONTROL, IMPORTED, RunFacts
from plantain.release.proof.provenance import without_manifest
from plantain.release.task_record import TaskRecord, recorded_task

ReleaseSource = OurRelease | PublishedTree


@dataclass(slots=True)
class ImportSummary:
    """The result of an import.

    Attributes:
        images: number of imported edited images and masks; `missing`: number of named ones without a file.
        signed: number of images whose C2PA manifest was removed to get the judged bytes. Signatures are not checked.
        originals: number of imported source images; `without_original`: number of those missing.
    """

    run: Path
    kind: str
    tasks: int = 0
    attempts: int = 0
    images: int = 0
    missing: int = 0
    signed: int = 0
    originals: int = 0
    without_original: int = 0


@dataclass(slots=True)
class _Named:
    """Hashes of edits, masks and originals in the records; `stored` has the size of every original that is there."""

    edited: set[str] = field(default_factory=set)
    masks: set[str] = field(default_factory=set)
    originals: set[str] = field(default_factory=set)
    datasets: dict[str, str] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)


def import_release(path: Path, run: Path, originals: Path | None = None) -> ImportSummary:
    """Make a run from a release of plantain, in any layout, or from Med-Banana's published tree.

    The run appears when it is complete; an import that fails or is killed leaves nothing under that name.

    Args:
        originals: a catalogue or run of the user. Originals that the release does not contain are copied from
            it; they are found by the hash of their prepared bytes, so they must have been prepared in the same way.

    Raises:
        InputError: the path is not a readable release, `originals` is neither catalogue nor run, or `run` is not empty.
    """
    if not path.is_dir():
        raise InputError(
            f"{path}: {'not a release' if path.exists() else 'no such file or folder'}{like_path(path)}"
        )
    check_received(path)
    check_new_run(run)
    held = _blobs(originals) if originals is not None else None
    source: ReleaseSource
    if OurRelease.recognised(path):
        source, summary = OurRelease(path), ImportSummary(run, "plantain")
        facts = _facts_of_release(path, source.facts())
    elif PublishedTree.recognised(path):
        source, summary = PublishedTree(path), ImportSummary(run, "med-banana")
        facts = _facts_of_tree(path)
    else:
        raise InputError(f"{path}: neither a release of plantain nor a tree of DATASET-edit/FINDING/*.jpeg")
    try:
        with new_run(run) as part:
            asyncio.run(_fill(part, source, facts, held, summary))
            for card in cards_of(path):
                keep_card(part, card)
    except (OverflowError, sqlite3.IntegrityError) as error:
        raise InputError(
            f"{path}: two records contradict each other, or a number is out of range: {error}"
        ) from error
    return summary


_KEPT = frozenset(
    ["models", "left_out", "method", "terms", "run_id", "name", "seed", "code_version", "frozen"]
)
"""Facts in run.json that an import keeps."""


def _facts_of_release(root: Path, recorded: dict[str, object]) -> dict[str, JsonValue]:
    """Return the facts of the original run."""
    try:
        facts = TypeAdapter(RunFacts).validate_python(recorded)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{root}/run.json: facts: {where}: {first['msg']}") from error
    if CONTROL.search(facts.run_id + facts.name):
        raise InputError(f"{root}/run.json: facts: run_id or name contains control characters")
    return {name: value for name, value in orjson.loads(orjson.dumps(facts)).items() if name in _KEPT}


def _facts_of_tree(root: Path) -> dict[str, JsonValue]:
    """Return the facts of a published tree. An export must not choose a licence: it is unknown."""
    made: dict[str, JsonValue] = {"models": {}, "left_out": 0, "method": {}, "terms": None}
    name = root.resolve().name
    return {**made, "run_id": tree_id(root), "name": name, "seed": 0, "code_version": "", "frozen": {}}


def _blobs(folder: Path) -> BlobStore:
    """Return the images of a catalogue or a run. Raises InputError when the folder is neither."""
    if (folder / JOURNAL_NAME).is_file():
        return BlobStore(folder / "blobs")
    with Catalogue.open(folder) as catalogue:
        return catalogue.blobs


async def _fill(
    run: Path,
    source: ReleaseSource,
    facts: dict[str, JsonValue],
    held: BlobStore | None,
    summary: ImportSummary,
) -> None:
    named = _survey(source, summary)
    if not summary.tasks:
        raise InputError("the release has no task in it")
    header = {name: facts[name] for name in ("run_id", "name", "seed", "frozen", "code_version")}
    async with Journal.create(run, RunHeader(**header)) as journal:  # type: ignore[arg-type]
        journal.blobs.synced = False
        await asyncio.to_thread(_store_images, journal, source, named, held, summary)
        await journal.add_images(_images(source, named))
        await journal.add_recorded(map(recorded_task, source.records()))
        await journal.set_meta(IMPORTED, orjson.dumps(facts).decode())
        await journal.set_meta(BLOBS_ABSENT, "1")


def _survey(source: ReleaseSource, summary: ImportSummary) -> _Named:
    """Check every record before anything is written."""
    named = _Named()
    for record in source.records():
        _check_record(record)
        summary.tasks += 1
        summary.attempts += len(record.attempts)
        image = record.image
        if image.prepared_sha256:
            named.originals.add(_checked(image.prepared_sha256, record))
        known = named.datasets.setdefault(image.id, image.dataset)
        if known != image.dataset:
            raise InputError(
                f"image {image.id!r} is in {known} and in {image.dataset}: import them one by one"
            )
        for attempt in record.attempts:
            for recorded, kept in ((attempt.edited, named.edited), (attempt.mask, named.masks)):
                if recorded is not None:
                    kept.add(_checked(recorded.sha256, record))
    return named


def _check_record(record: TaskRecord) -> None:
    """Raise InputError for an id that is no name of a file, a name with control characters, or a negative round."""
    if safe(record.task_id) != record.task_id:
        raise InputError(f"task {record.task_id[:80]!r}: task_id: expected letters, digits and ._+- only")
    image = record.image
    names = {"modality": record.modality, "split": record.split, "image.id": image.id}
    names |= {"image.dataset": image.dataset, "image.group": image.group or ""}
    for field_name, name in names.items():
        if CONTROL.search(name):
            raise InputError(
                f"task {record.task_id}: {field_name}: {name[:80]!r} contains control characters"
            )
    if len(record.finding.splitlines()) > 1:  # own findings may contain others; printers escape them
        raise InputError(f"task {record.task_id}: finding: {record.finding[:80]!r} has several lines")
    rounds = [record.generation, record.round or 0]
    rounds += [number for one in record.attempts for number in (one.generation, one.round or 0)]
    if min(rounds) < 0:
        raise InputError(f"task {record.task_id}: generation or round: {min(rounds)} is negative")


def _checked(text: str, record: TaskRecord) -> str:
    """Return a SHA-256. Hashes become file names, so nothing else may pass."""
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise InputError(f"task {record.task_id}: {text[:80]!r} is not a SHA-256 in lower-case hex")
    return text


def _store_images(
    journal: Journal, source: ReleaseSource, named: _Named, held: BlobStore | None, summary: ImportSummary
) -> None:
    """Store the images that records name; others in the folder are ignored.

    Raises:
        InputError: one of them is not an image, or too large to be decoded later.
    """
    wanted = named.edited | named.masks

    def store_original(data: bytes) -> None:
        named.stored[journal.put_blob(data, "image/jpeg").sha256] = len(data)

    for where, data in source.images():
        judged, name = data, sha256_of(data)
        if name in named.originals and name not in named.stored:
            check_header(data, where)
            store_original(data)
        if name not in wanted and name not in named.originals:
            judged = without_manifest(data)
            name = sha256_of(judged)
        if name in wanted:
            check_header(judged, where)
            journal.put_blob(judged, "image/jpeg" if name in named.edited else "image/png")
            wanted.discard(name)
            summary.images += 1
            summary.signed += judged is not data
    for name in sorted(named.originals - named.stored.keys()):
        if held is not None and held.path(name).is_file():
            store_original(held.read(name))
    summary.missing = len(wanted)
    summary.originals, summary.without_original = (
        len(named.stored),
        len(named.originals - named.stored.keys()),
    )


def _images(source: ReleaseSource, named: _Named) -> Iterator[tuple[SourceImage, BlobRef]]:
    seen: set[str] = set()
    for record in source.records():
        if record.image.id not in seen:
            seen.add(record.image.id)
            # Without the original its hash refers to an image that only its owner may pass on.
            sha256 = record.image.prepared_sha256
            yield record.image, BlobRef(sha256, named.stored.get(sha256, 0), "image/jpeg")
