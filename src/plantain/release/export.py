"""From a run to a release: a snapshot, a plan, the layouts, and what stands beside them; restartable at any moment."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from plantain.files.opening import check_received
from plantain.journal import BlobStore, JournalReader
from plantain.journal.cards import as_json as card_as_json
from plantain.journal.disk.blobs import sync_folder
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.journal.disk.space import is_full
from plantain.journal.forward import backup
from plantain.journal.questions.release import closed_digest, closed_images
from plantain.privacy.licence_terms import as_json
from plantain.privacy.licence_texts import PARTS
from plantain.records import InputError
from plantain.release.cards.configs import table_configs
from plantain.release.finish import finish_release
from plantain.release.judges import keep_cards, kept_cards, run_cards, write_cards
from plantain.release.layouts.contract import LAYOUTS, chosen
from plantain.release.licences.permission import original_terms, refuse_unnamed, released_terms
from plantain.release.people import keep_ratings
from plantain.release.pictures import Pictures
from plantain.release.plan import FACTS, STAGING, ExportOptions, Release, ReleaseFile, RunFacts, Signer
from plantain.release.register import register
from plantain.release.staging import HashingFile, StagedFiles, Staging, edited_images
from plantain.release.survey import Survey

RowLabels = Callable[[str], None]
"""Called with each stage's name as it begins."""


@dataclass(frozen=True, slots=True)
class PartLicence:
    """A part of the release ("images of DATASET" or "records"), its SPDX id, and who `decided` (see `Part`)."""

    part: str
    licence: str
    decided: str


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export left behind.

    `images` are edited ones, in all layouts together; `originals` are source images, each once.
    `resumed` says that an earlier, unfinished one was continued; `complete` that there was nothing left to do.
    """

    out: Path
    facts: RunFacts
    licences: tuple[PartLicence, ...]
    files: int
    images: int
    originals: int
    bytes: int
    resumed: bool = False
    complete: bool = False


def export_run(
    run: Path, out: Path, options: ExportOptions, report_stage: RowLabels | None = None
) -> ExportSummary:
    """Makes a release of a run's closed tasks, or continues one that was interrupted.

    The state of the run when the export began is what is released, even if a build goes on meanwhile.

    Raises:
        InputError: `out` holds something else or a release with other options, nothing is closed yet, a source
            needs an agreement that was not named, nobody has named the licence of the edits of a dataset that decides
            none itself, or a layout is unknown.
    """
    if not options.layouts:
        raise InputError(f"--layout: none is named; there are {', '.join(LAYOUTS)}")
    chosen(options.layouts)
    say = report_stage or (lambda stage: None)
    with JournalReader.open(run) as live:
        finished = _finished(out, live, options)
        if finished is not None:
            return finished
        refuse_unnamed(live, options)
    signer = _signer(options)
    resumed = (out / STAGING / "plan.sqlite").exists()
    try:
        summary = _export(run, out, options, signer, say)
    except (OSError, sqlite3.OperationalError) as error:
        raise _cannot_write(out, error) from error
    return replace(summary, resumed=resumed)


def _export(
    run: Path, out: Path, options: ExportOptions, signer: Signer | None, say: RowLabels
) -> ExportSummary:
    staging = Staging(out)
    try:
        say("plan")
        with _snapshot(run, staging) as reader:
            _plan(reader, run, options, staging)
            summary = _write(reader, run, options, staging, signer, say)
    finally:
        staging.close()
    _remove_staging(out)
    return summary


def _cannot_write(out: Path, error: OSError | sqlite3.Error) -> InputError:
    """One line for a person; what is written stays, and the same command goes on from it."""
    if is_full(error):
        free = shutil.disk_usage(out).free
        return InputError(
            f"{out}: the disk is full, or a quota used up ({free / 1e6:.1f} MB free); "
            "make room and run the same command again: it continues"
        )
    return InputError(f"{out}: cannot write the release: {error}")


def _finished(out: Path, live: JournalReader, options: ExportOptions) -> ExportSummary | None:
    """The summary of a release that is already whole; None when there is work to do. Refuses any other folder."""
    if out.is_dir():
        check_received(out)
    if not out.exists() or (out / STAGING / "plan.sqlite").exists():
        return None
    if not out.is_dir():
        raise InputError(f"{out}: not a folder")
    names = [path.name for path in out.iterdir()]
    if not names or names == [STAGING]:
        return None
    facts = out / FACTS
    if not facts.is_file():
        raise InputError(f"{out}: holds something that is no release; choose an empty folder")
    kept = orjson.loads(facts.read_bytes())
    if kept.get("state") != _state(live, options, live.run):
        raise InputError(
            f"{out}: holds a release of another state or with other options; choose an empty folder"
        )
    with contextlib.suppress(FileNotFoundError):
        (out / STAGING).rmdir()
    totals = kept["totals"]
    return ExportSummary(
        out,
        RunFacts(**kept["facts"]),
        _licences(out),
        totals["files"],
        totals["images"],
        _carried(kept["facts"]),
        totals["bytes"],
        complete=True,
    )


def _state(reader: JournalReader, options: ExportOptions, run: Path) -> str:
    """A digest of what is closed in the run and of what was asked for: equal for a rerun, also after an import."""
    counted = closed_digest(reader)
    asked = [list(options.layouts), options.shard_bytes, options.sign_cert is not None]
    terms = as_json(released_terms(reader, options))
    asked_for = [counted, asked, options.redistribution_approved, terms]
    if options.originals != "none":
        asked_for.append([options.originals, as_json(original_terms(reader, options))])
    if options.doi:
        asked_for.append([options.doi])
    if options.beside:
        asked_for.append(
            {path: hashlib.sha256(data).hexdigest() for path, data in sorted(options.beside.items())}
        )
    if options.people:
        asked_for.append([dataclasses.asdict(one) for one in options.people])
    if cards := run_cards(run):
        asked_for.append({path: card_as_json(card) for path, card in cards.items()})
    return hashlib.sha256(orjson.dumps(asked_for)).hexdigest()


@contextlib.contextmanager
def _snapshot(run: Path, staging: Staging) -> Iterator[JournalReader]:
    """The journal as it was when the export began, with the run's own blobs."""
    folder = staging.folder / "run"
    copy = folder / JOURNAL_NAME
    if not copy.exists():
        folder.mkdir(exist_ok=True)
        backup(run / JOURNAL_NAME, copy)
    with JournalReader.open(folder) as reader:
        reader.blobs = BlobStore(run / "blobs")
        yield reader


def _plan(reader: JournalReader, run: Path, options: ExportOptions, staging: Staging) -> None:
    state = _state(reader, options, run)
    if staging.meta("planned") is None:
        staging.set_meta("state", state)
        keep_cards(staging, run_cards(run))
        keep_ratings(staging, options.people)
        Survey(reader, run, options, staging).make()
        register(run, staging.out, state, closed_images(reader))
    elif staging.meta("state") != state:
        raise InputError(
            f"{staging.out}: an export with other options was interrupted here; repeat those, or choose another folder"
        )


def _write(
    reader: JournalReader,
    run: Path,
    options: ExportOptions,
    staging: Staging,
    signer: Signer | None,
    say: RowLabels,
) -> ExportSummary:
    kept = staging.folder / "signed"
    kept.mkdir(exist_ok=True)
    pictures = Pictures(BlobStore(run / "blobs"), signer, kept)
    try:
        _write_layouts(options, staging, pictures, say)
    finally:
        pictures.close()
    facts = RunFacts(**orjson.loads(staging.meta("facts") or "{}"))
    configs = table_configs(staging)
    totals = _totals(staging)
    say("proof")
    staging.write(FACTS, "record", lambda file: _write_facts(file, facts, staging, totals))
    sources = orjson.loads(staging.meta("sources") or "{}")
    release = Release(
        staging.out,
        facts,
        configs,
        sources,
        StagedFiles(staging),
        edited_images(staging),
        kept_cards(staging),
    )
    finish_release(release, reader, options)
    counted = totals["files"], totals["images"], _carried({"originals": facts.originals}), totals["bytes"]
    return ExportSummary(staging.out, facts, _licences(staging.out), *counted)


def _carried(facts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> int:
    """How many source images came with their original, of what `run.json` says."""
    return sum(counts["carried"] for counts in facts.get("originals", {}).values())


def _licences(out: Path) -> tuple[PartLicence, ...]:
    """As the release itself says them."""
    parts = orjson.loads((out / PARTS).read_bytes())
    return tuple(PartLicence(part["part"], part["licence"], part["decided"]) for part in parts)


def _write_layouts(options: ExportOptions, staging: Staging, pictures: Pictures, say: RowLabels) -> None:
    write_cards(staging, kept_cards(staging))
    done: list[object] = []
    for name, layout in chosen(options.layouts).items():
        if layout.write not in done:
            say(name)
            layout.write(staging, pictures)
            done.append(layout.write)


def _signer(options: ExportOptions) -> Signer | None:
    if options.sign_cert is None:
        return None
    from plantain.release.proof.provenance import open_signer

    return open_signer(options)


def _totals(staging: Staging) -> dict[str, int]:
    """Data files, images (of which one can stand in several layouts), and bytes of the files."""
    files, images, size = staging.connection.execute(
        "SELECT COUNT(*) FILTER (WHERE row IS NULL AND member IS NULL), "
        "COUNT(*) FILTER (WHERE task IS NOT NULL AND role NOT IN ('mask', 'original')), "
        "TOTAL(bytes) FILTER (WHERE row IS NULL AND member IS NULL) FROM file WHERE path <> ?",
        (FACTS,),
    ).fetchone()
    return {"files": int(files), "images": int(images), "bytes": int(size)}


def _write_facts(
    file: HashingFile, facts: RunFacts, staging: Staging, totals: dict[str, int]
) -> Iterator[ReleaseFile]:
    document = {"facts": facts, "state": staging.meta("state"), "totals": totals}
    file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return iter(())


def _remove_staging(out: Path) -> None:
    """Removes the staging folder, its plan last: until that is gone, a restart finds its work done."""
    folder = out / STAGING
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "plan.sqlite":
            path.unlink()
    (folder / "plan.sqlite").unlink()
    folder.rmdir()
    sync_folder(out)
