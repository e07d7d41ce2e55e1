"""The lists of a release, and what a verification finds of their files.

manifest.parquet lists every file and every image inside one; SHA256SUMS is as `sha256sum -c` reads it. `Inventory` is
the bookkeeping of a verification: the files on disk, and what both lists say of each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from itertools import groupby, islice
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from plantain.files.opening import is_system_file
from plantain.files.parquet import unpacks_too_far
from plantain.records import InputError
from plantain.release.plan import CONTROL, ORIGINAL, STAGING, ReleaseFile
from plantain.release.staging import open_hashed

LONGEST_PATH = 1024
"""Longest path in characters; no release has longer ones."""


@dataclass(frozen=True, slots=True, order=True)
class ReleaseProblem:
    """One defect of a release.

    Attributes:
        path: the file concerned, relative to the release; "" for the release as a whole.
        kind: "missing", "extra", "size", "checksum", "sums", "manifest", "path", "link", "unreadable", "unfinished",
            "rows", "schema", "image", "pixels", "signature", "reference", "count", "licence", "record", "against".
        detail: the fault, in a sentence without its subject.
    """

    path: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path or 'release'}: {self.kind}: {self.detail}".replace("\n", "\\n")


@dataclass(slots=True)
class KnownFile:
    """One path: its size on disk, and its hash by SHA256SUMS and by the manifest; None where it is not there.

    `listed` is "" for a file that the manifest names without a hash that can be believed.
    """

    size: int | None = None
    sums: str | None = None
    listed: str | None = None
    whole: bool = False


_Attempt = tuple[str | None, int | None, int | None]


@dataclass(slots=True)
class Inventory:
    """Files, edited images and originals of one release.

    Attributes:
        files: by path.
        images: (path, role, hash in the journal) of edited images, by task, generation and round; taken out as their
            records are found.
        originals: a file with each original, by hash.
        next_to_edits: a file with the original next to edits of a task, by (task, hash); taken out likewise.
        trajectory_rows: rows of the Parquet tables of trajectories; None where there are none.
        signed: True if the manifest lists an image with a signature.
        problems: problems found so far.
        system: files and folders of systems and downloads, which are not of the release.
    """

    files: dict[str, KnownFile] = field(default_factory=dict)
    images: dict[_Attempt, tuple[str, str, str]] = field(default_factory=dict)
    originals: dict[str, str] = field(default_factory=dict)
    next_to_edits: dict[tuple[str, str], str] = field(default_factory=dict)
    trajectory_rows: int | None = None
    signed: bool = False
    problems: list[ReleaseProblem] = field(default_factory=list)
    system: list[str] = field(default_factory=list)

    def add(self, path: str) -> KnownFile:
        """Return the entry of a path, made where it is new."""
        return self.files.setdefault(path, KnownFile())

    def get(self, path: str) -> KnownFile:
        """Return the entry of a path; an empty one if it is new."""
        return self.files.get(path) or KnownFile()

    def report(self, path: str, kind: str, detail: str) -> None:
        """Record a problem."""
        self.problems.append(ReleaseProblem(path, kind, detail))

    def add_image(self, entry: ReleaseFile) -> None:
        """Record an entry of the manifest: an edited image or an original."""
        self.signed = self.signed or bool(entry.source_sha256)
        if entry.role == ORIGINAL:
            self.originals.setdefault(entry.sha256, entry.path)
            if entry.task is not None:
                self.next_to_edits.setdefault((entry.task, entry.sha256), entry.path)
        if entry.is_edit:
            key = (entry.task, entry.generation, entry.round)
            found = (entry.path, entry.role, entry.source_sha256 or entry.sha256)
            known = self.images.setdefault(key, found)
            if known[1:] != found[1:]:
                detail = f"its image of task {entry.task}, round {entry.round}, is another than in {known[0]}"
                self.report(entry.path, "manifest", detail)


def take_stock(out: Path, inventory: Inventory) -> None:
    """Record every regular file below `out`, and report anything else; nothing is followed.

    A system file that SHA256SUMS names is the release's own.
    """
    emptied = {str(parent) for path in inventory.files for parent in PurePosixPath(path).parents}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(out / folder))
        except OSError as error:
            inventory.report(_shown(folder), "unreadable", str(error.strerror))
            continue
        if folder and not entries and folder not in emptied:
            inventory.report(_shown(folder), "extra", "is an empty folder")
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if is_system_file(path) and inventory.get(path).sums is None:
                inventory.system.append(_shown(path).replace("\n", "\\n"))
            elif path == STAGING:
                inventory.report(path, "unfinished", "is left by an unfinished export; run it again")
            elif _shown(path) != path:
                inventory.report(_shown(path), "extra", "has a name that is not UTF-8")
            elif entry.is_symlink():
                inventory.report(path, "link", "is a symbolic link; a release contains files only")
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif entry.is_file(follow_symlinks=False):
                inventory.add(path).size = entry.stat(follow_symlinks=False).st_size
            else:
                inventory.report(path, "extra", "is neither a file nor a folder")


def why_unsafe(path: str) -> str | None:
    """Return why a path from a release must not be followed, or None."""
    if not path or len(path) > LONGEST_PATH:
        return "is empty or longer than any path of a release"
    if CONTROL.search(path):
        return "contains control characters"
    if path.startswith("/") or "\\" in path or ".." in path.split("/"):
        return "leads out of the release"
    if str(PurePosixPath(path)) != path or ":" in path.split("/")[0]:
        return "is not a plain relative path"
    return None


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


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
    """Return the rows of a Parquet file or lines of a JSON Lines file; None for any other."""
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    return None


def manifest_entries(path: Path) -> Iterator[tuple[ReleaseFile, int | None]]:
    """Yield every entry of a manifest from anywhere with its `rows`.

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
    """Yield every file with its `rows` and the images inside it. Raises BadManifest if they are apart."""
    for path, group in groupby(entries, lambda one: one[0].path):
        (file, rows), *inside = group
        if file.embedded or not all(entry.embedded for entry, _ in inside):
            raise BadManifest(f"lists {path[:200]!r} twice, or an image inside it apart from that file")
        yield file, rows, [entry for entry, _ in inside]


# --- SHA256SUMS -------------------------------------------------------------------------------------

SUMS = "SHA256SUMS"

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def write_file(out: Path, path: str, chunks: Iterable[bytes]) -> tuple[str, int]:
    """Write one file of a release durably; return its SHA-256 and size."""
    with open_hashed(out, path) as file:
        for chunk in chunks:
            file.write(chunk)
    return file.sha256, file.size


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
