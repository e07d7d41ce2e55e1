"""manifest.parquet: every file of a release and every image inside one; and SHA256SUMS, as `sha256sum -c` reads it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from plantain.files.unpacking import unpacks_too_far
from plantain.files.writing import create
from plantain.journal.disk.blobs import sync_folder
from plantain.records import InputError
from plantain.release.plan import ReleaseFile
from plantain.release.proof.inventory import LONGEST_PATH, why_unsafe
from plantain.release.staging import make_folder, part_name

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

DOCUMENT = "document"
"""Role of files other than data: cards, licences, sums."""

_KEY = "plantain.release"
_BATCH = 5000
_FIELDS = [field.name for field in fields(ReleaseFile)]


class BadManifest(ValueError):
    """A manifest that cannot be read; the message states why."""


def write_manifest(
    out: Path, files: Iterable[ReleaseFile], rows_of: Callable[[ReleaseFile], int | None]
) -> tuple[str, int]:
    """Write the manifest of `files`, sorted by (path, row, member); return its SHA-256 and size."""

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
    """Return the rows of a Parquet file or lines of a JSON Lines file; None for any other."""
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    return None


class ManifestReader:
    """A manifest from anywhere, read in batches; every failure is a BadManifest."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = pq.ParquetFile(path)
            schema = self._file.schema_arrow
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            raise BadManifest(f"is not a readable Parquet file: {_short(error)}") from error
        version = (self._file.metadata.metadata or {}).get(_KEY.encode(), b"").decode(errors="replace")
        if version != str(FORMAT):
            raise InputError(
                f"{path}: is of format {version[:20] or 'none'}; this plantain reads {FORMAT} only"
            )
        if schema.names != SCHEMA.names or schema.types != SCHEMA.types:
            raise BadManifest("does not have the columns of a manifest")
        if too_far := unpacks_too_far(self._file):
            raise BadManifest(too_far)

    def __iter__(self) -> Iterator[tuple[ReleaseFile, int | None]]:
        """Yield every entry with its `rows`."""
        try:
            for batch in self._file.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    rows = row.pop("rows")
                    if None in (row["path"], row["bytes"], row["sha256"], row["role"], row["source_sha256"]):
                        raise BadManifest("has an entry without path, size, hash or role")
                    yield ReleaseFile(**row), rows
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            if isinstance(error, BadManifest):
                raise
            raise BadManifest(f"cannot be read to its end: {_short(error)}") from error

    def close(self) -> None:
        self._file.close()

    def by_file(self) -> Iterator[tuple[ReleaseFile, int | None, list[ReleaseFile]]]:
        """Yield every file with its `rows` and the images inside it."""
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


# --- SHA256SUMS -------------------------------------------------------------------------------------

SUMS = "SHA256SUMS"

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def write_file(out: Path, path: str, fill: Callable[[BinaryIO], None] | Iterable[bytes]) -> tuple[str, int]:
    """Write one file of a release durably under a temporary name, rename it, and return its SHA-256 and size."""
    target = out / path
    make_folder(out, target.parent)
    temporary = part_name(target)
    with create(temporary) as file:
        if callable(fill):
            fill(file)
        else:
            file.writelines(fill)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(target)
    sync_folder(target.parent)
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), target.stat().st_size


def write_sums(out: Path, path: str, files: Iterable[tuple[str, str]]) -> tuple[str, int]:
    """Write (path, SHA-256) pairs, which must be sorted by path, as a sums file."""
    return write_file(out, path, (f"{sha256}  {name}\n".encode() for name, sha256 in files))


def read_sums(path: Path) -> Iterator[tuple[int, str, str] | tuple[int, str]]:
    """Yield (line number, SHA-256, path) of every line, or (line number, fault)."""
    last = ""
    with path.open("rb") as file:
        for number, raw in enumerate(iter(lambda: file.readline(LONGEST_PATH + 80), b""), start=1):
            line = raw.decode("utf-8", "replace")
            match = _LINE.fullmatch(line.removesuffix("\n")) if line.endswith("\n") else None
            if match is None or "\ufffd" in line:
                yield number, "is not a checksum, two spaces and a path in UTF-8"
                continue
            name = match[2]
            if wrong := why_unsafe(name):
                yield number, f"names {name!r}, which {wrong}"
            elif name <= last:
                yield number, f"names {name!r} twice or out of order"
            else:
                yield number, match[1], name
                last = name
