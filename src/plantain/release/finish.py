"""What stands beside the data of a release: licences, cards, manifest and sums, each derived, none kept by hand.

The order matters: cards describe the data files, the manifest lists both, and SHA256SUMS covers everything else. So one
hash, that of SHA256SUMS, stands for the whole release.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

import orjson

from plantain.journal import BlobStore, JournalReader
from plantain.journal.cards import FOLDER as CARDS
from plantain.journal.questions.corrections import corrected_edits, corrections_line
from plantain.journal.questions.release import raw_answers
from plantain.pixels.encode import XMP_PACKET
from plantain.privacy.licence_terms import from_json
from plantain.privacy.licence_texts import decide_parts, licence_files
from plantain.privacy.original_licences import ATTRIBUTION, attribution, original_parts
from plantain.records import InputError
from plantain.release.cards.cards import card
from plantain.release.cards.citation import citation
from plantain.release.cards.croissant import croissant
from plantain.release.cards.datasheet import ImageCounts, datasheet, gather
from plantain.release.judges import who_judged
from plantain.release.originals import FOLDER
from plantain.release.plan import ExportOptions, Release, ReleaseFile
from plantain.release.proof.manifest import BESIDE, MANIFEST, rows_in, write_manifest
from plantain.release.proof.provenance import PROVENANCE, embedded_manifest
from plantain.release.proof.sums import SUMS, SUMS_FOLDER, write_file, write_sums

_PROVENANCE_FIELDS = ("task", "generation", "round", "raw_sha256", "container", "manifest_bytes")
_OUTSIDE_TREE = ("data/", "wds/", "trajectories/", f"{CARDS}/", f"{FOLDER}/")


def finish_release(release: Release, reader: JournalReader, options: ExportOptions) -> None:
    """Writes everything beside the data files of `release`; running it again writes the same.

    `reader` reads the snapshot of the journal that the data files came from.
    """
    facts = release.facts
    parts = decide_parts(release.sources, options.redistribution_approved, from_json(facts.terms))
    originals = original_parts(release.sources, facts.originals, from_json(facts.original_terms))
    parts = (*originals, *parts)  # whoever looks a dataset up by its name finds the edits, as ever
    numbers = gather(reader)
    images = _count_images(release.edited, reader.blobs)
    beside: list[ReleaseFile] = []
    embedded = _write_provenance(release, reader, beside)
    judged_by = who_judged(facts, release.cards)
    if corrected := corrections_line(corrected_edits(reader)):
        judged_by.append(f"{corrected[0].upper()}{corrected[1:]} (table verdicts, judge person/CODE)")
    texts = {
        "README.md": card(
            facts, release.configs, numbers, parts, images, options.layouts, judged_by, options.doi
        ),
        "DATASHEET.md": datasheet(facts, numbers, parts, images, embedded, judged_by),
        "CITATION.cff": citation(facts, parts, release.sources, options.doi),
    }
    documents = {name: text.encode() for name, text in texts.items()}
    documents["croissant.json"] = croissant(
        release.out, facts, release.configs, parts, release.files, options.doi
    )
    documents.update(licence_files(parts))
    documents.update(options.beside)
    if originals:
        documents[ATTRIBUTION] = attribution(originals).encode()
    for path, data in documents.items():
        beside.append(_document(release.out, path, data))
    beside += _table_sums(release)
    _list_everything(release, sorted(beside, key=lambda file: file.path))


def _list_everything(release: Release, beside: list[ReleaseFile]) -> None:
    files = heapq.merge(release.files, beside, key=_place)
    manifest = write_manifest(
        release.out, files, lambda file: None if file.role == BESIDE else rows_in(release.out / file.path)
    )
    rest = sorted([*beside, _entry(MANIFEST, manifest)], key=lambda file: file.path)
    listed = heapq.merge(release.files, rest, key=_place)
    write_sums(release.out, SUMS, ((file.path, file.sha256) for file in listed if not file.embedded))


def _place(file: ReleaseFile) -> tuple[str, int, str]:
    """The order of every list: a file, then the images inside it by row and member."""
    return file.path, -1 if file.row is None else file.row, file.member or ""


def _document(out: Path, path: str, data: bytes) -> ReleaseFile:
    return _entry(path, write_file(out, path, lambda file: _write_all(file, data)))


def _write_all(file: BinaryIO, data: bytes) -> None:
    file.write(data)


def _entry(path: str, written: tuple[str, int]) -> ReleaseFile:
    return ReleaseFile(path, written[0], written[1], BESIDE)


def _count_images(edited: Iterable[tuple[str, str, bool]], blobs: BlobStore) -> ImageCounts:
    """Edited images, each once however many layouts hold it."""
    roles: Counter[str] = Counter()
    signed = unmarked = 0
    for role, sha256, is_signed in edited:
        roles[role] += 1
        signed += is_signed
        with blobs.path(sha256).open("rb") as blob:
            unmarked += XMP_PACKET not in blob.read(4096)
    return ImageCounts(dict(sorted(roles.items())), signed, unmarked)


def _table_sums(release: Release) -> list[ReleaseFile]:
    """One sums file for each table, and for the tars and the tree, over the data files of each."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for file in release.files:
        if not file.embedded:
            for name in _groups_of(file.path, release):
                groups.setdefault(name, []).append((file.path, file.sha256))
    return [
        _entry(path, write_sums(release.out, path, files))
        for name, files in sorted(groups.items())
        for path in [f"{SUMS_FOLDER}/{name}.sha256"]
    ]


def _groups_of(path: str, release: Release) -> Iterator[str]:
    for config in release.configs:
        if any(fnmatchcase(path, pattern) for patterns in config.splits.values() for pattern in patterns):
            yield config.name
    if path.startswith("wds/"):
        yield "webdataset"
    elif path.startswith(f"{FOLDER}/"):
        yield FOLDER
    elif "/" in path and not path.startswith(_OUTSIDE_TREE):
        yield "med-banana"


def _write_provenance(release: Release, reader: JournalReader, beside: list[ReleaseFile]) -> int:
    """Lists manifests that providers had embedded in what they sent; returns how many. No file when there are none."""
    lines = _imported_provenance(reader) or _embedded_manifests(reader)
    if lines:
        beside.append(_document(release.out, PROVENANCE, b"".join(lines)))
    return len(lines)


def _imported_provenance(reader: JournalReader) -> list[bytes]:
    """What the release that this run was imported from had listed: the bytes themselves were in no release."""
    path = reader.blobs.root.parent / PROVENANCE
    if not path.is_file():
        return []
    try:
        entries = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        return [orjson.dumps({name: entry[name] for name in _PROVENANCE_FIELDS}) + b"\n" for entry in entries]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not what an import leaves there: {error}") from error


def _embedded_manifests(reader: JournalReader) -> list[bytes]:
    lines = []
    for task, generation, round, raw in raw_answers(reader):
        path = reader.blob_path(raw)
        found = embedded_manifest(path) if path.exists() else None
        if found is not None:
            values = (task, generation, round, raw, found.container, found.bytes)
            lines.append(orjson.dumps(dict(zip(_PROVENANCE_FIELDS, values, strict=True))) + b"\n")
    return lines
