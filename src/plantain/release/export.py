"""Exports a run as a release: a snapshot, a plan, the layouts, and the files around them.

Cards describe the data files, the manifest lists both, and SHA256SUMS covers everything else. So one hash, that of
SHA256SUMS, identifies the whole release.
"""

from __future__ import annotations

import contextlib
import heapq
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from plantain.journal import BadBlob, BlobStore, JournalReader
from plantain.journal.blobs import is_full
from plantain.journal.cards import as_json as card_as_json
from plantain.journal.cards import cards_by_path
from plantain.journal.connect import JOURNAL_NAME, new_folder
from plantain.journal.questions.release import closed_images
from plantain.journal.questions.tasks import corrected_edits, corrections_line
from plantain.journal.verdicts import PERSON
from plantain.journal.verify import damaged_blobs
from plantain.privacy.licences import (
    ATTRIBUTION,
    PARTS,
    attribution,
    decide_parts,
    licence_files,
    original_parts,
)
from plantain.records import InputError, JudgeCard
from plantain.records.judging import no_card
from plantain.release.cards import card, citation, gather, table_configs
from plantain.release.croissant import croissant
from plantain.release.layouts.contract import LAYOUTS, chosen
from plantain.release.licensing import check_licences
from plantain.release.plan import FACTS, ExportOptions, ReleaseFile, RunFacts
from plantain.release.proof.manifest import (
    DOCUMENT,
    MANIFEST,
    SUMS,
    rows_in,
    write_manifest,
)
from plantain.release.proof.provenance import C2paSigner, open_signer
from plantain.release.register import register
from plantain.release.released_images import ReleasedImages
from plantain.release.staging import Staging, write_file
from plantain.release.survey import Survey
from plantain.rubrics import recorded

_INDENTED = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE

ReportStage = Callable[[str], None]
"""Called with each stage's name as it starts."""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """The result of an export.

    Attributes:
        out: folder of the release.
        facts: facts about the run.
        licences: entries of LICENSES/parts.json: "part", "licence", "decided" and more.
        files, bytes: number of data files, and the total size of these.
        images: number of edited images in all layouts together; `originals`: number of distinct source images.
        remarks: notes on named licences that were not used, and on originals of unknown licence.
    """

    out: Path
    facts: RunFacts
    licences: tuple[Mapping[str, str], ...]
    files: int
    images: int
    originals: int
    bytes: int
    remarks: tuple[str, ...] = ()


def export_run(
    run: Path, out: Path, options: ExportOptions, report_stage: ReportStage | None = None
) -> ExportSummary:
    """Write a release of a run's closed tasks. The folder appears when it is complete.

    The release has the state of the run when the export started, even if a build continues meanwhile.

    Raises:
        InputError: `out` exists, no task is closed yet, a source needs an agreement that was not named, edits
            have no licence, or a layout is unknown.
    """
    if not options.layouts:
        raise InputError(f"--layout: none is named; there are {', '.join(LAYOUTS)}")
    chosen(options.layouts)
    if out.is_symlink() or out.exists():  # renaming onto a folder would take it from a shell or mount in it
        raise InputError(f"{out}: exists already; name a new folder for the release")
    with JournalReader.open(run) as live:
        remarks = check_licences(live, options)
    signer = open_signer(options) if options.sign_cert is not None else None
    report = report_stage or (lambda stage: None)
    try:
        with new_folder(out) as part:
            try:
                return _export(run, part, out, options, signer, report, remarks)
            except (
                BadBlob
            ):  # every image is checked then, and the release planned again without the damaged ones
                report("looking for damaged images")
                with JournalReader.open(run) as live:
                    damaged = damaged_blobs(live)
                shutil.rmtree(part)
                return _export(run, part, out, options, signer, report, remarks, damaged)
    except (OSError, sqlite3.OperationalError) as error:
        if is_full(error):
            free = shutil.disk_usage(out.absolute().parent).free
            raise InputError(
                f"{out}: the disk is full, or a quota used up ({free / 1e6:.1f} MB free); make room and run the same "
                "command again"
            ) from error
        raise InputError(f"{out}: cannot write the release: {error}") from error


def _export(
    run: Path,
    part: Path,
    out: Path,
    options: ExportOptions,
    signer: C2paSigner | None,
    report: ReportStage,
    remarks: tuple[str, ...],
    damaged: frozenset[str] = frozenset(),
) -> ExportSummary:
    """Write the release to the empty folder `part`, which becomes `out`."""
    part.mkdir()
    with (
        tempfile.TemporaryDirectory(dir=part.parent) as scratch,
        contextlib.closing(Staging(part, Path(scratch), options.shard_bytes)) as staging,
    ):
        report("choosing the tasks of the release")
        with contextlib.closing(sqlite3.connect(run / JOURNAL_NAME)) as live:
            live.execute("VACUUM INTO ?", (str(Path(scratch) / JOURNAL_NAME),))
        blobs = BlobStore(run / "blobs")
        blobs.damaged = damaged
        with JournalReader.open(Path(scratch)) as reader:
            reader.blobs = blobs
            Survey(reader, run, options, staging).make()
            register(run, out, closed_images(reader))
            _write_layouts(run, options, staging, ReleasedImages(blobs, signer, Path(scratch)), report)
            report("writing checksums, licences and cards")
            files, images, size = staging.totals()
            document = {"facts": staging.facts}
            staging.write_chunks(FACTS, [orjson.dumps(document, option=_INDENTED)])
            licences = _write_around(staging, reader, options)
        originals = sum(counts["carried"] for counts in staging.facts.originals.values())
        return ExportSummary(out, staging.facts, licences, files, images, originals, size, remarks)


def _write_layouts(
    run: Path, options: ExportOptions, staging: Staging, released: ReleasedImages, report: ReportStage
) -> None:
    with contextlib.closing(released):
        for path, card in cards_by_path(run).items():
            staging.write_chunks(path, [orjson.dumps(card_as_json(card), option=_INDENTED)])
        written: list[object] = []
        for name, layout in chosen(options.layouts).items():
            if layout.write not in written:  # `parquet` and `preference` share one
                report(f"writing {name}")
                layout.write(staging, released)
                written.append(layout.write)


def _write_around(
    staging: Staging, reader: JournalReader, options: ExportOptions
) -> tuple[Mapping[str, str], ...]:
    """Write licences, cards, manifest and sums around the data files; return the entries of LICENSES/parts.json.

    Args:
        staging: with every data file recorded.
        reader: of the snapshot of the journal that the data files were made from.
    """
    out, facts, sources, configs = staging.out, staging.facts, staging.sources, table_configs(staging)
    parts = decide_parts(sources, options.redistribution_approved, facts.terms)
    originals = original_parts(sources, facts.originals)
    parts = (*originals, *parts)
    numbers = gather(reader)
    judged_by = _who_judged(facts, cards_by_path(out))
    if corrected := corrections_line(corrected_edits(reader)):
        judged_by.append(f"{corrected[0].upper()}{corrected[1:]} (table verdicts, judge person/CODE)")
    documents = {
        "README.md": card(
            facts, configs, numbers, parts, staging.images_by_role(), options, judged_by
        ).encode(),
        "CITATION.cff": citation(facts, parts, sources, options.doi).encode(),
        "croissant.json": croissant(out, facts, configs, parts, staging.files(), options.doi),
        **licence_files(parts),
    }
    if originals:
        documents[ATTRIBUTION] = attribution(originals).encode()
    added = [_entry(path, write_file(out, path, (data,))) for path, data in documents.items()]
    _list_everything(staging, sorted(added, key=_place))
    return tuple(orjson.loads(documents[PARTS]))


def _who_judged(facts: RunFacts, cards: Mapping[str, JudgeCard]) -> list[str]:
    """Return a line for each judge: its card's line, or that it has none, and its number of verdicts."""
    rubric = recorded(facts.frozen).name
    lines = {card.judge: card.line for card in cards.values() if card.rubric == rubric}
    asked = {judge: n for judge, n in facts.judges.items() if not judge.startswith(PERSON)}
    return [f"{lines.get(judge, no_card(judge, rubric))} [{n:,} verdicts]" for judge, n in asked.items()]


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
