"""Any published set of edits as a run: a table of pairs, or a tree as Med-Banana publishes it, read as a stream.

A row is an original, an edit, and what was asked for. What a row does not say stays unknown; a verdict that comes with
it is kept as published, never as a judge's. The run is there when it is whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
import orjson

from plantain.files.opening import read_inside
from plantain.files.source_type import declared_synthetic
from plantain.findings import load_taxonomy
from plantain.journal import BlobRef, Journal, JsonValue, RecordedTask, RunHeader, StoredScore, TaskRow
from plantain.journal.disk.blobs import sync_folder
from plantain.journal.reader import BLOBS_ABSENT
from plantain.journal.statements import NO_VERDICT
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.pixels.encode import encode_prepared
from plantain.pixels.fingerprint import pixel_sha256
from plantain.pixels.prepare import prepare, settle_grey
from plantain.records import (
    OK,
    Attempt,
    Direction,
    EditTask,
    Finding,
    Geometry,
    InputError,
    Licence,
    Score,
    SourceImage,
    TaskState,
    task_id,
)
from plantain.records.suggestions import fold, suggest
from plantain.release.importing.originals import Originals, PreparedOriginal
from plantain.release.importing.pair_rows import PairRow, Picture, rows_of
from plantain.release.plan import IMPORTED

AT_ONCE = 32
"""Rows whose pictures are in memory."""
NO_PICTURE = BlobRef("", 0, "image/jpeg")
SIDE = 1024
STRETCH = 0.02
"""How far the sides' ratio of an edit may lie from its original's."""
NAMED = 5
"""Rows named of those that are left out for one reason."""
PUBLISHED = "published"
"""Metric under which the journal keeps what came with a row."""

YES = frozenset({"true", "yes", "1", "1.0", "pass", "passed", "success", "qualified", "accept", "accepted"})
NO = frozenset(
    {"false", "no", "0", "0.0", "fail", "failed", "failure", "rejected", "reject", "not qualified"}
)
DIRECTIONS = {
    "add": Direction.ADD,
    "edit": Direction.ADD,
    "insert": Direction.ADD,
    "remove": Direction.REMOVE,
}
DIRECTIONS |= {"removal": Direction.REMOVE, "erase": Direction.REMOVE, "change": Direction.CHANGE}


@dataclass(slots=True)
class PairsSummary:
    """What an import of pairs brought.

    Attributes:
        run, kind: the folder made, and "pairs".
        rows: read; tasks: made of them; without_original: whose original did not come along.
        without_instruction: rows whose instruction is empty; direction and finding stand in for it.
        published: rows with a verdict of their own, by verdict.
        left_out: rows that could not be taken, by reason; left_out_ids: the first few of each.
    """

    run: Path
    kind: str = "pairs"
    rows: int = 0
    tasks: int = 0
    without_original: int = 0
    without_instruction: int = 0
    published: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    left_out_ids: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, reason: str, row: str) -> None:
        """Counts a row, by its id, that could not be taken."""
        self.left_out[reason] += 1
        ids = self.left_out_ids.setdefault(reason, [])
        if len(ids) < NAMED:
            ids.append(row)

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "run": str(self.run),
            "kind": self.kind,
            "rows": self.rows,
            "tasks": self.tasks,
            "without_original": self.without_original,
            "without_instruction": self.without_instruction,
            "published": dict(self.published),
            "left_out": dict(self.left_out),
            "left_out_ids": self.left_out_ids,
        }


def import_pairs(
    path: Path,
    run: Path,
    *,
    columns: Mapping[str, str] | None = None,
    originals: Path | None = None,
    on_row: Callable[[int], None] | None = None,
) -> PairsSummary:
    """Makes a run out of a published set of edits.

    Args:
        path: a .csv, .jsonl or .parquet file, a folder that holds one (`metadata.*`, or shards), or Med-Banana's tree.
        run: the run's folder; must be free.
        columns: role -> column, where its name does not tell.
        originals: a folder whose pictures are joined by their names to what a row calls its original.
        on_row: told the number of rows so far.

    Raises:
        InputError: nothing there that can be read, a column that is missing, no row that can be taken, or `run` is not
            free. Nothing is left then.
    """
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise InputError(f"{run}: is not an empty folder; an import makes a new run")
    root, rows = rows_of(path, columns or {}, originals)
    run.parent.mkdir(parents=True, exist_ok=True)
    part = run.with_name(f".{run.name}.importing")
    shutil.rmtree(part, ignore_errors=True)
    summary = PairsSummary(run)
    try:
        asyncio.run(_fill(part, path, root, rows, summary, on_row))
        if not summary.tasks:
            why = summary.left_out.most_common(1)
            raise InputError(
                f"{path}: no row could be taken" + (f": {why[0][0]} ({why[0][1]} rows)" if why else "")
            )
        if run.exists():
            run.rmdir()
        part.rename(run)
        sync_folder(run.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return summary


async def _fill(
    run: Path,
    path: Path,
    root: Path,
    rows: Iterator[PairRow],
    summary: PairsSummary,
    on_row: Callable[[int], None] | None,
) -> None:
    name = path.resolve().name
    header = RunHeader(hashlib.sha256(name.encode()).hexdigest()[:16], name, 0, {}, "")
    taxonomy, originals = _Findings(), Originals()
    async with Journal.create(run, header) as journal:
        while batch := list(islice(rows, AT_ONCE)):
            made = await asyncio.gather(
                *(asyncio.to_thread(_made, journal, root, row, taxonomy, originals) for row in batch)
            )
            images, tasks = {}, []
            for row, one in zip(batch, made, strict=True):
                summary.rows += 1
                if isinstance(one, str):
                    summary.leave_out(one, row.id)
                    continue
                summary.without_instruction += not row.instruction.strip()
                images[one.image.id] = (one.image, one.original)
                tasks.append(one.task)
                summary.without_original += not one.image.prepared_sha256
                summary.published[{True: "success", False: "failed", None: "none"}[one.verdict]] += 1
            await journal.add_images(images.values())
            added = await journal.add_recorded(tasks)
            summary.tasks += added
            if added < len(tasks):
                summary.left_out["the same original, edit and finding stand in an earlier row"] += (
                    len(tasks) - added
                )
            if on_row is not None:
                on_row(summary.rows)
        source_facts: dict[str, JsonValue] = {
            "kind": "pairs",
            "models": {},
            "left_out": sum(summary.left_out.values()),
        }
        source_facts |= {"run_id": header.run_id, "name": name, "seed": 0, "code_version": "", "frozen": {}}
        await journal.set_meta(IMPORTED, orjson.dumps(source_facts).decode())
        await journal.set_meta(BLOBS_ABSENT, "1")


@dataclass(frozen=True, slots=True)
class _Made:
    image: SourceImage
    original: BlobRef
    task: RecordedTask
    verdict: bool | None


class _Findings:
    """Findings by what rows call them."""

    def __init__(self) -> None:
        self._taxonomy = load_taxonomy()
        self.modalities = sorted({finding.modality for finding in self._taxonomy.findings})

    def modality(self, name: str) -> str:
        """As we call it. Raises InputError, which names the nearest."""
        names = {fold(name): name for name in self.modalities} | {
            "chestxray": "chest_xray",
            "cxr": "chest_xray",
        }
        names |= {"xray": "chest_xray", "chest": "chest_xray", "mri": "brain_mri", "brain": "brain_mri"}
        names |= {"retina": "fundus", "fundusphotograph": "fundus"}
        if fold(name) not in names:
            raise InputError(f"modality {name!r}: {suggest(name, self.modalities)}")
        return names[fold(name)]

    def find(self, modality: str, name: str) -> Finding | None:
        """The finding that is meant; None for one of their own."""
        return next((f for f in self._taxonomy.of(modality) if fold(f.name) == fold(name)), None)


def _made(
    journal: Journal, root: Path, row: PairRow, findings: _Findings, originals: Originals
) -> _Made | str:
    """A row as the journal keeps it, or why it cannot be taken. Runs in a thread."""
    try:
        modality = findings.modality(row.modality)
        direction = DIRECTIONS.get(row.direction.strip().lower())
        if direction is None:
            return f"direction {row.direction[:40]!r}: add or remove"
        if not row.finding.strip():
            return "no finding is named"
        verdict = _verdict(row.verdict)
        original = None if row.original is None else _read(root, row.original)
        edited = _read(root, row.edited)
        return _recorded(journal, row, modality, direction, findings, verdict, original, edited, originals)
    except (InputError, BadImage) as error:
        return _short(str(error), row)


def _short(reason: str, row: PairRow) -> str:
    """A reason without the row's own file, so that like reasons are counted together."""
    for picture in (row.original, row.edited):
        if picture is not None and picture.name:
            reason = reason.replace(picture.name, "FILE")
    return reason[:200]


def _recorded(
    journal: Journal,
    row: PairRow,
    modality: str,
    direction: Direction,
    findings: _Findings,
    verdict: bool | None,
    original: bytes | None,
    edited: bytes,
    originals: Originals,
) -> _Made | str:
    known = findings.find(modality, row.finding)
    finding = known.name if known is not None else row.finding.strip()
    after = decode_untrusted(edited, row.edited.name or "edited")
    source = hashlib.sha256(original).hexdigest() if original is not None else ""
    before = None
    if original is not None:
        grey, name = modality != "fundus", row.original.name if row.original else ""
        before = originals.get((source, grey), lambda: _prepared(journal, original, name, grey))
    if before is not None and abs(_ratio(after) / before.ratio - 1) > STRETCH:
        return "the edit has another shape than its original"
    image = _image(row, modality, source, before)
    picture = _kept(edited, after, grey=modality != "fundus", synthetic=True)
    blob = replace(journal.put_blob(picture, "image/jpeg"), pixel_sha256=pixel_sha256(picture))
    name = task_id(f"pairs:{image.id}:{blob.sha256}:{row.model}", 0, finding, direction)
    instruction = (
        row.instruction.strip() or f"{direction.value.capitalize()} {known.title if known else finding}."
    )
    state = TaskState.STOPPED if verdict is None else TaskState.SUCCESS if verdict else TaskState.FAILED
    detail: dict[str, JsonValue] = {"id": row.id, "model": row.model, "file": row.edited.name}
    score = Score(None, "no verdict was published") if verdict is None else Score(float(verdict))
    task = RecordedTask(
        TaskRow(
            EditTask(name, image.id, modality, finding, direction),
            0,
            state,
            1,
            NO_VERDICT if verdict is None else "",
        ),
        (Attempt(name, 0, 1, instruction, OK, blob.sha256, blob.sha256),),
        (),
        (StoredScore(name, 0, 1, PUBLISHED, score, detail),),
        (blob,),
    )
    return _Made(image, before.reference if before is not None else NO_PICTURE, task, verdict)


def _prepared(journal: Journal, original: bytes, name: str, grey: bool) -> PreparedOriginal:
    pixels, synthetic = decode_untrusted(original, name), bool(declared_synthetic(original))
    data = _kept(original, pixels, grey=grey, synthetic=synthetic)
    geometry = prepare(np.zeros(pixels.shape[:2], np.uint8), SIDE)[1]
    return PreparedOriginal(_ratio(pixels), synthetic, geometry, journal.put_blob(data, "image/jpeg"))


def _image(row: PairRow, modality: str, source: str, original: PreparedOriginal | None) -> SourceImage:
    """The original as this run knows it; without its bytes only by what the row calls it."""
    called = row.original_name or source[:16] or row.id
    return SourceImage(
        id=f"{called}-{source[:12]}" if source else called,
        dataset=row.dataset or "pairs",
        modality=modality,
        labels=(),
        licence=_licence(row.licence),
        source_sha256=source,
        prepared_sha256=original.reference.sha256 if original is not None else "",
        geometry=original.geometry if original is not None else Geometry(0, 0, "unknown", 0, 0, 0, 0),
        group=row.group or None,
        view="frontal" if modality == "chest_xray" else "unknown",
        synthetic=original is not None and original.synthetic,
    )


def _kept(data: bytes, pixels: Pixels, *, grey: bool, synthetic: bool) -> bytes:
    """The published bytes where they are a JPEG of our size already, else the prepared picture."""
    if pixels.shape[:2] == (SIDE, SIDE) and data[:2] == b"\xff\xd8":
        return data
    prepared = prepare(pixels, SIDE)[0]
    prepared = settle_grey(prepared) if grey else prepared
    return encode_prepared(prepared, synthetic=synthetic)


def _ratio(pixels: Pixels) -> float:
    return float(pixels.shape[1] / pixels.shape[0])


def _read(root: Path, picture: Picture) -> bytes:
    if picture.data is not None:
        return picture.data
    return read_inside(picture.root or root, (picture.root or root) / picture.name)


def _verdict(cell: str) -> bool | None:
    word = cell.strip().lower()
    if word in YES or word in NO:
        return word in YES
    if word in ("", "none", "null", "nan", "unknown"):
        return None
    raise InputError(f"verdict {cell[:40]!r}: true or false")


def _licence(cell: str) -> Licence:
    try:
        return Licence(cell.strip().lower()) if cell.strip() else Licence.UNKNOWN
    except ValueError:
        raise InputError(f"licence {cell[:40]!r}: {suggest(cell, [one.value for one in Licence])}") from None
