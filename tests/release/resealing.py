"""Make a changed release consistent again, as a forger would: hashes, sizes, manifest and sums."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from plantain.release.plan import ReleaseFile
from plantain.release.proof.manifest import MANIFEST, SUMS, manifest_entries, write_manifest

Entries = list[tuple[ReleaseFile, int | None]]


def entries_of(out: Path) -> Entries:
    """Return every entry of the manifest with its rows."""
    return list(manifest_entries(out / MANIFEST))


def reseal(out: Path, entries: Entries | None = None, rows: Mapping[str, int] | None = None) -> None:
    """Write manifest and sums again, with the hashes of the present files and without missing files.

    The numbers of rows are kept, except for the files named in `rows`.
    """
    kept = []
    row_counts = {}
    for entry, count in entries_of(out) if entries is None else entries:
        path = out / entry.path if "\n" not in entry.path and len(entry.path) < 500 else out / "nothing"
        if not entry.embedded and entries is None:
            if not path.is_file():
                continue
            data = path.read_bytes()
            entry = replace(entry, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
        if entry.embedded and entries is None and not path.is_file():
            continue
        row_counts[entry.path] = count if count is not None else row_counts.get(entry.path)
        kept.append(entry)
    row_counts.update(rows or {})
    write_manifest(out, kept, lambda file: row_counts[file.path])
    seal_sums(out)


def seal_sums(out: Path) -> None:
    """Write SHA256SUMS over the files in the folder."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n"
        for name, path in sorted((path.relative_to(out).as_posix(), path) for path in out.rglob("*"))
        if path.is_file() and name != SUMS
    ]
    (out / SUMS).write_text("".join(lines), encoding="utf-8")
