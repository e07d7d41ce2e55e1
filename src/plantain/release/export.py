"""Exports a run as a release: a snapshot, a plan, the layouts, and the files around them. Resumable at any moment."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
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
from plantain.journal.verify import damaged_blobs
from plantain.privacy.licences import PARTS, as_json
from plantain.records import InputError
from plantain.release.finish import finish_release
from plantain.release.layouts.contract import LAYOUTS, chosen
from plantain.release.licensing import licences_unused, refuse_unnamed, released_terms
from plantain.release.plan import FACTS, STAGING, ExportOptions, RunFacts
from plantain.release.proof.provenance import C2paSigner, open_signer
from plantain.release.register import register
from plantain.release.released_images import ReleasedImages
from plantain.release.staging import Staging
from plantain.release.survey import Survey

ReportStage = Callable[[str], None]
"""Called with each stage's name as it starts."""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """The result of an export.

    Attributes:
        licences: parts of LICENSES/parts.json: "part", "licence", "decided" and more.
        images: edited images in all layouts together; `originals`: source images, each counted once.
        resumed: an earlier, unfinished export was continued.
        complete: the release was complete already, and nothing was written.
        remarks: licences that were named and not used.
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
    """Make a release of a run's closed tasks, or continue one that was interrupted.

    The release has the state of the run when the export started, even if a build continues meanwhile.

    Raises:
        InputError: `out` contains something else or a release with other options, no task is closed yet, a source
            needs an agreement that was not named, the licence of the edits of a dataset that decides none itself is
            missing, or a layout is unknown.
    """
    if not options.layouts:
        raise InputError(f"--layout: none is named; there are {', '.join(LAYOUTS)}")
    chosen(options.layouts)
    with JournalReader.open(run) as live:
        if _is_finished(out, live, options):
            return replace(_summary(out), complete=True)
        refuse_unnamed(live, options)
        remarks = licences_unused(live, options)
    signer = open_signer(options) if options.sign_cert is not None else None
    resumed = (out / STAGING / "plan.sqlite").exists()
    stage = report_stage or (lambda stage: None)
    try:
        try:
            _export(run, out, options, signer, stage)
        except BadBlob:  # every image is checked then, and the release planned again without the damaged ones
            stage("look for damaged images")
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
        report("plan")
        if damaged:
            staging.set_meta("damaged", orjson.dumps(sorted(damaged)).decode())
        with _snapshot(run, staging) as reader:
            _plan(reader, run, options, staging)
            _write_layouts(run, options, staging, signer, report)
            report("proof")
            facts = TypeAdapter(RunFacts).validate_json(staging.meta("facts") or "{}")
            document = {"facts": facts, "state": staging.meta("state"), "totals": _totals(staging)}
            data = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            staging.write_chunks(FACTS, lambda: (data,))
            finish_release(staging, facts, reader, options)
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
            f"{out}: contains a release of another state or with other options; choose an empty folder"
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
    terms, original_terms = released_terms(reader, options)
    parts: list[object] = [
        closed_digest(reader),
        [list(options.layouts), options.shard_bytes, options.sign_cert is not None],
        options.redistribution_approved,
        as_json(terms),
        options.originals,
        as_json(original_terms) if options.originals != "none" else None,
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
                report(name)
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
