"""What is inside a file of a release: rows and columns, embedded images, members of a tar, lines of JSON.

Only files whose checksum held come here, but that proves nothing about whoever wrote them: sizes are bounded, and
whatever a library raises becomes a problem.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from plantain.files.unpacking import unpacks_too_far
from plantain.pixels.decode import BadImage, check_header
from plantain.pixels.fingerprint import pixel_sha256
from plantain.release.layouts.columns import IMAGE, ReleaseColumns
from plantain.release.plan import ReleaseFile
from plantain.release.proof.inventory import ReleaseProblem

_LONGEST_LINE = 64 << 20
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
        pixels: decode every image and compare the hash of its pixels.
        signatures: check them, which needs c2pa-python.
        columns: of the release's tables.
    """

    pixels: bool
    signatures: bool
    columns: ReleaseColumns


def check_contents(
    path: Path, file: ReleaseFile, rows: int | None, inside: Sequence[ReleaseFile], options: CheckOptions
) -> list[ReleaseProblem]:
    """Everything that a file's manifest entries say of its content.

    Args:
        path: where it lies.
        file, rows: its entry.
        inside: the entries of the images in it, by row and member.
        options: how closely.
    """
    try:
        if file.path.endswith(".parquet") and file.role != "document":
            return list(_parquet(path, file, rows, inside, options))
        if file.path.endswith(".tar"):
            return list(_tar(path, file, inside, options))
        if inside:
            return [ReleaseProblem(file.path, "manifest", "cannot have images inside it")]
        if file.is_edit and (options.pixels or file.source_sha256):
            return list(_image(path.read_bytes(), file, options, hashed=True))
    except _RAISED as error:
        return [
            ReleaseProblem(
                file.path, "unreadable", " ".join(str(error).split())[:300] or type(error).__name__
            )
        ]
    return []


def _image(
    data: bytes | memoryview, entry: ReleaseFile, options: CheckOptions, hashed: bool = False
) -> Iterator[ReleaseProblem]:
    where = (
        ""
        if entry.member is None
        else f"{entry.member} of row {entry.row}: "
        if entry.row is not None
        else f"{entry.member}: "
    )
    if not hashed and (len(data) != entry.bytes or hashlib.sha256(data).hexdigest() != entry.sha256):
        yield ReleaseProblem(entry.path, "image", f"{where}is not the image that the manifest lists")
        return
    if entry.source_sha256 and _judged_sha256(bytes(data)) != entry.source_sha256:
        yield ReleaseProblem(entry.path, "image", f"{where}is not the judged image with a manifest added")
    if entry.source_sha256 and options.signatures:
        yield from _signature(bytes(data), entry, where)
    if options.pixels and entry.pixel_sha256 is not None:
        try:
            check_header(bytes(data), entry.member or entry.path)
            found = pixel_sha256(bytes(data))
        except BadImage as error:
            yield ReleaseProblem(entry.path, "pixels", f"{where}cannot be decoded: {error}")
        else:
            if found != entry.pixel_sha256:
                yield ReleaseProblem(entry.path, "pixels", f"{where}decodes to other pixels than were judged")


def _judged_sha256(data: bytes) -> str:
    from plantain.release.proof.provenance import without_manifest

    return hashlib.sha256(without_manifest(data)).hexdigest()


def _signature(data: bytes, entry: ReleaseFile, where: str) -> Iterator[ReleaseProblem]:
    from plantain.release.proof.provenance import signed_attempt

    state, task, round = signed_attempt(data)
    if state not in ("Valid", "Trusted"):
        yield ReleaseProblem(entry.path, "signature", f"{where}its C2PA manifest does not hold ({state})")
    elif (task, round) != (entry.task, entry.round or 0):
        yield ReleaseProblem(
            entry.path, "signature", f"{where}its C2PA manifest was made for task {task}, round {round}"
        )


# --- Parquet ----------------------------------------------------------------------------------------


def _parquet(
    path: Path, file: ReleaseFile, rows: int | None, inside: Sequence[ReleaseFile], options: CheckOptions
) -> Iterator[ReleaseProblem]:
    with pq.ParquetFile(path, pre_buffer=False) as table:
        schema = table.schema_arrow
        folders = file.path.split("/")
        expected = options.columns.table(folders[1] if len(folders) > 2 else "")
        if schema.names != expected.names or schema.types != expected.types:
            differing = sorted(set(schema.names) ^ set(expected.names)) or "types"
            yield ReleaseProblem(
                file.path, "schema", f"its columns are not those of its table (differing: {differing})"
            )
            return
        if table.metadata.num_rows != rows:
            yield ReleaseProblem(
                file.path, "rows", f"has {table.metadata.num_rows} rows, and the manifest says {rows}"
            )
            return
        waiting = deque(sorted(inside, key=_row))
        columns = [
            column.name for column in schema if column.type == IMAGE or pa.types.is_binary(column.type)
        ]
        named = [name for name in ("task_id",) if name in schema.names]
        if too_far := unpacks_too_far(table, frozenset((*named, *columns))):
            yield ReleaseProblem(file.path, "rows", too_far)
            return
        start = 0
        for group in range(table.num_row_groups):
            part = table.read_row_group(group, columns=[*named, *columns])
            listed = {}
            while waiting and _row(waiting[0]) < start + part.num_rows:
                entry = waiting.popleft()
                listed[entry.row, entry.member] = entry
            yield from _rows(part, columns, start, file.path, listed, options)
            start += part.num_rows
            yield from (_absent(entry) for entry in listed.values())
    yield from map(_absent, waiting)


def _row(entry: ReleaseFile) -> int:
    return -1 if entry.row is None else entry.row


def _absent(entry: ReleaseFile) -> ReleaseProblem:
    detail = f"has no {entry.member} in row {entry.row}, which the manifest lists"
    return ReleaseProblem(entry.path, "image", detail)


def _rows(
    part: pa.Table,
    columns: Sequence[str],
    start: int,
    path: str,
    listed: dict[tuple[int | None, str | None], ReleaseFile],
    options: CheckOptions,
) -> Iterator[ReleaseProblem]:
    """A table of originals names no tasks: a picture there stands for itself."""
    tasks = part["task_id"].to_pylist() if "task_id" in part.column_names else [None] * part.num_rows
    for name in columns:
        column = part[name].combine_chunks()
        cells = column.field("bytes") if column.type == IMAGE else column
        valid = column.is_valid().to_pylist()
        for index in range(part.num_rows):
            row = start + index
            entry = listed.pop((row, name), None)
            if not valid[index] or not cells[index].is_valid:
                if entry is not None:
                    yield _absent(entry)
            elif entry is None:
                yield ReleaseProblem(
                    path, "image", f"has a {name} in row {row} that the manifest does not list"
                )
            elif entry.task != tasks[index]:
                yield ReleaseProblem(
                    path, "rows", f"row {row} is of task {tasks[index]}, and the manifest says {entry.task}"
                )
            else:
                yield from _image(memoryview(cells[index].as_buffer()), entry, options)


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
                yield ReleaseProblem(
                    file.path, "image", f"{member.name[:200]!r} is no plain member, or comes twice"
                )
                continue
            seen.add(member.name)
            opened = tar.extractfile(member)
            data = opened.read() if opened is not None else b""
            entry = listed.pop(member.name, None)
            if entry is not None:
                yield from _image(data, entry, options)
            elif member.name.endswith(".json") and member.name[:-5] in stems:
                if orjson.loads(data).get("task_id") != stems[member.name[:-5]]:
                    yield ReleaseProblem(
                        file.path, "rows", f"{member.name} is of another task than the manifest says"
                    )
            else:
                yield ReleaseProblem(file.path, "image", f"{member.name[:200]!r} is not in the manifest")
    for name in listed:
        yield ReleaseProblem(file.path, "image", f"{name} is in the manifest and not in the tar")


# --- JSON, line by line -----------------------------------------------------------------------------


def json_entries(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """(line number, entry) of a JSON object or array that holds one entry a line, as the tree's files do.

    The entry of an object comes as {key: value}. Raises ValueError naming the line that is wrong.
    """
    with path.open("rb") as file:
        opening = file.readline(16).strip()
        if opening not in (b"{", b"["):
            raise ValueError("does not begin with a bracket on a line of its own")
        closing = b"}" if opening == b"{" else b"]"
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=2):
            entry = line.strip()
            if entry == closing:
                if file.read(1):
                    raise ValueError(f"line {number} ends it, and more follows")
                return
            entry = entry.removesuffix(b",")
            yield number, _object(b"{" + entry + b"}" if opening == b"{" else entry, number)
        raise ValueError("ends without its closing bracket")


def _object(line: bytes, number: int) -> dict[str, object]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"line {number} is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError(f"line {number} is not a JSON object")
    return row
