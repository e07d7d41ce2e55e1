"""Imports any published set of edits as a run: a table of pairs, Med-Banana's tree, or a benchmark's output, streamed.

A row is an original, an edit, and an instruction. Anything else stays unknown; a published verdict is kept as a score,
never as a judge's. The run appears when it is complete.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import orjson

from plantain.files.opening import read_inside
from plantain.files.source_type import declared_synthetic
from plantain.files.tables import csv_line
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import BlobRef, Journal, JsonValue, RecordedTask, RunHeader, StoredScore, TaskRow
from plantain.journal.connect import check_new_run, new_run
from plantain.journal.reader import BLOBS_ABSENT
from plantain.journal.statements import NO_VERDICT
from plantain.journal.verdicts import PUBLISHED
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import (
    BadImage,
    decode,
    decode_output,
    decode_untrusted,
    grey_bits,
    one_line,
    pixel_sha256,
)
from plantain.pixels.encode import encode_prepared, prepare, resize, settle_grey
from plantain.records import (
    OK,
    Attempt,
    Direction,
    EditTask,
    Geometry,
    InputError,
    Licence,
    Score,
    SourceImage,
    TaskState,
    task_id,
)
from plantain.records.messages import fold, nearest
from plantain.release.importing.benchmarks import benchmark_rows
from plantain.release.importing.pair_rows import (
    Originals,
    PairRow,
    RejectedRow,
    RowImage,
    TableRules,
    direction_in,
    modality_of,
    rows_of,
)
from plantain.release.plan import IMPORTED

T = TypeVar("T")

AT_ONCE = 32
"""Rows whose images are in memory."""
NO_IMAGE = BlobRef("", 0, "image/jpeg")
SIDE = 1024
STRETCH = 0.02
"""Largest relative difference of aspect ratio between an edit and its original."""
REJECTED = "rejected.csv"
"""Every row that was not imported, with its reason: in the run, or next to it if no run was made."""

YES = frozenset({"true", "yes", "1", "1.0", "pass", "passed", "success", "qualified", "accept", "accepted"})
NO = frozenset(
    {"false", "no", "0", "0.0", "fail", "failed", "failure", "rejected", "reject", "not qualified"}
)
DIRECTIONS = dict.fromkeys(("add", "addition", "edit", "insert"), Direction.ADD) | {
    "change": Direction.CHANGE
}
DIRECTIONS |= dict.fromkeys(("remove", "removal", "erase", "delete"), Direction.REMOVE)
LICENCES = dict.fromkeys(("cc0-1.0", "pddl-1.0"), Licence.OPEN) | {one.value: one for one in Licence}
LICENCES |= dict.fromkeys(("cc-by-4.0", "odc-by-1.0"), Licence.ATTRIBUTION)
"""Terms of a licence by our names, and by the SPDX ids of tables on Hugging Face."""


@dataclass(slots=True)
class PairsSummary:
    """The result of an import of pairs.

    Attributes:
        run, kind: the new folder, and "pairs".
        rows, tasks, without_original: numbers of rows read, of tasks made, and of tasks whose original is missing.
        without_instruction: number of rows without an instruction; direction and finding are used instead.
        resized: number of a benchmark's edits that had another shape than their original.
        published: number of rows with a published verdict, by verdict.
        unknown: number of rows of each finding that the taxonomy does not contain, with its nearest finding or "".
        guessed: number of rows whose direction was inferred from the instruction, by direction.
        left_out: number of rows not imported, by reason; first: the first row of each reason.
        unused: columns that no role uses.
        rejected: the file that lists the rows not imported; None if all were.
    """

    run: Path
    kind: str = "pairs"
    rows: int = 0
    tasks: int = 0
    without_original: int = 0
    without_instruction: int = 0
    resized: int = 0
    published: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    guessed: Counter[str] = field(default_factory=Counter)
    unused: list[str] = field(default_factory=list)
    rejected: Path | None = None

    def leave_out(self, row: RejectedRow, file: Path) -> None:
        """Count a row that could not be imported, and add it to the file."""
        self.left_out[row.reason] += 1
        self.first.setdefault(row.reason, row.row)
        with file.open("a", encoding="utf-8") as listed:
            if self.rejected is None:
                listed.write(csv_line(("row", "id", "reason")))
            listed.write(csv_line((row.row, row.id, row.reason)))
        self.rejected = self.run / REJECTED


def import_pairs(
    path: Path,
    run: Path,
    *,
    columns: Mapping[str, str] | None = None,
    constants: Mapping[str, str] | None = None,
    originals: Path | None = None,
) -> PairsSummary:
    """Make a run from a published set of edits.

    Args:
        path: a table (see `pair_rows.ENDINGS`), a folder with one (`metadata.*`, or shards), Med-Banana's tree, or
            a benchmark's output folder (see `benchmarks`).
        run: the run's folder; must be empty or new.
        columns: role -> column, if the column has an unusual name.
        constants: role -> value of all rows, such as {"modality": "brain_mri"}.
        originals: a folder with originals, found by the names in rows.

    Raises:
        InputError: the path has no readable set of edits, a column is missing, no row can be imported, or `run` is
            not empty. Only the list of rejected rows is left then.
    """
    check_new_run(run)
    summary = PairsSummary(run)
    joined = Originals(originals) if originals is not None else None
    rules = TableRules(columns or {}, constants or {}, joined, summary.unused)
    if path.is_dir() and (found := benchmark_rows(path, rules)) is not None:
        root, rows = path, found
    else:
        root, rows = rows_of(path, rules)
    with new_run(run) as part:
        asyncio.run(_fill(part, path, root, rows, summary))
        if not summary.tasks:
            if summary.rejected is None:
                raise InputError(f"{path}: has no rows")
            listed = run.with_name(f"{run.name}.{REJECTED}")
            (part / REJECTED).replace(listed)
            why, row = next(iter(summary.first.items()))
            raise InputError(
                f"{path}: no row could be imported; row {row}: {why}; all {summary.rows} are in {listed}"
            )
    return summary


async def _fill(
    run: Path, path: Path, root: Path, rows: Iterator[PairRow | RejectedRow], summary: PairsSummary
) -> None:
    name = path.resolve().name
    header = RunHeader(hashlib.sha256(name.encode()).hexdigest()[:16], name, 0, {}, "")
    importer = _RowImporter(root, load_taxonomy())
    seen: dict[str, int] = {}
    stated: dict[tuple[str, str], tuple[int, str]] = {}
    async with Journal.create(run, header) as journal:
        journal.blobs.synced = False
        while batch := list(islice(rows, AT_ONCE)):
            made = await asyncio.gather(
                *(asyncio.to_thread(importer.imported, journal, row) for row in batch)
            )
            images, tasks = {}, []
            for row, one in zip(batch, made, strict=True):
                summary.rows += 1
                if not isinstance(one, RejectedRow) and (same := seen.get(one.task.row.id)) is not None:
                    why = f"the same original, edit and finding as row {same}"
                    one = RejectedRow(row.row, row.id, why)
                if not isinstance(one, RejectedRow) and (why := _contradiction(one.image, row.row, stated)):
                    one = RejectedRow(row.row, row.id, why)
                if isinstance(one, RejectedRow):
                    await asyncio.to_thread(summary.leave_out, one, run / REJECTED)
                    continue
                assert isinstance(row, PairRow)
                seen[one.task.row.id] = row.row
                summary.without_instruction += not row.instruction.strip()
                summary.unknown.update(one.unknown)
                summary.guessed.update(
                    [one.task.row.task.direction.value] if not row.direction.strip() else []
                )
                images[one.image.id] = (one.image, one.original)
                tasks.append(one.task)
                summary.without_original += not one.image.prepared_sha256
                summary.resized += one.resized
                summary.published[{True: "success", False: "failed", None: "none"}[one.verdict]] += 1
            await journal.add_images(images.values())
            summary.tasks += await journal.add_recorded(tasks)
        source_facts: dict[str, JsonValue] = {
            "kind": "pairs",
            "models": {},
            "left_out": 0,
        }
        source_facts |= {"run_id": header.run_id, "name": name, "seed": 0, "code_version": "", "frozen": {}}
        await journal.set_meta(IMPORTED, orjson.dumps(source_facts).decode())
        await journal.set_meta(BLOBS_ABSENT, "1")


def _contradiction(image: SourceImage, row: int, stated: dict[tuple[str, str], tuple[int, str]]) -> str:
    """Return why a row contradicts an earlier one about their original; "" if it does not. `stated` is filled."""
    for role, value in (("modality", image.modality), ("group", image.group or "")):
        first, before = stated.setdefault((image.id, role), (row, value)) if value else (row, value)
        if before != value:
            return f"{role}: {value}, but row {first} states {before} of the same original"
    return ""


@dataclass(frozen=True, slots=True)
class _Imported:
    image: SourceImage
    original: BlobRef
    task: RecordedTask
    verdict: bool | None
    resized: bool
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _PreparedOriginal:
    """An original that many rows may share: its aspect ratio, origin and geometry, and its prepared image."""

    ratio: float
    synthetic: bool
    geometry: Geometry
    reference: BlobRef


class _RowImporter:
    """Turns rows into records of the journal; used by several threads."""

    def __init__(self, root: Path, taxonomy: Taxonomy) -> None:
        self._root = root
        self._taxonomy = taxonomy
        self._originals: dict[tuple[str, bool], _PreparedOriginal] = {}

    def imported(self, journal: Journal, row: PairRow | RejectedRow) -> _Imported | RejectedRow:
        """Return a row as the journal keeps it, or why it cannot be imported."""
        if isinstance(row, RejectedRow):
            return row
        try:
            return self._imported(journal, row)
        except (InputError, BadImage) as error:
            reason = str(error)
            for image in (row.original, row.edited):
                if image is not None and image.name:
                    reason = reason.replace(str((image.root or self._root) / image.name), image.name)
            return RejectedRow(row.row, row.id, reason[:200])

    def _imported(self, journal: Journal, row: PairRow) -> _Imported:
        if not row.modality.strip():
            raise InputError("modality: is empty")
        ours = None if row.own_modality else modality_of(row.modality.strip())
        modality = ours or one_line(row.modality.strip())[:64]
        direction = _direction(row)
        if ours and not row.finding.strip():
            raise InputError("finding: is empty")
        verdict = _verdict(row.verdict)
        findings = self._taxonomy.of(ours) if ours else ()
        known_finding = next((f for f in findings if fold(f.name) == fold(row.finding)), None)
        finding = known_finding.name if known_finding is not None else row.finding.strip()
        title = known_finding.title if known_finding is not None else finding
        if not row.instruction.strip() and not title:
            raise InputError("instruction: is empty, and no finding is named")
        original = None if row.original is None else _read(self._root, row.original, "original")
        edited = _read(self._root, row.edited, "edited")
        bits = 8 if original is None else _decoded(original, row.original, "original", grey_bits)
        after = _decoded(edited, row.edited, "edited", lambda data, name: decode_output(data, name, bits))
        source = hashlib.sha256(original).hexdigest() if original is not None else ""
        grey = modality != "fundus"
        before = None if original is None else self._prepared(journal, original, source, grey, row)
        if resized := before is not None and abs(_ratio(after) / before.ratio - 1) > STRETCH:
            if row.own_modality is None:
                raise InputError("edited: has another shape than its original")
            assert before is not None
            after, edited = resize(after, round(after.shape[0] * before.ratio), after.shape[0]), b""
        image = _image(row, modality, source, before)
        data = _kept(edited, after, grey=grey, synthetic=True)
        blob = replace(journal.put_blob(data, "image/jpeg"), pixel_sha256=pixel_sha256(data))
        of = finding or row.instruction.strip()
        name = task_id(f"pairs:{image.id}:{blob.sha256}:{row.model}", 0, of, direction)
        instruction = row.instruction.strip() or f"{direction.value.capitalize()} {title}."
        state = TaskState.STOPPED if verdict is None else TaskState.SUCCESS if verdict else TaskState.FAILED
        detail: dict[str, JsonValue] = {"id": row.id, "model": row.model, "file": row.edited.name}
        score = Score(None, "no verdict was published") if verdict is None else Score(float(verdict))
        edit = EditTask(name, image.id, modality, finding, direction)
        task = RecordedTask(
            TaskRow(edit, 0, state, 1, NO_VERDICT if verdict is None else ""),
            (Attempt(name, 0, 1, instruction, OK, blob.sha256, blob.sha256),),
            (),
            (StoredScore(name, 0, 1, PUBLISHED, score, detail),),
            (blob,),
        )
        reference = before.reference if before is not None else NO_IMAGE
        near = nearest(finding, (one.name for one in findings))
        unknown = f"{one_line(finding)!r}" + (f" (nearest: {near})" if near else "") if finding else ""
        foreign = not finding or (bool(findings) and known_finding is None)
        return _Imported(image, reference, task, verdict, resized, (unknown,) if foreign else ())

    def _prepared(
        self, journal: Journal, original: bytes, source: str, grey: bool, row: PairRow
    ) -> _PreparedOriginal:
        """Prepare an original once for all its rows."""
        if (source, grey) not in self._originals:
            pixels = _decoded(original, row.original, "original", decode_untrusted)
            synthetic = bool(declared_synthetic(original))
            data = _kept(original, pixels, grey=grey, synthetic=synthetic)
            geometry = prepare(np.zeros(pixels.shape[:2], np.uint8), SIDE)[1]
            reference = journal.put_blob(data, "image/jpeg")
            self._originals[source, grey] = _PreparedOriginal(_ratio(pixels), synthetic, geometry, reference)
        return self._originals[source, grey]


def _direction(row: PairRow) -> Direction:
    """Return a row's direction by its own cell, else by the words of its instruction."""
    word = row.direction.strip().lower()
    if word:
        if word not in DIRECTIONS:
            raise InputError(f"direction: {row.direction[:40]!r}: add, remove or change")
        return DIRECTIONS[word]
    if not row.instruction.strip():
        raise InputError("instruction: is empty, and so is the direction: write add, remove or change")
    if not (found := direction_in(row.instruction)):
        raise InputError(
            "direction: is empty, and the instruction is neither clearly an addition nor a removal: write add, remove "
            "or change"
        )
    return Direction(found)


def _image(row: PairRow, modality: str, source: str, original: _PreparedOriginal | None) -> SourceImage:
    """Return the original as a source image; without its bytes only the row's name for it is known."""
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
    """Return the published bytes if they are a JPEG of our size that needs no turn or profile, else as prepared."""
    ours = pixels.shape[:2] == (SIDE, SIDE) and data[:2] == b"\xff\xd8"
    if ours and np.array_equal(decode(data), pixels):
        return data
    prepared = prepare(pixels, SIDE)[0]
    prepared = settle_grey(prepared) if grey else prepared
    return encode_prepared(prepared, synthetic=synthetic)


def _ratio(pixels: Pixels) -> float:
    return float(pixels.shape[1] / pixels.shape[0])


def _read(root: Path, image: RowImage, field: str) -> bytes:
    if image.data is not None:
        return image.data
    try:
        return read_inside(image.root or root, (image.root or root) / image.name)
    except InputError as error:
        raise InputError(f"{field}: {error}") from error


def _decoded(data: bytes, image: RowImage | None, field: str, decode: Callable[[bytes, str], T]) -> T:
    """Return what `decode` makes of an image and its name. Raise InputError naming the field."""
    try:
        return decode(data, image.name if image is not None and image.name else field)
    except BadImage as error:
        raise InputError(f"{field}: {str(error).removeprefix(f'{field}: ')}") from error


def _verdict(cell: str) -> bool | None:
    word = cell.strip().lower()
    if word in YES or word in NO:
        return word in YES
    if word in ("", "none", "null", "nan", "unknown"):
        return None
    raise InputError(f"verdict: {cell[:40]!r}: true or false")


def _licence(cell: str) -> Licence:
    name = cell.strip().lower() or Licence.UNKNOWN
    if name not in LICENCES:
        raise InputError(
            f"licence: {cell[:40]!r}: choose from {', '.join(LICENCES)}; export takes the edits' own"
        )
    return LICENCES[name]
