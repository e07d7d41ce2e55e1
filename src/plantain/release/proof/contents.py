"""Checks the contents of a file of a release: rows and columns, embedded images, members of a tar, DICOM.

Only files with the right checksum are opened, but their author may be anyone: sizes are bounded, and whatever a library
raises becomes a problem.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from plantain.files.parquet import unpacks_too_far
from plantain.pixels.decode import BadImage, check_header, pixel_sha256
from plantain.release.layouts.columns import IMAGE, ReleaseColumns
from plantain.release.layouts.dicom import jpeg_in
from plantain.release.plan import ReleaseFile
from plantain.release.proof.inventory import ReleaseProblem

_BATCH = 16
"""Rows of a table in memory."""
_RAISED = (
    pa.ArrowException,
    OSError,
    MemoryError,
    ValueError,
    tarfile.TarError,
    EOFError,
    KeyError,
    TypeError,
)


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How thoroughly files are checked.

    Attributes:
        pixels: True to decode every image and compare the hash of its pixels.
        signatures: True to check signatures, which needs c2pa-python.
        columns: columns of the release's tables.
    """

    pixels: bool
    signatures: bool
    columns: ReleaseColumns


def check_contents(
    path: Path, file: ReleaseFile, rows: int | None, inside: Sequence[ReleaseFile], options: CheckOptions
) -> list[ReleaseProblem]:
    """Check a file's content against its manifest entries; return the problems.

    Args:
        path: the file on disk.
        file, rows: the file's entry and number of rows.
        inside: the entries of the images in it, by row and member.
    """
    try:
        if file.path.endswith(".parquet"):
            return list(_parquet(path, file, rows, inside, options))
        if file.path.endswith(".tar"):
            return list(_tar(path, file, inside, options))
        if file.path.endswith(".dcm"):
            return list(_dicom(path, file, inside, options))
        if inside:
            return [ReleaseProblem(file.path, "manifest", "cannot have images inside it")]
        if file.is_edit and (options.pixels or file.source_sha256):
            return list(_image(path.read_bytes(), file, options, hashed=True))
    except _RAISED as error:
        detail = " ".join(str(error).split())[:300] or type(error).__name__
        return [ReleaseProblem(file.path, "unreadable", detail)]
    return []


def _image(
    data: bytes | memoryview, entry: ReleaseFile, options: CheckOptions, hashed: bool = False
) -> Iterator[ReleaseProblem]:
    where = ""
    if entry.member is not None:
        where = f"{entry.member}: " if entry.row is None else f"{entry.member} of row {entry.row}: "

    def problem(kind: str, detail: str) -> ReleaseProblem:
        return ReleaseProblem(entry.path, kind, where + detail)

    if not hashed and (len(data) != entry.bytes or hashlib.sha256(data).hexdigest() != entry.sha256):
        yield problem("image", "is not the image that the manifest lists")
        return
    if entry.source_sha256:
        from plantain.release.proof.provenance import signed_attempt, without_manifest

        if hashlib.sha256(without_manifest(bytes(data))).hexdigest() != entry.source_sha256:
            yield problem("image", "is not the judged image with a manifest added")
        if options.signatures:
            state, task, round = signed_attempt(bytes(data))
            if state not in ("Valid", "Trusted"):
                yield problem("signature", f"its C2PA manifest is not valid ({state})")
            elif (task, round) != (entry.task, entry.round or 0):
                yield problem("signature", f"its C2PA manifest was made for task {task}, round {round}")
    if options.pixels and entry.pixel_sha256 is not None:
        try:
            check_header(bytes(data), entry.member or entry.path)
            found = pixel_sha256(bytes(data))
        except BadImage as error:
            yield problem("pixels", f"cannot be decoded: {error}")
        else:
            if found != entry.pixel_sha256:
                yield problem("pixels", "decodes to other pixels than were judged")


# --- Parquet ----------------------------------------------------------------------------------------


def _parquet(
    path: Path, file: ReleaseFile, rows: int | None, inside: Sequence[ReleaseFile], options: CheckOptions
) -> Iterator[ReleaseProblem]:
    """Check schema, rows and images; a table of originals has no tasks, so its images belong to none."""

    def problem(kind: str, detail: str) -> ReleaseProblem:
        return ReleaseProblem(file.path, kind, detail)

    listed = {(entry.row, entry.member): entry for entry in inside}
    with pq.ParquetFile(path, pre_buffer=False) as table:
        schema = table.schema_arrow
        folders = file.path.split("/")
        expected = options.columns.table(folders[1] if len(folders) > 2 else "")
        if schema.names != expected.names or schema.types != expected.types:
            differing = sorted(set(schema.names) ^ set(expected.names)) or "types"
            yield problem("schema", f"its columns are not those of its table (differing: {differing})")
            return
        if table.metadata.num_rows != rows:
            yield problem("rows", f"has {table.metadata.num_rows} rows, and the manifest states {rows}")
            return
        columns = [
            column.name for column in schema if column.type == IMAGE or pa.types.is_binary(column.type)
        ]
        read = [*columns, *(name for name in ("task_id",) if name in schema.names)]
        if too_far := unpacks_too_far(table, frozenset(read)):
            yield problem("rows", too_far)
            return
        row = 0
        for batch in table.iter_batches(_BATCH, columns=read):
            tasks = batch["task_id"].to_pylist() if "task_id" in read else [None] * batch.num_rows
            images = {name: batch[name] for name in columns}
            cells = {name: one.field("bytes") if one.type == IMAGE else one for name, one in images.items()}
            for index, task in enumerate(tasks):
                for name in columns:
                    entry = listed.get((row, name))
                    if not images[name][index].is_valid or not cells[name][index].is_valid:
                        continue
                    if entry is None:
                        yield problem("image", f"has a {name} in row {row} that the manifest does not list")
                        continue
                    del listed[row, name]
                    if entry.task != task:
                        yield problem(
                            "rows", f"row {row} is of task {task}, and the manifest states {entry.task}"
                        )
                    else:
                        yield from _image(memoryview(cells[name][index].as_buffer()), entry, options)
                row += 1
    for entry in listed.values():
        yield problem("image", f"has no {entry.member} in row {entry.row}, which the manifest lists")


# --- tar --------------------------------------------------------------------------------------------


def _tar(
    path: Path, file: ReleaseFile, inside: Sequence[ReleaseFile], options: CheckOptions
) -> Iterator[ReleaseProblem]:
    listed = {entry.member: entry for entry in inside}
    stems = {str(name).rpartition(".")[0]: entry.task for name, entry in listed.items()}
    seen: set[str] = set()
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            if not member.isreg() or member.name in seen or member.size > file.bytes:
                detail = f"{member.name[:200]!r} is not a plain member, or occurs twice"
                yield ReleaseProblem(file.path, "image", detail)
                continue
            seen.add(member.name)
            opened = tar.extractfile(member)
            data = opened.read() if opened is not None else b""
            entry = listed.pop(member.name, None)
            stem, _, ending = member.name.rpartition(".")
            if entry is not None:
                yield from _image(data, entry, options)
            elif ending != "json" or stem not in stems:
                yield ReleaseProblem(file.path, "image", f"{member.name[:200]!r} is not in the manifest")
            elif orjson.loads(data).get("task_id") != stems[stem]:
                detail = f"{member.name} is of another task than in the manifest"
                yield ReleaseProblem(file.path, "rows", detail)
    for name in listed:
        yield ReleaseProblem(file.path, "image", f"{name} is in the manifest and not in the tar")


# --- DICOM ------------------------------------------------------------------------------------------


def _dicom(
    path: Path, file: ReleaseFile, inside: Sequence[ReleaseFile], options: CheckOptions
) -> Iterator[ReleaseProblem]:
    jpeg, synthetic = jpeg_in(path.read_bytes(), file.path)
    if len(inside) != 1:
        yield ReleaseProblem(file.path, "image", f"has one image, and the manifest lists {len(inside)}")
    for entry in inside:
        if entry.is_edit and not synthetic:
            yield ReleaseProblem(file.path, "image", "is an edit and does not state that it is synthetic")
        yield from _image(jpeg, entry, options)
