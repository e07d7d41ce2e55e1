"""manifest.parquet: every file of a release and every image inside one, with both its hashes and where it belongs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from plantain.files.unpacking import unpacks_too_far
from plantain.release.plan import ReleaseFile
from plantain.release.proof.sums import write_file

MANIFEST = "manifest.parquet"
FORMAT = 1
"""Version of the format of a release; another one is refused."""

SCHEMA = pa.schema(
    {
        "path": pa.string(),
        "bytes": pa.int64(),
        "sha256": pa.string(),
        "pixel_sha256": pa.string(),
        "role": pa.string(),
        "task": pa.string(),
        "generation": pa.int32(),
        "round": pa.int32(),
        "row": pa.int64(),
        "member": pa.string(),
        "source_sha256": pa.string(),
        "rows": pa.int64(),
    }
)
"""Columns: those of `ReleaseFile`, and `rows`: how many a Parquet file has, or lines a JSON Lines file."""

BESIDE = "document"
"""Role of what stands beside the data: cards, licences, sums."""

_KEY = "plantain.release"
_BATCH = 5000
_FIELDS = [field.name for field in fields(ReleaseFile)]
_REPEATED = ("path", "role", "task", "member", "source_sha256")
"""Columns whose values come again and again; one string stands for all of them in memory."""


class BadManifest(ValueError):
    """A manifest that cannot be read; the message says why."""


def write_manifest(
    out: Path, files: Iterable[ReleaseFile], rows_of: Callable[[ReleaseFile], int | None]
) -> tuple[str, int]:
    """Writes the manifest, streamed; returns its SHA-256 and size. `files` come by (path, row, member)."""

    def fill(handle: BinaryIO) -> None:
        with pq.ParquetWriter(handle, SCHEMA, compression="zstd", store_schema=False) as writer:
            writer.add_key_value_metadata({_KEY: str(FORMAT)})
            batch: list[dict[str, str | int | None]] = []
            for file in files:
                row = {name: getattr(file, name) for name in _FIELDS}
                row["rows"] = None if file.embedded else rows_of(file)
                batch.append(row)
                if len(batch) == _BATCH:
                    writer.write_table(pa.Table.from_pylist(batch, SCHEMA))
                    batch.clear()
            if batch:
                writer.write_table(pa.Table.from_pylist(batch, SCHEMA))

    return write_file(out, MANIFEST, fill)


def rows_in(path: Path) -> int | None:
    """Rows of a Parquet file, lines of a JSON Lines file; None for any other."""
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    return None


class ManifestReader:
    """A manifest that may come from anywhere, read in batches; every failure is a BadManifest."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = pq.ParquetFile(path)
            schema = self._file.schema_arrow
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            raise BadManifest(f"is not a readable Parquet file: {_short(error)}") from error
        version = (self._file.metadata.metadata or {}).get(_KEY.encode(), b"").decode(errors="replace")
        if version != str(FORMAT):
            raise BadManifest(f"is of format {version[:20] or 'none'}; this plantain reads {FORMAT}")
        if schema.names != SCHEMA.names or schema.types != SCHEMA.types:
            raise BadManifest("does not have the columns of a manifest")
        # A few kilobytes can claim billions of rows; no honest manifest packs more than these into a byte.
        self.rows = self._file.metadata.num_rows
        if self.rows > 1000 + 20 * path.stat().st_size:
            raise BadManifest(f"claims {self.rows:,} rows in {path.stat().st_size:,} bytes")
        if too_far := unpacks_too_far(self._file):
            raise BadManifest(too_far)

    def __iter__(self) -> Iterator[tuple[ReleaseFile, int | None]]:
        """Every entry with its `rows`."""
        try:
            for batch in self._file.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    rows = row.pop("rows")
                    if None in (row["path"], row["bytes"], row["sha256"], row["role"], row["source_sha256"]):
                        raise BadManifest("has an entry without path, size, hash or role")
                    for name in _REPEATED:
                        if row[name] is not None:
                            row[name] = sys.intern(row[name])
                    yield ReleaseFile(**row), rows
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            if isinstance(error, BadManifest):
                raise
            raise BadManifest(f"cannot be read to its end: {_short(error)}") from error

    def close(self) -> None:
        self._file.close()

    def by_file(self) -> Iterator[tuple[ReleaseFile, int | None, list[ReleaseFile]]]:
        """Every file with its `rows` and the images inside it."""
        held: ReleaseFile | None = None
        held_rows: int | None = None
        inside: list[ReleaseFile] = []
        for entry, rows in self:
            if not entry.embedded:
                if held is not None:
                    yield held, held_rows, inside
                held, held_rows, inside = entry, rows, []
            elif held is None or entry.path != held.path:
                raise BadManifest(f"lists an image inside {entry.path[:200]!r} apart from that file")
            else:
                inside.append(entry)
        if held is not None:
            yield held, held_rows, inside


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
