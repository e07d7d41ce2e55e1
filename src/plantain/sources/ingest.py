"""From a reader to a catalogue: files decoded and prepared in parallel, added in order, bad ones put aside."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from plantain.pixels.decode import declared_pixels
from plantain.pixels.likeness import likeness
from plantain.records import InputError, SourceImage
from plantain.sources.catalogue import Catalogue
from plantain.sources.entries import Entry, Found, LeftOut, Reader, Refused, finish
from plantain.sources.files import read_regular
from plantain.sources.near import NearPair, join_near_duplicates

REJECTED = "rejected.csv"
MIN_SIDE = 32
"""Smallest side in pixels of an image worth editing."""

LARGE_PIXELS = 12_000_000
LARGE_BYTES = 16 * 1024 * 1024
"""Files above either are decoded one at a time, so that a folder of giants needs the memory of one."""

Known = dict[tuple[str, int], str]
"""Ids of the images that a catalogue holds, by source SHA-256 and frame."""


@dataclass(slots=True)
class Ingested:
    """What became of a source's files.

    Attributes:
        added: images that are new in the catalogue.
        unchanged: images that it held already.
        refused: files that cannot be used, with the reason.
        left_out: images that were not asked for, counted by reason.
        near: pairs of near duplicates in the whole catalogue; each pair is in one group now.
    """

    added: int
    unchanged: int
    refused: list[Refused]
    left_out: list[LeftOut] = field(default_factory=list)
    near: list[NearPair] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Prepared:
    entry: Entry
    image: SourceImage
    data: bytes | None
    """None where the catalogue holds the file's bytes already."""
    code: bytes = b""


def ingest(
    reader: Reader,
    catalogue: Catalogue,
    *,
    mode: str = "pad",
    side: int = 1024,
    workers: int | None = None,
    on_file: Callable[[Refused | None], None] = lambda _: None,
) -> Ingested:
    """Reads every image of a source into a catalogue.

    Running it again adds what is new. What was added before an interruption stays; the caller closes the catalogue,
    which commits it. The order of the files decides, never which of them was decoded first.

    Args:
        reader: lists the source.
        catalogue: where the prepared images go.
        mode, side: how they are prepared, see `pixels.prepare`.
        workers: threads; by default one per processor, at most 4 (each may hold a decoded image).
        on_file: called in order for each file that is done, with what was refused.
    """
    done = Ingested(0, 0, [])
    known = catalogue.sources()
    workers = workers or min(4, os.cpu_count() or 1)
    with closing(_Workshop(known, mode, side)) as workshop:
        for result in _in_order(reader.scan(), workshop, workers):
            if isinstance(result, LeftOut):
                done.left_out.append(result)
                continue
            outcome = _keep(result, catalogue, known, mode) if isinstance(result, _Prepared) else result
            if isinstance(outcome, Refused):
                done.refused.append(outcome)
            elif outcome:
                done.added += 1
            else:
                done.unchanged += 1
            on_file(outcome if isinstance(outcome, Refused) else None)
    catalogue.flush()
    done.near = join_near_duplicates(catalogue)
    return done


def write_rejected(root: Path, dataset: str, refused: list[Refused]) -> None:
    """Writes rejected.csv: this dataset's refused files anew, those of others as they stand."""
    path = root / REJECTED
    rows: list[tuple[str, ...]] = [(dataset, item.name, item.reason) for item in refused]
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            rows += [
                tuple(row) for row in csv.reader(file) if len(row) == 3 and row[0] not in ("dataset", dataset)
            ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("dataset", "file", "reason"), *sorted(rows)])
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(text.getvalue())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _in_order(
    found: Iterator[Found], workshop: _Workshop, workers: int
) -> Iterator[_Prepared | Refused | LeftOut]:
    """Results in the order of the scan, with at most two files per worker in memory."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ingest")
    waiting: deque[Future[_Prepared | Refused] | Refused | LeftOut] = deque()
    try:
        for item in found:
            waiting.append(pool.submit(workshop.prepare, item) if isinstance(item, Entry) else item)
            while len(waiting) >= 2 * workers:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(waiting: Future[_Prepared | Refused] | Refused | LeftOut) -> _Prepared | Refused | LeftOut:
    return waiting.result() if isinstance(waiting, Future) else waiting


class _Workshop:
    """Brings one file from disk to prepared bytes; used by all worker threads."""

    def __init__(self, known: Known, mode: str, side: int) -> None:
        self._known, self._mode, self._side = known, mode, side
        # Giants go through one thread: not only one at a time, but all from the same part of the heap.
        self._large = ThreadPoolExecutor(1, thread_name_prefix="ingest-large")

    def prepare(self, entry: Entry) -> _Prepared | Refused:
        """Reads, decodes and prepares; a file that cannot be used is refused, never raised."""
        try:
            data = read_regular(entry.path, entry.name)
            image = replace(entry.image, source_sha256=hashlib.sha256(data).hexdigest())
            if (image.source_sha256, image.frame) in self._known:
                return _Prepared(entry, image, None)
            if declared_pixels(data) > LARGE_PIXELS or len(data) > LARGE_BYTES:
                return self._large.submit(self._decode, entry, image, data).result()
            return self._decode(entry, image, data)
        except InputError as error:
            return Refused(entry.name, str(error).removeprefix(f"{entry.name}: "))

    def close(self) -> None:
        self._large.shutdown(wait=True, cancel_futures=True)

    def _decode(self, entry: Entry, image: SourceImage, data: bytes) -> _Prepared | Refused:
        pixels = entry.decode(data)
        height, width = pixels.shape[:2]
        if min(width, height) < MIN_SIDE:
            return Refused(entry.name, f"{width}x{height} pixels; each side must have at least {MIN_SIDE}")
        image = entry.describe(image, pixels)
        return _Prepared(entry, *finish(image, pixels, self._side, self._mode), likeness(pixels))


def _keep(result: _Prepared, catalogue: Catalogue, known: Known, mode: str) -> bool | Refused:
    """Adds a prepared image; says whether it was new, or why it is left out."""
    name, image = result.entry.name, result.image
    key = (image.source_sha256, image.frame)
    if key in known:
        held = catalogue.get(known[key])
        if (held.id, held.labels, held.dataset) != (image.id, image.labels, image.dataset):
            return Refused(
                name, f"the same picture as {held.id} ({', '.join(held.labels)}) of {held.dataset}"
            )
        if held.geometry.mode != mode:
            return Refused(
                name, f"is there already, prepared with {held.geometry.mode}; choose another --out"
            )
        if held.licence != image.licence:
            return Refused(name, f"is there already with licence {held.licence}; choose another --out")
        return False
    assert result.data is not None
    if catalogue.find(image.id) is not None:
        return Refused(name, f"another picture has the id {image.id}; rename it, or choose another --out")
    catalogue.add(image, result.data, result.code)
    known[key] = image.id
    return True
