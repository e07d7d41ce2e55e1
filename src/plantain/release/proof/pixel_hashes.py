"""Hashes of decoded pixels, which survive what file hashes do not: signing, and another way of storing the bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path

from plantain.journal import JournalReader
from plantain.journal.questions.release import pixel_hash
from plantain.pixels.fingerprint import pixel_sha256 as pixel_sha256
from plantain.release.plan import ReleaseFile

_BATCH = 200


class PixelHashes:
    """The pixel hash of every released image: as recorded when it was normalised, else computed once and kept.

    What is computed is kept in a file of the unfinished release, so that an interrupted export does not do it again.
    """

    def __init__(self, reader: JournalReader, kept: Path) -> None:
        self._reader = reader
        kept.parent.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(kept, isolation_level=None)
        self._kept.execute("PRAGMA journal_mode = WAL")
        self._kept.execute("PRAGMA synchronous = OFF")
        self._kept.execute(
            "CREATE TABLE IF NOT EXISTS pixel(blob TEXT PRIMARY KEY, sha256 TEXT) WITHOUT ROWID"
        )

    def close(self) -> None:
        self._kept.close()

    def prepare(self, files: Iterable[ReleaseFile]) -> None:
        """Computes what is recorded nowhere, two images at a time."""
        missing = self._missing(files)
        with ThreadPoolExecutor(max_workers=2, thread_name_prefix="plantain-pixels") as pool:
            while batch := list(islice(missing, _BATCH)):
                hashes = pool.map(lambda blob: pixel_sha256(self._reader.read_blob(blob)), batch)
                rows = list(zip(batch, hashes, strict=True))
                self._kept.execute("BEGIN")
                self._kept.executemany("INSERT OR IGNORE INTO pixel VALUES (?, ?)", rows)
                self._kept.execute("COMMIT")

    def complete(self, file: ReleaseFile) -> ReleaseFile:
        """The entry with its pixel hash, where it is an edited image."""
        blob = _blob(file)
        if blob is None or file.pixel_sha256 is not None:
            return file
        return replace(file, pixel_sha256=self._known(blob))

    def _missing(self, files: Iterable[ReleaseFile]) -> Iterator[str]:
        waiting: set[str] = set()  # of the batch in hand: the same image stands in several layouts
        for file in files:
            blob = _blob(file)
            if (
                blob is None
                or file.pixel_sha256 is not None
                or blob in waiting
                or self._known(blob) is not None
            ):
                continue
            waiting.add(blob)
            if len(waiting) > 4 * _BATCH:
                waiting.clear()
                waiting.add(blob)
            yield blob

    def _known(self, blob: str) -> str | None:
        recorded = pixel_hash(self._reader, blob)
        if recorded is not None:
            return recorded
        row = self._kept.execute("SELECT sha256 FROM pixel WHERE blob = ?", (blob,)).fetchone()
        return None if row is None else str(row[0])


def _blob(file: ReleaseFile) -> str | None:
    """The journal's blob behind an edited image; None for any other file."""
    return (file.source_sha256 or file.sha256) if file.is_edit else None
