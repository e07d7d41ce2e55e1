"""Exports a run as a release: a snapshot, a plan, the layouts, and the files around them. Resumable at any moment.

Cards describe the data files, the manifest lists both, and SHA256SUMS covers everything else. So one hash, that of
SHA256SUMS, identifies the whole release.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from plantain.files.opening import check_received
from plantain.journal import BadBlob, BlobStore, JournalReader
from plantain.journal.blobs import is_full, sync_folder
from plantain.journal.cards import as_json as card_as_json
from plantain.journal.cards import cards_by_path
from plantain.journal.connect import JOURNAL_NAME, backup
from plantain.journal.questions.release import closed_digest, closed_images
from plantain.journal.questions.tasks import corrected_edits, corrections_line
from plantain.journal.verdicts import PERSON
from plantain.journal.verify import damaged_blobs
from plantain.pixels.encode import XMP_PACKET
from plantain.privacy.licences import (
    ATTRIBUTION,
    PARTS,
    as_json,
    attribution,
    decide_parts,
    licence_files,
    original_parts,
)
from plantain.records import InputError, JudgeCard
from plantain.records.judging import no_card
from plantain.release.cards import ImageCounts, card, citation, datasheet, gather, table_configs
from plantain.release.croissant import croissant
from plantain.release.layouts.contract import LAYOUTS, chosen
from plantain.release.licensing import licence_remarks, refuse_unnamed, released_terms
from plantain.release.plan import FACTS, STAGING, ExportOptions, ReleaseFile, RunFacts
from plantain.release.proof.manifest import (
    DOCUMENT,
    MANIFEST,
    SUMS,
    rows_in,
    write_file,
    write_manifest,
)
from plantain.release.proof.provenance import C2paSigner, open_signer
from plantain.release.register import register
from plantain.release.released_images import ReleasedImages
from plantain.release.staging import Staging
from plantain.release.survey import Survey
from plantain.rubrics import recorded

ReportStage = Callable[[str], None]
"""Called with each stage's name as it starts."""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """The result of an export.

    Attributes:
        out: folder of the release.
        facts: facts about the run.
        licences: entries of LICENSES/parts.json: "part", "licence", "decided" and more.
        files, bytes: number of files, and their total size.
        images: number of edited images in all layouts together; `originals`: number of distinct source images.
        resumed: True if an earlier, unfinished export was continued.
        complete: True if the release was complete already, and nothing was written.
        remarks: notes on named licences that were not used, and on originals of unknown licence.
    """

    out: Path
    facts: RunFacts
    licences: tuple[Mapping[str, str], ...]
    files: int
    images: int
    originals: int
    bytes: int
    resumed: bool = False
    complete: bool = False
    remarks: tuple[str, ...] = ()


def export_run(
    run: Path, out: Path, options: ExportOptions, report_stage: ReportStage | None = None
) -> ExportSummary:
    """Write a release of a run's closed tasks, or continue one that was interrupted.

    The release has the state of the run when the export started, even if a build continues meanwhile.

    Raises:
        InputError: `out` contains other files or a release with other options, no task is closed yet, a source needs
            an agreement that was not named, edits have no licence, or a layout is unknown.
    """
    if not options.layouts:
        raise InputError(f"--layout: none is named; there are {', '.join(LAYOUTS)}")
    chosen(options.layouts)
    with JournalReader.open(run) as live:
        if _is_finished(out, live, options):
            return replace(_summary(out), complete=True)
        refuse_unnamed(live, options)
        remarks = licence_remarks(live, options)
    signer = open_signer(options) if options.sign_cert is not None else None
    resumed = (out / STAGING / "plan.sqlite").exists()
    stage = report_stage or (lambda stage: None)
    try:
        try:
            _export(run, out, options, signer, stage)
        except BadBlob:  # every image is checked then, and the release planned again without the damaged ones
            stage("looking for damaged images")
            with JournalReader.open(run) as live:
                found = damaged_blobs(live)
            for path in out.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            _export(run, out, options, signer, stage, found)
    except (OSError, sqlite3.OperationalError) as error:
        if is_full(error):
            free = shutil.disk_usage(out).free
            raise InputError(
                f"{out}: the disk is full, or a quota used up ({free / 1e6:.1f} MB free); "
                "make room and run the same command again: it continues"
            ) from error
        raise InputError(f"{out}: cannot write the release: {error}") from error
    return replace(_summary(out), resumed=resumed, remarks=remarks)


def _export(
    run: Path,
    out: Path,
    options: ExportOptions,
    signer: C2paSigner | None,
    report: ReportStage,
    damaged: frozenset[str] = frozenset(),
) -> None:
    staging = Staging(out)
    try:
        report("choosing the tasks of the release")
        if damaged:
            staging.set_meta("damaged", orjson.dumps(sorted(damaged)).decode())
        with _snapshot(run, staging) as reader:
            _plan(reader, run, options, staging)
            _write_layouts(run, options, staging, signer, report)
            report("writing checksums, licences and cards")
            facts = TypeAdapter(RunFacts).validate_json(staging.meta("facts") or "{}")
            document = {"facts": facts, "state": staging.meta("state"), "totals": _totals(staging)}
            data = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            staging.write_chunks(FACTS, lambda: (data,))
            _write_around(staging, facts, reader, options)
    finally:
        staging.close()
    _remove_staging(out)


def _is_finished(out: Path, live: JournalReader, options: ExportOptions) -> bool:
    """Return True if `out` is the complete release. Raises InputError for any other folder that is not empty."""
    if out.is_dir():
        check_received(out)
    if not out.exists() or (out / STAGING / "plan.sqlite").exists():
        return False
    if not out.is_dir():
        raise InputError(f"{out}: not a folder")
    if {path.name for path in out.iterdir()} <= {STAGING}:
        return False
    if not (out / FACTS).is_file():
        raise InputError(f"{out}: contains files that are not of a release; choose an empty folder")
    if orjson.loads((out / FACTS).read_bytes()).get("state") != _state(live, options, live.run):
        raise InputError(
            f"{out}: contains another release: the run has changed since, or the options differ; choose an empty folder"
        )
    with contextlib.suppress(FileNotFoundError):
        (out / STAGING).rmdir()
    return True


def _summary(out: Path) -> ExportSummary:
    """Return the summary of a complete release, as it states it."""
    kept = orjson.loads((out / FACTS).read_bytes())
    facts, totals = TypeAdapter(RunFacts).validate_python(kept["facts"]), kept["totals"]
    licences = tuple(orjson.loads((out / PARTS).read_bytes()))
    originals = sum(counts["carried"] for counts in facts.originals.values())
    return ExportSummary(out, facts, licences, totals["files"], totals["images"], originals, totals["bytes"])


def _state(reader: JournalReader, options: ExportOptions, run: Path) -> str:
    """Return a digest of the run's closed tasks and of the options: equal for a rerun, also after an import."""
    parts: list[object] = [
        closed_digest(reader),
        [list(options.layouts), options.shard_bytes, options.sign_cert is not None],
        options.redistribution_approved,
        as_json(released_terms(reader, options)),
        options.originals,
        options.doi,
        {path: hashlib.sha256(data).hexdigest() for path, data in sorted(options.documents.items())},
        {path: card_as_json(card) for path, card in cards_by_path(run).items()},
    ]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


@contextlib.contextmanager
def _snapshot(run: Path, staging: Staging) -> Iterator[JournalReader]:
    """Open the journal as it was when the export started, with the run's own blobs."""
    folder = staging.folder / "run"
    copy = folder / JOURNAL_NAME
    if not copy.exists():
        folder.mkdir(exist_ok=True)
        backup(run / JOURNAL_NAME, copy)
    with JournalReader.open(folder) as reader:
        reader.blobs = _blobs(run, staging)
        yield reader


def _blobs(run: Path, staging: Staging) -> BlobStore:
    blobs = BlobStore(run / "blobs")
    blobs.damaged = frozenset(orjson.loads(staging.meta("damaged") or "[]"))
    return blobs


def _plan(reader: JournalReader, run: Path, options: ExportOptions, staging: Staging) -> None:
    state = _state(reader, options, run)
    if staging.meta("planned") is None:
        staging.set_meta("state", state)
        Survey(reader, run, options, staging).make()
        register(run, staging.out, state, closed_images(reader))
    elif staging.meta("state") != state:
        raise InputError(
            f"{staging.out}: an export with other options was interrupted here; repeat those, or choose another folder"
        )


def _write_layouts(
    run: Path, options: ExportOptions, staging: Staging, signer: C2paSigner | None, report: ReportStage
) -> None:
    signed = staging.folder / "signed"
    signed.mkdir(exist_ok=True)
    released = ReleasedImages(_blobs(run, staging), signer, signed)
    try:
        for path, card in cards_by_path(run).items():
            data = orjson.dumps(card_as_json(card), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            staging.write_chunks(path, lambda data=data: (data,))  # type: ignore[misc]
        written: list[object] = []
        for name, layout in chosen(options.layouts).items():
            if layout.write not in written:  # `parquet` and `preference` share one
                report(f"writing {name}")
                layout.write(staging, released)
                written.append(layout.write)
    finally:
        released.close()


def _totals(staging: Staging) -> dict[str, int]:
    """Return the numbers of data files and images (one may be in several layouts), and bytes of the files."""
    files, images, size = staging.connection.execute(
        "SELECT COUNT(*) FILTER (WHERE row IS NULL AND member IS NULL), "
        "COUNT(*) FILTER (WHERE task IS NOT NULL AND role NOT IN ('mask', 'original')), "
        "TOTAL(bytes) FILTER (WHERE row IS NULL AND member IS NULL) FROM file WHERE path <> ?",
        (FACTS,),
    ).fetchone()
    return {"files": int(files), "images": int(images), "bytes": int(size)}


def _remove_staging(out: Path) -> None:
    """Remove the staging folder, its plan last: until that is gone, a restart finds its work done."""
    folder = out / STAGING
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "plan.sqlite":
            path.unlink()
    (folder / "plan.sqlite").unlink()
    folder.rmdir()
    sync_folder(out)


def _write_around(staging: Staging, facts: RunFacts, reader: JournalReader, options: ExportOptions) -> None:
    """Write licences, cards, manifest and sums around the data files. Running it again writes the same.

    Args:
        staging: with every data file recorded.
        reader: of the snapshot of the journal that the data files were made from.
    """
    out, configs = staging.out, table_configs(staging)
    sources = orjson.loads(staging.meta("sources") or "{}")
    parts = decide_parts(sources, options.redistribution_approved, facts.terms)
    originals = original_parts(sources, facts.originals)
    parts = (*originals, *parts)
    numbers = gather(reader)
    images = _count_images(staging.edited_images(), reader.blobs)
    judged_by = _who_judged(facts, cards_by_path(out))
    if corrected := corrections_line(corrected_edits(reader)):
        judged_by.append(f"{corrected[0].upper()}{corrected[1:]} (table verdicts, judge person/CODE)")
    documents = {
        "README.md": (
            card(facts, configs, numbers, parts, images, options, judged_by) + _damage(facts)
        ).encode(),
        "DATASHEET.md": datasheet(facts, numbers, parts, images, judged_by).encode(),
        "CITATION.cff": citation(facts, parts, sources, options.doi).encode(),
        "croissant.json": croissant(out, facts, configs, parts, staging.files(), options.doi),
        **licence_files(parts),
        **options.documents,
    }
    if originals:
        documents[ATTRIBUTION] = attribution(originals).encode()
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
