"""Writes licences, cards, manifest and sums around the data files of a release.

Cards describe the data files, the manifest lists both, and SHA256SUMS covers everything else. So one hash, that of
SHA256SUMS, identifies the whole release.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

import orjson

from plantain.journal import BlobStore, JournalReader
from plantain.journal.cards import cards_by_path
from plantain.journal.questions.release import raw_answers
from plantain.journal.questions.tasks import corrected_edits, corrections_line
from plantain.journal.verdicts import PERSON
from plantain.pixels.encode import XMP_PACKET
from plantain.privacy.licences import (
    ATTRIBUTION,
    attribution,
    decide_parts,
    licence_files,
    original_parts,
)
from plantain.records import InputError, JudgeCard
from plantain.records.judging import no_card
from plantain.release.cards.cards import card, citation, table_configs
from plantain.release.cards.croissant import croissant
from plantain.release.cards.datasheet import ImageCounts, datasheet, gather
from plantain.release.plan import ExportOptions, ReleaseFile, RunFacts
from plantain.release.proof.manifest import (
    DOCUMENT,
    MANIFEST,
    SUMS,
    rows_in,
    write_file,
    write_manifest,
)
from plantain.release.proof.provenance import PROVENANCE, embedded_manifest
from plantain.release.staging import Staging
from plantain.rubrics import recorded

_PROVENANCE_FIELDS = ("task", "generation", "round", "raw_sha256", "container", "manifest_bytes")


def finish_release(staging: Staging, facts: RunFacts, reader: JournalReader, options: ExportOptions) -> None:
    """Write everything around the data files of a release. Running it again writes the same.

    Args:
        staging: with every data file recorded.
        reader: of the snapshot of the journal that the data files were made from.
    """
    out, configs = staging.out, table_configs(staging)
    sources = orjson.loads(staging.meta("sources") or "{}")
    parts = decide_parts(sources, options.redistribution_approved, facts.terms)
    originals = original_parts(sources, facts.originals, facts.original_terms)
    parts = (*originals, *parts)
    numbers = gather(reader)
    images = _count_images(staging.edited_images(), reader.blobs)
    provenance = _imported_provenance(reader) or _embedded_manifests(reader)
    judged_by = _who_judged(facts, cards_by_path(out))
    if corrected := corrections_line(corrected_edits(reader)):
        judged_by.append(f"{corrected[0].upper()}{corrected[1:]} (table verdicts, judge person/CODE)")
    documents = {
        "README.md": (
            card(facts, configs, numbers, parts, images, options, judged_by) + _damage(facts)
        ).encode(),
        "DATASHEET.md": datasheet(facts, numbers, parts, images, len(provenance), judged_by).encode(),
        "CITATION.cff": citation(facts, parts, sources, options.doi).encode(),
        "croissant.json": croissant(out, facts, configs, parts, staging.files(), options.doi),
        **licence_files(parts),
        **options.documents,
    }
    if originals:
        documents[ATTRIBUTION] = attribution(originals).encode()
    if provenance:
        documents[PROVENANCE] = b"".join(provenance)
    added = [_entry(path, write_file(out, path, (data,))) for path, data in documents.items()]
    _list_everything(staging, sorted(added, key=_place))


def _who_judged(facts: RunFacts, cards: Mapping[str, JudgeCard]) -> list[str]:
    """Return a line for each judge: its card's line, or that it has none, and its number of verdicts."""
    rubric = recorded(facts.frozen).name
    lines = {card.judge: card.line for card in cards.values() if card.rubric == rubric}
    asked = {judge: n for judge, n in facts.judges.items() if not judge.startswith(PERSON)}
    return [f"{lines.get(judge, no_card(judge, rubric))} [{n:,} verdicts]" for judge, n in asked.items()]


def _damage(facts: RunFacts) -> str:
    if not facts.damaged:
        return ""
    return f"\nDamaged in the run, and not in this release: {'; '.join(facts.damaged)}.\n"


def _list_everything(staging: Staging, added: list[ReleaseFile]) -> None:
    out = staging.out
    manifest = write_manifest(
        out,
        heapq.merge(staging.files(), added, key=_place),
        lambda file: None if file.role == DOCUMENT else rows_in(out / file.path),
    )
    rest = sorted([*added, _entry(MANIFEST, manifest)], key=_place)
    listed = heapq.merge(staging.files(), rest, key=_place)
    write_file(out, SUMS, (f"{file.sha256}  {file.path}\n".encode() for file in listed if not file.embedded))


def _place(file: ReleaseFile) -> tuple[str, int, str]:
    """Return the sort key of every list: a file, then the images inside it by row and member."""
    return file.path, -1 if file.row is None else file.row, file.member or ""


def _entry(path: str, written: tuple[str, int]) -> ReleaseFile:
    return ReleaseFile(path, written[0], written[1], DOCUMENT)


def _count_images(edited: Iterable[tuple[str, str, bool]], blobs: BlobStore) -> ImageCounts:
    """Count edited images, each once however many layouts contain it."""
    roles: Counter[str] = Counter()
    signed = unmarked = 0
    for role, sha256, is_signed in edited:
        roles[role] += 1
        signed += is_signed
        with blobs.path(sha256).open("rb") as blob:
            unmarked += XMP_PACKET not in blob.read(4096)
    return ImageCounts(dict(sorted(roles.items())), signed, unmarked)


def _imported_provenance(reader: JournalReader) -> list[bytes]:
    """Return the manifests listed by the release that this run was imported from; their bytes are in no release."""
    path = reader.blobs.root.parent / PROVENANCE
    if not path.is_file():
        return []
    try:
        entries = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        return [orjson.dumps({name: entry[name] for name in _PROVENANCE_FIELDS}) + b"\n" for entry in entries]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a file of an import: {error}") from error


def _embedded_manifests(reader: JournalReader) -> list[bytes]:
    """List the manifests that providers had embedded in their answers."""
    lines = []
    for task, generation, round, raw in raw_answers(reader):
        path = reader.blob_path(raw)
        found = embedded_manifest(path) if path.exists() else None
        if found is not None:
            values = (task, generation, round, raw, *found)
            lines.append(orjson.dumps(dict(zip(_PROVENANCE_FIELDS, values, strict=True))) + b"\n")
    return lines
