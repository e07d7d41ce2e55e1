"""manifest.parquet: every file of a release and every image inside one; and SHA256SUMS, as `sha256sum -c` reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import groupby, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plantain.files.parquet import unpacks_too_far
from plantain.records import InputError
from plantain.release.plan import ReleaseFile
from plantain.release.proof.inventory import LONGEST_PATH, why_unsafe
from plantain.release.staging import open_hashed

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
    """Raised for a manifest that cannot be read; the message states why."""


def write_manifest(
    out: Path, files: Iterable[ReleaseFile], rows_of: Callable[[ReleaseFile], int | None]
) -> tuple[str, int]:
    """Write the manifest of a release; return its SHA-256 and size.

    Args:
        out: folder of the release.
        files: all entries, sorted by (path, row, member).
        rows_of: returns the number of rows of a table; None for another file.
    """
    with (
        open_hashed(out, MANIFEST) as handle,
        pq.ParquetWriter(handle, SCHEMA, compression="zstd", store_schema=False) as writer,
    ):
        writer.add_key_value_metadata({_KEY: str(FORMAT)})
        rest = iter(files)
        while batch := list(islice(rest, _BATCH)):
            rows = [
                {
                    **{name: getattr(file, name) for name in _FIELDS},
                    "rows": None if file.embedded else rows_of(file),
                }
                for file in batch
            ]
            writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
    return handle.sha256, handle.size


def rows_in(path: Path) -> int | None:
    """Return the number of rows of a Parquet file or of lines of a JSON Lines file; None for other files."""
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    return None


def manifest_entries(path: Path) -> Iterator[tuple[ReleaseFile, int | None]]:
    """Yield (entry, its `rows`) for every line of a manifest, which need not be trusted.

    Raises:
        BadManifest: it cannot be read. InputError: it is of another format.
    """
    try:
        with pq.ParquetFile(path) as file:
            version = (file.metadata.metadata or {}).get(_KEY.encode(), b"").decode(errors="replace")
            if version != str(FORMAT):
                raise InputError(
                    f"{path}: is of format {version[:20] or 'none'}; this plantain reads {FORMAT} only"
                )
            schema = file.schema_arrow
            if schema.names != SCHEMA.names or schema.types != SCHEMA.types:
                raise BadManifest("does not have the columns of a manifest")
            if too_far := unpacks_too_far(file):
                raise BadManifest(too_far)
            for batch in file.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    rows = row.pop("rows")
                    if None in (row["path"], row["bytes"], row["sha256"], row["role"], row["source_sha256"]):
                        raise BadManifest("has an entry without path, size, hash or role")
                    yield ReleaseFile(**row), rows
    except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
        if isinstance(error, (BadManifest, InputError)):
            raise
        detail = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadManifest(f"is not a readable Parquet file: {detail}") from error


def by_file(
    entries: Iterable[tuple[ReleaseFile, int | None]],
) -> Iterator[tuple[ReleaseFile, int | None, list[ReleaseFile]]]:
    """Yield (file, its `rows`, the images inside it). Raise BadManifest if entries of a file are inconsistent."""
    for path, group in groupby(entries, lambda one: one[0].path):
        (file, rows), *inside = group
        if file.embedded or not all(entry.embedded for entry, _ in inside):
            raise BadManifest(f"lists {path[:200]!r} twice, or an image inside it apart from that file")
        yield file, rows, [entry for entry, _ in inside]


# --- SHA256SUMS -------------------------------------------------------------------------------------

SUMS = "SHA256SUMS"

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


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
