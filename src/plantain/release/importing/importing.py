"""A release back into a journal, so that it can be looked at, reported on and exported again."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import orjson

from plantain.catalogue.store import Catalogue
from plantain.files.opening import check_received
from plantain.journal import BlobRef, BlobStore, Journal, JsonValue, RecordedTask, RunHeader
from plantain.journal.cards import cards_of, keep_card
from plantain.journal.disk.blobs import sync_folder
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.journal.reader import BLOBS_ABSENT
from plantain.pixels.decode import check_header
from plantain.privacy.licence_terms import as_json, from_json
from plantain.records import InputError, SourceImage
from plantain.release.importing.published import PublishedTree, tree_id
from plantain.release.importing.reading import OurRelease, ReleaseSource, digest
from plantain.release.originals import media_type_of
from plantain.release.plan import IMPORTED
from plantain.release.proof.provenance import PROVENANCE, without_manifest
from plantain.release.task_record import TaskRecord, journal_parts


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import brought.

    `originals` counts source images that came along, `without_original` those that did not. `missing` counts edited
    images and masks that are named but did not come along, `signed` those whose C2PA manifest was taken off:
    what stands in the run is what was judged. Their signatures are not checked; `plantain verify` does that.
    """

    run: Path
    kind: str
    tasks: int
    attempts: int
    images: int
    missing: int
    signed: int
    originals: int
    without_original: int


@dataclass(slots=True)
class _Survey:
    """What the records name: hashes of edits, of other pictures, and of originals, which a release may carry.

    `returned` has the sizes of source images that an editor returned as they were: its raw answer is one of them.
    """

    edited: set[bytes]
    others: set[bytes]
    originals: set[bytes]
    images: dict[str, str]
    returned: dict[str, int]
    tasks: int = 0
    attempts: int = 0


@dataclass(slots=True)
class _Taken:
    """Pictures that came along, how many of them had been signed, and size and type of every original."""

    found: int = 0
    signed: int = 0
    originals: dict[str, tuple[int, str]] = field(default_factory=dict)


def import_release(path: Path, run: Path, originals: Path | None = None) -> ImportSummary:
    """Make a run from a release: ours in any layout, or a tree as Med-Banana publishes it.

    The run appears when it is complete; an import that fails or is killed leaves nothing under that name.

    Args:
        originals: the importer's own catalogue or run. Originals that the release does not contain are copied from
            it; they are found by the hash of their prepared bytes, so they must have been prepared in the same way.

    Raises:
        InputError: nothing there that we can read, a broken file, `originals` is neither, or `run` is not empty.
    """
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; import a release's folder")
    check_received(path)
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise InputError(f"{run}: is not an empty folder; an import makes a new run")
    held = _blobs(originals) if originals is not None else None
    source: ReleaseSource
    if OurRelease.recognised(path):
        ours = OurRelease(path)
        source, kind, header, source_facts = ours, "plantain", *_our_header(ours)
    elif PublishedTree.recognised(path):
        source, kind = PublishedTree(path), "med-banana"
        header = RunHeader(tree_id(path), path.resolve().name, 0, {}, "")
        source_facts = {"models": {}, "left_out": 0}
    else:
        raise InputError(f"{path}: neither a release of plantain nor a tree of DATASET-edit/FINDING/*.jpeg")
    source_facts |= {
        "run_id": header.run_id,
        "name": header.name,
        "seed": header.seed,
        "code_version": header.code_version,
        "frozen": header.frozen,
    }
    run.parent.mkdir(parents=True, exist_ok=True)
    part = run.with_name(f".{run.name}.importing")
    shutil.rmtree(part, ignore_errors=True)
    try:
        survey, taken = asyncio.run(_fill(part, source, header, source_facts, held))
        if (path / PROVENANCE).is_file():  # what providers had embedded in bytes that are in no release
            shutil.copyfile(path / PROVENANCE, part / PROVENANCE, follow_symlinks=False)
        for judged_by in cards_of(path):
            keep_card(part, judged_by)
        if run.exists():
            run.rmdir()
        part.rename(run)
        sync_folder(run.parent)
    except (OverflowError, sqlite3.IntegrityError) as error:
        raise InputError(
            f"{path}: two records contradict each other, or a number is out of range: {error}"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    named = len(survey.edited | survey.others)
    return ImportSummary(
        run=run,
        kind=kind,
        tasks=survey.tasks,
        attempts=survey.attempts,
        images=taken.found,
        missing=named - taken.found,
        signed=taken.signed,
        originals=len(taken.originals),
        without_original=len(survey.originals) - len(taken.originals),
    )


def _our_header(ours: OurRelease) -> tuple[RunHeader, dict[str, JsonValue]]:
    """The original run's header, as far as run.json came along."""
    facts = ours.facts()
    try:
        header = RunHeader(
            run_id=str(facts.get("run_id", "")) or tree_id(ours.root),
            name=str(facts.get("name", ours.root.resolve().name)),
            seed=int(str(facts.get("seed", 0))),
            frozen=cast("dict[str, JsonValue]", dict(cast("dict[str, object]", facts.get("frozen", {})))),
            code_version=str(facts.get("code_version", "")),
        )
        source_facts: dict[str, JsonValue] = {
            "models": cast("JsonValue", facts.get("models", {})),
            "left_out": int(str(facts.get("left_out", 0))),
            "method": cast("JsonValue", dict(cast("dict[str, object]", facts.get("method", {})))),
            # Without run.json nobody knows whether a licence was named: an export must not put its own in that place.
            "original_terms": cast("JsonValue", as_json(from_json(facts.get("original_terms", {})))),
            "terms": cast("JsonValue", as_json(from_json(facts.get("terms", {}))) if facts else None),
        }
    except (TypeError, ValueError) as error:
        raise InputError(f"{ours.root}/run.json: facts: {error}") from error
    return header, source_facts


def _blobs(folder: Path) -> BlobStore:
    """The images of a catalogue or a run. Raises InputError when the folder is neither."""
    if (folder / JOURNAL_NAME).is_file():
        return BlobStore(folder / "blobs")
    with Catalogue.open(folder) as catalogue:
        return catalogue.blobs


async def _fill(
    run: Path,
    source: ReleaseSource,
    header: RunHeader,
    source_facts: dict[str, JsonValue],
    held: BlobStore | None,
) -> tuple[_Survey, _Taken]:
    survey = _look(source)
    if not survey.tasks:
        raise InputError("the release has no task in it")
    async with Journal.create(run, header) as journal:
        taken = await asyncio.to_thread(_take_pictures, journal, source, survey, held)
        await journal.add_images(_images(source, survey.returned, taken))
        await journal.add_recorded(_recorded(source))
        await journal.set_meta(IMPORTED, orjson.dumps(source_facts).decode())
        await journal.set_meta(BLOBS_ABSENT, "1")
    return survey, taken


def _look(source: ReleaseSource) -> _Survey:
    """A first pass that checks every record before anything is written."""
    survey = _Survey(set(), set(), set(), {}, {})
    for record in _once(source):
        survey.tasks += 1
        survey.attempts += len(record.attempts)
        if record.image.prepared_sha256:
            survey.originals.add(_hash(record.image.prepared_sha256, record))
        known = survey.images.setdefault(record.image.id, record.image.dataset)
        if known != record.image.dataset:
            raise InputError(
                f"image {record.image.id!r} is in {known} and in {record.image.dataset}: import them one by one"
            )
        for attempt in record.attempts:
            for picture, kept in ((attempt.edited, survey.edited), (attempt.mask, survey.others)):
                if picture is not None:
                    kept.add(_hash(picture.sha256, record))
            if attempt.raw is not None:
                _hash(attempt.raw.sha256, record)
                if attempt.raw.sha256 == record.image.prepared_sha256:
                    survey.returned[attempt.raw.sha256] = attempt.raw.bytes
    return survey


def _hash(text: str, record: TaskRecord) -> bytes:
    """A SHA-256 as bytes: hashes become file names, so nothing else may pass."""
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise InputError(f"task {record.task_id}: {text[:80]!r} is not a SHA-256 in lower-case hex")
    return bytes.fromhex(text)


def _take_pictures(
    journal: Journal, source: ReleaseSource, survey: _Survey, held: BlobStore | None
) -> _Taken:
    """Stores the pictures that a record names; others in the folder are none of ours.

    What is no picture, or too large to be looked at later, is refused.
    """
    wanted, originals = survey.edited | survey.others, set(survey.originals)
    taken = _Taken()
    for where, data in source.pictures():
        judged = data
        name = bytes.fromhex(digest(data))
        if name in originals:
            check_header(data, where)
            media_type = media_type_of(data)
            taken.originals[journal.put_blob(data, media_type).sha256] = (len(data), media_type)
            originals.discard(name)
        if name not in survey.edited and name not in survey.others and name not in survey.originals:
            judged = without_manifest(data)
            name = bytes.fromhex(digest(judged))
        if name in wanted:
            check_header(judged, where)
            journal.put_blob(judged, "image/jpeg" if name in survey.edited else "image/png")
            wanted.discard(name)
            taken.found += 1
            taken.signed += judged is not data
    for sha256 in sorted(name.hex() for name in originals):
        if held is not None and held.path(sha256).is_file():
            data = held.read(sha256)
            taken.originals[journal.put_blob(data, media_type_of(data)).sha256] = (
                len(data),
                media_type_of(data),
            )
    return taken


def _images(
    source: ReleaseSource, returned: dict[str, int], taken: _Taken
) -> Iterator[tuple[SourceImage, BlobRef]]:
    seen: set[str] = set()
    for record in _once(source):
        if record.image.id not in seen:
            seen.add(record.image.id)
            # Where the release has no original, its hash is a reference to what the owner may hand out.
            sha256 = record.image.prepared_sha256
            size, media_type = taken.originals.get(sha256, (returned.get(sha256, 0), "image/jpeg"))
            yield record.image, BlobRef(sha256, size, media_type)


def _recorded(source: ReleaseSource) -> Iterator[RecordedTask]:
    for record in _once(source):
        row, attempts, verdicts, scores, pictures = journal_parts(record)
        blobs = tuple(BlobRef(p.sha256, p.bytes, p.media_type, p.pixel_sha256) for p in pictures)
        yield RecordedTask(row, tuple(attempts), tuple(verdicts), tuple(scores), blobs)


def _once(source: ReleaseSource) -> Iterator[TaskRecord]:
    """Every task once; layouts with several rows a task repeat its record."""
    seen: set[str] = set()
    for record in source.records():
        if record.task_id not in seen:
            seen.add(record.task_id)
            yield record
