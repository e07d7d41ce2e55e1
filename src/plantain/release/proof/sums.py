"""SHA256SUMS: one line per file of a release, as `sha256sum -c` reads it, and reading it back with suspicion."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from plantain.files.writing import create
from plantain.journal.disk.blobs import sync_folder
from plantain.release.proof.inventory import LONGEST_PATH, why_unsafe
from plantain.release.staging import make_folder, part_name

SUMS = "SHA256SUMS"
SUMS_FOLDER = "checksums"
"""One further file for each table, so that whoever fetched one table can check just that."""

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
    """(line number, SHA-256, path) of every line, or (line number, what is wrong with it).

    A path that is absolute, leaves the release, holds control characters, comes twice or out of order is wrong.
    """
    last = ""
    with path.open("rb") as file:
        for number, raw in enumerate(iter(lambda: file.readline(LONGEST_PATH + 80), b""), start=1):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                yield number, "is not UTF-8"
                continue
            match = _LINE.fullmatch(line.removesuffix("\n")) if line.endswith("\n") else None
            if match is None:
                yield number, "is not a checksum, two spaces and a path"
                continue
            name = match[2]
            if wrong := why_unsafe(name):
                yield number, f"names {name!r}, which {wrong}"
            elif name <= last:
                yield number, f"names {name!r} twice or out of order"
            else:
                yield number, match[1], name
                last = name
