"""From a reader to a catalogue: files decoded and prepared in parallel, added in order, bad ones listed."""

from __future__ import annotations

import hashlib
import math
import os
import shlex
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from plantain.catalogue.gate import PrivacyGate, Suspicion
from plantain.catalogue.near import NearPair, join_near_duplicates
from plantain.catalogue.quarantine import held, held_one, hold, hold_again, redescribe
from plantain.catalogue.store import Catalogue
from plantain.catalogue.withdrawal import Withdrawn
from plantain.files.opening import read_regular, replace_file
from plantain.files.source_type import declared_synthetic
from plantain.files.tables import csv_line, read_csv
from plantain.pixels.decode import colour_note, declared_size
from plantain.pixels.likeness import likeness
from plantain.records import InputError, Licence, SourceImage
from plantain.sources.label_table import NO_LABEL
from plantain.sources.registry import (
    DOUBTFUL,
    STUDY_GROUP,
    Found,
    LeftOut,
    Reader,
    Refused,
    SourceEntry,
    TableRead,
    finish,
    refused,
)

REJECTED = "rejected.csv"
COLUMNS = ("dataset", "file", "row", "field", "reason")
"""Of rejected.csv; row and field are those of a table that is at fault, else empty."""

MIN_SIDE = 32
"""Smallest side in pixels of an image that is taken."""

LARGE_PIXELS = 12_000_000
LARGE_BYTES = 16 * 1024 * 1024
"""Files above either are decoded one at a time, so that a folder of giants needs the memory of one."""

Known = dict[tuple[str, int], str]
"""Ids of the images of a catalogue, by source SHA-256 and frame."""


@dataclass(slots=True)
class Ingested:
    """Results of an ingest.

    Attributes:
        added: images that are new in the catalogue.
        unchanged: images that it had already.
        changed: images that it had without a label, under another group or split, or with an unknown licence.
        unlabelled, ungrouped, by_study, synthetic: images of this source, new or not, without a label, without a
            patient or study, with a study alone, or whose file marks them as synthetic.
        kept: images whose sequence or plane differs from the one stated now and is kept, by the names of these fields.
        doubtful: images of this source by the notes of `DOUBTFUL`.
        tables: how the source's tables were understood.
        refused: files and rows that cannot be used.
        left_out: images that were not requested, counted by reason.
        near: pairs of near duplicates in the whole catalogue; each pair is in one group now.
        quarantined: ids of all images in quarantine; `newly_quarantined` counts the new ones.
    """

    added: int
    unchanged: int
    refused: list[Refused]
    changed: int = 0
    unlabelled: int = 0
    ungrouped: int = 0
    by_study: int = 0
    synthetic: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    doubtful: Counter[str] = field(default_factory=Counter)
    tables: list[TableRead] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    near: list[NearPair] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    newly_quarantined: int = 0

    def count(self, image: SourceImage, fate: Fate) -> None:
        """Count one usable image by its fate."""
        self.added += fate is Fate.ADDED
        self.newly_quarantined += fate is Fate.HELD
        self.changed += fate is Fate.CHANGED
        self.unchanged += fate is Fate.UNCHANGED
        self.unlabelled += not image.labels
        self.ungrouped += image.group is None
        self.by_study += (image.group or "").startswith(STUDY_GROUP)
        self.synthetic += image.synthetic
        self.doubtful.update(DOUBTFUL.intersection(image.note.split("; ")))

    def refuse(self, refused: Refused) -> Refused | None:
        """Add a refusal and return it; return None if it repeats the last, as for slices of a small volume."""
        if refused in self.refused[-1:]:
            return None
        self.refused.append(refused)
        return refused


def ingest(
    reader: Reader,
    catalogue: Catalogue,
    *,
    workers: int | None = None,
    on_file: Callable[[Refused | None], None] = lambda _: None,
    gate: PrivacyGate | None = None,
    stated: Mapping[str, Any] | None = None,
) -> Ingested:
    """Read every image of a source into a catalogue.

    Running it again adds new images. Images added before an interruption stay; the caller closes the catalogue,
    which commits it. The result depends on the order of the files, not on the order of decoding.

    Args:
        reader: reader of the source.
        catalogue: the catalogue to add to.
        workers: threads; by default one per processor, at most 4 (each may hold a decoded image).
        on_file: called in order for each finished file, with its rejection or None.
        gate: check for burned-in text and faces; suspicious images go into quarantine. None: no check.
        stated: fields of every image's record that the user states, such as dataset, version and consent.
    """
    done = Ingested(0, 0, [])
    known = catalogue.sources()
    withdrawn = Withdrawn(catalogue)
    workers = workers or min(4, os.cpu_count() or 1)
    with closing(_Workshop(known, withdrawn, gate)) as workshop:
        found = (_restated(item, stated or {}) for item in reader.scan())
        for result in _in_order(found, workshop, workers):
            if isinstance(result, LeftOut):
                done.left_out.append(result)
            elif isinstance(result, TableRead):
                done.tables.append(result)
            elif isinstance(result, Refused):
                on_file(done.refuse(result))
            elif isinstance(fate := _take(result, catalogue, known), Refused):
                on_file(done.refuse(fate))
            else:
                done.count(result.image, fate)
                there = catalogue.find(result.image.id)
                if there is not None and (names := _not_applied(there, result.image)):
                    done.kept[names] += 1
                on_file(None)
    catalogue.flush()
    if gate is not None and gate.reader is not None and catalogue.count_by("text_checked").get("0"):
        done.newly_quarantined += check_earlier(catalogue, gate)
    done.near = join_near_duplicates(catalogue)
    done.quarantined = [waiting.image.id for waiting in held(catalogue)]
    return done


def write_rejected(root: Path, dataset: str, refused: list[Refused]) -> None:
    """Write this dataset's rejections to rejected.csv, keeping those of other datasets."""
    path = root / REJECTED
    rows = [(dataset, one.name, str(one.row or ""), one.field, one.reason) for one in refused]
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            for row in read_csv(file):
                if len(row) == len(COLUMNS) and row[0] not in ("dataset", dataset):
                    rows.append((row[0], row[1], row[2], row[3], row[4]))
    replace_file(path, (csv_line(row).encode() for row in (COLUMNS, *sorted(rows))))


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """A file's prepared image, and the results of the privacy checks.

    Attributes:
        data: bytes of the prepared file; None if the catalogue contains it already.
        code: its 256-bit code, see `pixels.likeness`.
        found: marks that may identify a patient.
    """

    entry: SourceEntry
    image: SourceImage
    data: bytes | None
    code: bytes = b""
    found: tuple[Suspicion, ...] = ()


def prepare_file(
    entry: SourceEntry, image: SourceImage, data: bytes, gate: PrivacyGate | None
) -> PreparedFile | Refused:
    """Decode, prepare and check a file; return Refused if it is too small. Raise InputError if it is unreadable.

    Args:
        entry, image, data: the file's entry, record and bytes.
        gate: check for text and faces; None for no check.
    """
    pixels = entry.decode(data)
    height, width = pixels.shape[:2]
    if min(width, height) < MIN_SIDE:
        return Refused(entry.name, f"{width}x{height} pixels; each side must have at least {MIN_SIDE}")
    image = entry.describe(image, pixels)
    image = replace(image, note="; ".join(filter(None, (image.note, colour_note(data)))))
    image, prepared = finish(image, pixels, aspect=entry.aspect)
    done = PreparedFile(entry, image, prepared, likeness(pixels))
    if gate is None:
        return done
    image = replace(image, text_checked=gate.reader is not None)
    return replace(done, image=image, found=gate.check(entry, image, pixels, prepared))


_Item = PreparedFile | Refused | LeftOut | TableRead


def _restated(item: Found, stated: Mapping[str, Any]) -> Found:
    return replace(item, image=replace(item.image, **stated)) if isinstance(item, SourceEntry) else item


def _in_order(found: Iterator[Found], workshop: _Workshop, workers: int) -> Iterator[_Item]:
    """Yield results in the order of the scan, with at most two files per worker in memory."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ingest")
    waiting: deque[Future[PreparedFile | Refused] | Refused | LeftOut | TableRead] = deque()
    try:
        for item in found:
            waiting.append(pool.submit(workshop.prepare, item) if isinstance(item, SourceEntry) else item)
            while len(waiting) >= 2 * workers:
                first = waiting.popleft()
                yield first.result() if isinstance(first, Future) else first
        for first in waiting:
            yield first.result() if isinstance(first, Future) else first
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Workshop:
    """Reads one file and prepares its bytes; used by all worker threads."""

    def __init__(self, known: Known, withdrawn: Withdrawn, gate: PrivacyGate | None) -> None:
        self._known, self._withdrawn, self._gate = known, withdrawn, gate
        # Giants go through one thread: not only one at a time, but all from the same part of the heap.
        self._large = ThreadPoolExecutor(1, thread_name_prefix="ingest-large")

    def prepare(self, entry: SourceEntry) -> PreparedFile | Refused:
        """Read, decode and prepare a file; refuse one that cannot be used."""
        try:
            data = read_regular(entry.path, entry.name)
            image = _declared(replace(entry.image, source_sha256=hashlib.sha256(data).hexdigest()), data)
            if (image.source_sha256, image.frame) in self._known:
                return PreparedFile(entry, image, None)
            if self._withdrawn.holds(image):
                return Refused(entry.name, "was withdrawn from this catalogue")
            if math.prod(declared_size(data)) > LARGE_PIXELS or len(data) > LARGE_BYTES:
                return self._large.submit(prepare_file, entry, image, data, self._gate).result()
            return prepare_file(entry, image, data, self._gate)
        except InputError as error:
            return refused(entry.name, error)

    def close(self) -> None:
        self._large.shutdown(wait=True, cancel_futures=True)


def _declared(image: SourceImage, data: bytes) -> SourceImage:
    """Mark the record as synthetic if its file does."""
    term = declared_synthetic(data)
    if not term:
        return image
    notes = [*filter(None, [image.note]), f"marked as synthetic in the file ({term})"]
    return replace(image, synthetic=True, note="; ".join(notes))


def _take(result: PreparedFile, catalogue: Catalogue, known: Known) -> Fate | Refused:
    """Add a prepared image or put it into quarantine; or return why it is refused."""
    name, image = result.entry.name, result.image
    key = (image.source_sha256, image.frame)
    if key in known:
        return compare(name, image, catalogue, known[key])
    assert result.data is not None
    there = catalogue.find(image.id)
    if there is not None and (there.source_sha256, there.frame) == key:
        raise InputError(f"{catalogue.root}: another process is adding to this catalogue")
    if there is not None or held_one(catalogue, image.id) is not None:
        return Refused(name, f"another image has the id {image.id}; rename it, or choose another --to")
    known[key] = image.id
    if result.found:
        hold(catalogue, image, result.data, result.code, result.found)
        return Fate.HELD
    catalogue.add(image, result.data, result.code)
    return Fate.ADDED


def check_earlier(catalogue: Catalogue, gate: PrivacyGate) -> int:
    """Check images added earlier whose text was never read; return how many were put into quarantine."""
    assert gate.reader is not None
    put = 0
    for image in catalogue.images():
        if image.text_checked:
            continue
        if found := gate.texts(catalogue.read(image), image):
            hold_again(catalogue, image, found)
            put += 1
        else:
            with catalogue.transaction():
                catalogue.replace(image, replace(image, text_checked=True))
    return put


class Fate(Enum):
    """The effect of an ingest on one image, e.g. that it was added or put into quarantine."""

    ADDED, HELD, UNCHANGED, CHANGED = range(4)


def compare(name: str, image: SourceImage, catalogue: Catalogue, there_id: str) -> Fate | Refused:
    """Update an image's record in the catalogue; return its fate, or Refused if the records contradict.

    Labels, licence, permission and a mark as synthetic are added if they were missing. A new group or split replaces
    the old one; a missing one does not. Contradicting labels are rejected.

    Args:
        name: the file's name in messages.
        image: the record as the source describes it now.
        there_id: id of the image with the same bytes, in the catalogue or its quarantine.

    Raises:
        InputError: the catalogue has another known licence of the image.
    """
    waiting = held_one(catalogue, there_id)
    there = waiting.image if waiting is not None else catalogue.get(there_id)
    same = (there.id, there.dataset) == (image.id, image.dataset)
    if not same or there.labels not in ((), image.labels):
        return Refused(name, _difference(there, image))
    licensed = there.licence is Licence.UNKNOWN is not image.licence
    if there.licence != image.licence and not licensed:
        raise InputError(
            f"{catalogue.root}: has {name} with licence {there.licence}, not {image.licence}: pass "
            f"--licence {there.licence}, or choose another --to"
        )
    own = there.group if waiting is not None else catalogue.own_group(there)
    group, split = image.group or own, image.split or there.split
    moved, labelled = (group, split) != (own, there.split), image.labels != there.labels
    fuller = replace(there, labels=image.labels, group=group, split=split) if moved or labelled else there
    fuller = replace(fuller, licence=image.licence)
    notes = [note for note in there.note.split("; ") if note and not (labelled and note == NO_LABEL)]
    if image.synthetic and not there.synthetic:
        notes += filter(None, image.note.split("; "))
        fuller = replace(fuller, synthetic=True)
    fuller = replace(fuller, note="; ".join(dict.fromkeys(notes)))
    if waiting is None and image.consent is not None:
        fuller = replace(fuller, consent=image.consent)
    if fuller != there:
        catalogue.flush()
        with catalogue.transaction():
            if waiting is not None:
                redescribe(catalogue, fuller)
            elif moved or labelled:
                catalogue.relabel(there, fuller)
            else:
                catalogue.replace(there, fuller)
    return Fate.CHANGED if labelled or moved or licensed else Fate.UNCHANGED


def _not_applied(there: SourceImage, image: SourceImage) -> str:
    """Return the stated fields that a later ingest does not change, since the image was prepared by them."""
    stated = {"sequence": image.sequence, "plane": image.plane}
    return " and ".join(
        name for name, value in stated.items() if value not in ("", "unknown", getattr(there, name))
    )


def _difference(there: SourceImage, image: SourceImage) -> str:
    """Return how the catalogue's record differs from the source's."""
    labels = ", ".join(there.labels) or "no label"
    if (there.id, there.dataset) == (image.id, image.dataset):
        return f"is there already, labelled {labels}; choose another --to"
    why = f"the same image as {there.id} ({labels}) of {there.dataset}"
    if (there.id, there.labels) == (image.id, image.labels):
        why += f"; if its folder was renamed, say --dataset {shlex.quote(there.dataset)}"
    return why
