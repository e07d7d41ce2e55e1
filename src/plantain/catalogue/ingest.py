"""From a reader to a catalogue: files decoded and prepared in parallel, added in order, bad ones put aside."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain
from pathlib import Path

from plantain.catalogue.gate import PrivacyGate, suspicious
from plantain.catalogue.known import Again, compare
from plantain.catalogue.near import NearPair, join_near_duplicates
from plantain.catalogue.preparing import PreparedFile, Preparing
from plantain.catalogue.quarantine import held, held_one, hold, hold_again
from plantain.catalogue.store import Catalogue
from plantain.catalogue.withdrawal import Withdrawn
from plantain.engines.repeating import EngineThread, NoWorkers
from plantain.files.csv_form import csv_line, read_csv
from plantain.files.opening import read_regular
from plantain.files.source_type import declared_synthetic
from plantain.files.writing import replace_file
from plantain.pixels.decode import declared_pixels
from plantain.records import InputError, SourceImage
from plantain.sources.entries import Found, LeftOut, Reader, Refused, SourceEntry, TableRead

REJECTED = "rejected.csv"
LARGE_PIXELS = 12_000_000
LARGE_BYTES = 16 * 1024 * 1024
"""Files above either are decoded one at a time, so that a folder of giants needs the memory of one."""

_Told = Refused | LeftOut | TableRead
"""What a reader finds that is no image."""

Known = dict[tuple[str, int], str]
"""Ids of the images that a catalogue holds, by source SHA-256 and frame."""


@dataclass(slots=True)
class Ingested:
    """What became of a source's files.

    Attributes:
        added: images that are new in the catalogue.
        unchanged: images that it held already.
        labelled: images that it held without a label, and that have one now.
        regrouped: images that it held under another group or split.
        unlabelled: images of this source without a label, new or not; no task is made of them.
        ungrouped: images of this source without a patient or study, new or not.
        synthetic: images of this source that are no recording of a patient by what their file says, new or not.
        tables: how the source's tables were understood.
        refused: files that cannot be used, with the reason.
        left_out: images that were not asked for, counted by reason.
        near: pairs of near duplicates in the whole catalogue; each pair is in one group now.
        quarantined: ids of all images that wait for a person, and how many of them are new.
    """

    added: int
    unchanged: int
    refused: list[Refused]
    labelled: int = 0
    regrouped: int = 0
    unlabelled: int = 0
    ungrouped: int = 0
    synthetic: int = 0
    tables: list[TableRead] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    near: list[NearPair] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    newly_quarantined: int = 0

    def count(self, outcome: _Fate | Again) -> None:
        """One more image that could be used."""
        self.added += outcome is _Fate.ADDED
        self.newly_quarantined += outcome is _Fate.HELD
        self.labelled += outcome is Again.LABELLED
        self.regrouped += outcome is Again.REGROUPED
        self.unchanged += outcome is Again.UNCHANGED

    def refuse(self, refused: Refused) -> Refused | None:
        """One more refusal; None where it repeats the last, as for the next slice of a volume that is too small."""
        if refused in self.refused[-1:]:
            return None
        self.refused.append(refused)
        return refused


def ingest(
    reader: Reader,
    catalogue: Catalogue,
    *,
    mode: str = "pad",
    side: int = 1024,
    workers: int | None = None,
    on_file: Callable[[Refused | None], None] = lambda _: None,
    gate: PrivacyGate | None = None,
    engine: EngineThread | None = None,
) -> Ingested:
    """Reads every image of a source into a catalogue.

    Running it again adds what is new. What was added before an interruption stays; the caller closes the catalogue,
    which commits it. The order of the files decides, never which of them was decoded first.

    Args:
        reader: lists the source.
        catalogue: where the prepared images go.
        mode, side: how they are prepared, see `pixels.prepare`.
        workers: threads; by default one per processor, at most 4 (each may hold a decoded image), and with an engine
            two for each of its workers.
        on_file: called in order for each file that is done, with what was refused.
        gate: looks for burned-in text and faces; what may identify somebody goes into quarantine. None looks for
            neither.
        engine: whose workers decode, prepare and look at files; None does that in this process's threads.

    Raises:
        NoWorkers: the engine has none left; what was added stays.
    """
    done = Ingested(0, 0, [])
    known = catalogue.sources()
    withdrawn = Withdrawn(catalogue)
    workers = workers or (min(4, os.cpu_count() or 1) if engine is None else 2 * engine.room)
    with closing(_Workshop(known, Preparing(mode, side, gate), withdrawn, engine)) as workshop:
        for result in _in_order(reader.scan(), workshop, workers):
            if isinstance(result, LeftOut):
                done.left_out.append(result)
                continue
            if isinstance(result, TableRead):
                done.tables.append(result)
                continue
            if isinstance(result, Refused):
                on_file(done.refuse(result))
                continue
            outcome = _take(result, catalogue, known, mode, gate)
            if isinstance(outcome, Refused):
                on_file(done.refuse(outcome))
                continue
            done.count(outcome)
            done.unlabelled += not result.image.labels
            done.ungrouped += result.image.group is None
            done.synthetic += result.image.synthetic
            on_file(None)
    catalogue.flush()
    done.near = join_near_duplicates(catalogue)
    done.quarantined = [waiting.image.id for waiting in held(catalogue)]
    return done


def write_rejected(root: Path, dataset: str, refused: list[Refused]) -> None:
    """Writes rejected.csv: this dataset's refused files anew, those of others as they stand."""
    path = root / REJECTED
    rows: list[tuple[str, ...]] = [(dataset, item.name, item.reason) for item in refused]
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            rows += [
                tuple(row) for row in read_csv(file) if len(row) == 3 and row[0] not in ("dataset", dataset)
            ]
    rows.sort()
    replace_file(path, (csv_line(row).encode() for row in chain([("dataset", "file", "reason")], rows)))


def _in_order(found: Iterator[Found], workshop: _Workshop, workers: int) -> Iterator[PreparedFile | _Told]:
    """Results in the order of the scan, with at most two files per worker in memory."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ingest")
    waiting: deque[Future[PreparedFile | Refused] | _Told] = deque()
    try:
        for item in found:
            waiting.append(pool.submit(workshop.prepare, item) if isinstance(item, SourceEntry) else item)
            while len(waiting) >= 2 * workers:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(waiting: Future[PreparedFile | Refused] | _Told) -> PreparedFile | _Told:
    return waiting.result() if isinstance(waiting, Future) else waiting


class _Workshop:
    """Brings one file from disk to prepared bytes; used by all worker threads."""

    def __init__(
        self, known: Known, preparing: Preparing, withdrawn: Withdrawn, engine: EngineThread | None
    ) -> None:
        self._known, self._preparing = known, preparing
        self._withdrawn, self._engine = withdrawn, engine
        # Giants go through one thread: not only one at a time, but all from the same part of the heap.
        self._large = ThreadPoolExecutor(1, thread_name_prefix="ingest-large")

    def prepare(self, entry: SourceEntry) -> PreparedFile | Refused:
        """Reads, decodes and prepares. A file that cannot be used is refused; what is raised is the engine's end."""
        try:
            data = read_regular(entry.path, entry.name)
            image = _declared(replace(entry.image, source_sha256=hashlib.sha256(data).hexdigest()), data)
            if (image.source_sha256, image.frame) in self._known:
                return PreparedFile(entry, image, None)
            if self._withdrawn.holds(image):
                return Refused(entry.name, "was withdrawn from this catalogue")
            if declared_pixels(data) > LARGE_PIXELS or len(data) > LARGE_BYTES:
                return self._large.submit(self._decode, entry, image, data).result()
            return self._decode(entry, image, data)
        except NoWorkers:
            raise
        except InputError as error:
            return Refused(entry.name, str(error).removeprefix(f"{entry.name}: "))

    def close(self) -> None:
        self._large.shutdown(wait=True, cancel_futures=True)

    def _decode(self, entry: SourceEntry, image: SourceImage, data: bytes) -> PreparedFile | Refused:
        if self._engine is None:
            return self._preparing.here(entry, image, data)
        return self._preparing.on(self._engine, entry, image, data)


def _declared(image: SourceImage, data: bytes) -> SourceImage:
    """The record with what the file says of its own origin: a synthetic picture never passes for a real one."""
    term = declared_synthetic(data)
    if not term:
        return image
    notes = [*filter(None, [image.note]), f"the file says that it is synthetic ({term})"]
    return replace(image, synthetic=True, note="; ".join(notes))


class _Fate(Enum):
    """What became of a prepared image."""

    ADDED, HELD = range(2)


def _take(
    result: PreparedFile, catalogue: Catalogue, known: Known, mode: str, gate: PrivacyGate | None
) -> _Fate | Again | Refused:
    """Adds a prepared image or puts it into quarantine; or says why it is left out."""
    name, image = result.entry.name, result.image
    key = (image.source_sha256, image.frame)
    if key in known:
        return compare(name, image, catalogue, known[key], mode)
    assert result.data is not None
    there = catalogue.find(image.id)
    if there is not None and (there.source_sha256, there.frame) == key:
        raise InputError(f"{catalogue.root}: another process is adding to this catalogue")
    if there is not None or held_one(catalogue, image.id) is not None:
        return Refused(name, f"another picture has the id {image.id}; rename it, or choose another --out")
    known[key] = image.id
    if result.found:
        hold(catalogue, image, result.data, result.code, result.found)
        return _Fate.HELD
    if gate is not None and result.texts is not None:
        gate.remember(image, result.texts)
    catalogue.add(image, result.data, result.code)
    return _Fate.ADDED


def check_earlier(
    catalogue: Catalogue, gate: PrivacyGate, on_image: Callable[[], None] = lambda: None
) -> int:
    """Reads the images of a catalogue whose text was never looked for; what may identify goes into quarantine.

    Returns:
        How many were put there.
    """
    assert gate.reader is not None
    put = 0
    for image in catalogue.images():
        if image.text_checked:
            continue
        texts = gate.texts(catalogue.read(image), image) or ()
        if suspicious(texts):
            hold_again(catalogue, image, suspicious(texts))
            put += 1
        else:
            gate.remember(image, texts)
            catalogue.flush()
            with catalogue.transaction():
                catalogue.replace(image, replace(image, text_checked=True))
        on_image()
    return put
