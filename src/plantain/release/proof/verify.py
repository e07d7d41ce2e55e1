"""Verifies a release: every file against SHA256SUMS and manifest, its content, and the agreement of its records.

Files are hashed in threads, and opened only if their checksum is right. SHA256SUMS and the manifest are checked against
each other, so that a change to either is distinguished from a change to the file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import orjson

from plantain.files.installed import install_line
from plantain.files.opening import read_inside
from plantain.journal import JournalReader
from plantain.records import InputError
from plantain.release.layouts.columns import ReleaseColumns, columns_of
from plantain.release.plan import FACTS, ReleaseFile
from plantain.release.proof.contents import CheckOptions, check_contents
from plantain.release.proof.inventory import Inventory, KnownFile, ReleaseProblem, take_stock, why_unsafe
from plantain.release.proof.manifest import (
    DOCUMENT,
    MANIFEST,
    SUMS,
    BadManifest,
    by_file,
    manifest_entries,
    read_sums,
)
from plantain.release.proof.recorded import NEEDED, check_records

_LARGEST_FACTS = 64 << 20

_AT_ONCE = 256
"""Files that are checked before the next are looked up: this bounds the memory."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of `verify_release`.

    Attributes:
        files, bytes: number of files on disk, and their total size.
        images: number of distinct edited images in the manifest.
        release: SHA-256 of SHA256SUMS, the one hash that identifies the release; "" without that file.
        problems: sorted by path.
        system: files and folders that a system or a download left there.
    """

    files: int
    bytes: int
    images: int
    release: str
    problems: tuple[ReleaseProblem, ...]
    system: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


_Job = tuple[str, ReleaseFile | None, int | None, list[ReleaseFile]]
"""A file to check: its path, and its manifest entry with `rows` and the images inside it, if it has one."""


def verify_release(out: Path, *, against: Path | None = None, pixels: bool = False) -> Proof:
    """Verify a whole release without changing it, and return the proof with all problems.

    Args:
        against: folder of the run that it was made from, to compare tasks, attempts and verdicts too; or None.
        pixels: True to also decode every image and compare the hash of its pixels.

    Raises:
        InputError: `out` is not a release, or `against` is not a run.
    """
    if not out.is_dir():
        raise InputError(f"{out}: no such folder")
    inventory = Inventory()
    _read_sums(out / SUMS, inventory)
    take_stock(out, inventory)
    if inventory.get(SUMS).size is None and inventory.get(MANIFEST).size is None:
        if (out / SUMS).is_symlink():
            raise InputError(
                f"{out}: its files are links, as in the cache of the Hub, and links are not followed; "
                "verify a copy (cp -rL, or hf download --local-dir)"
            )
        raise InputError(f"{out}: contains neither {SUMS} nor {MANIFEST}, so it is not a release")
    present = [known.size for known in inventory.files.values() if known.size is not None]
    signatures = importlib.util.find_spec("c2pa") is not None
    options = CheckOptions(pixels, signatures, _columns(out))
    with ExitStack() as stack:
        reader = stack.enter_context(JournalReader.open(against)) if against is not None else None
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count() or 1, "plantain-verify"))
        _check_files(out, inventory, options, pool)
        if inventory.signed and not signatures:
            inventory.report(
                "", "signature", f"cannot be checked without c2pa-python: {install_line('release')}"
            )
        images = len(inventory.images)
        problems = {*inventory.problems, *check_records(out, inventory, reader)}
    release = _hash(out / SUMS) if inventory.get(SUMS).size is not None else ""
    system = tuple(sorted(inventory.system))
    return Proof(len(present), sum(present), images, release, tuple(sorted(problems)), system)


def _read_sums(path: Path, inventory: Inventory) -> None:
    if path.is_symlink() or not path.is_file():
        inventory.report(SUMS, "missing", NEEDED)
        return
    for line in read_sums(path):
        if len(line) == 2:
            inventory.report(SUMS, "sums", f"line {line[0]} {line[1]}")
        else:
            inventory.add(line[2]).sums = line[1]


def _check_files(out: Path, inventory: Inventory, options: CheckOptions, pool: ThreadPoolExecutor) -> None:
    """Check every listed file, several at once."""

    def check(job: _Job) -> list[ReleaseProblem]:
        return _check_file(out, inventory.files[job[0]], job, options)

    jobs = _jobs(out, inventory)
    while batch := list(islice(jobs, _AT_ONCE)):
        for (path, *_), problems in zip(batch, pool.map(check, batch), strict=True):
            inventory.problems += problems
            inventory.add(path).whole = not problems


def _jobs(out: Path, inventory: Inventory) -> Iterator[_Job]:
    """Yield every file that is there and listed; report missing, extra and partly listed files."""
    has_sums = inventory.get(SUMS).size is not None
    trusted = False
    for entry, rows, inside in _manifest(out / MANIFEST, inventory):
        if wrong := why_unsafe(entry.path):
            inventory.add(entry.path).listed = ""
            inventory.report(MANIFEST, "path", f"names {entry.path[:200]!r}, which {wrong}")
            continue
        trusted = True
        known = inventory.add(entry.path)
        known.listed = entry.sha256
        for image in (entry, *inside):
            inventory.add_image(image)
        if has_sums and known.sums is None:
            inventory.report(SUMS, "sums", f"has no line for {entry.path}")
        if known.size is None:
            inventory.report(entry.path, "missing", "is listed and not there")
        else:
            yield entry.path, entry, rows, inside
    for path in (SUMS, MANIFEST):  # each is checked by the other, and neither by itself
        inventory.add(path).listed = ""
    for path, known in sorted(inventory.files.items()):
        if known.listed is not None:
            continue
        if known.sums is None:
            inventory.report(path, "extra", "is not a file of this release")
            continue
        if trusted:
            inventory.report(path, "manifest", f"is in {SUMS} and not in the manifest")
        if known.size is None:
            inventory.report(path, "missing", "is listed and not there")
        else:
            yield path, None, None, []


def _manifest(
    path: Path, inventory: Inventory
) -> Iterator[tuple[ReleaseFile, int | None, list[ReleaseFile]]]:
    """Yield the manifest's entries if its own checksum is right; nothing of it is believed otherwise."""
    if inventory.get(MANIFEST).size is None:
        inventory.report(MANIFEST, "missing", NEEDED)
        return
    try:
        found = _hash(path)
    except OSError as error:
        inventory.report(MANIFEST, "unreadable", str(error.strerror))
        return
    expected = inventory.get(MANIFEST).sums
    if expected is None and inventory.get(SUMS).size is not None:
        inventory.report(SUMS, "sums", f"has no line for {MANIFEST}")
    if expected is not None and found != expected:
        inventory.report(MANIFEST, "checksum", f"does not have the hash that {SUMS} gives")
        return
    try:
        yield from by_file(manifest_entries(path))
    except BadManifest as error:
        inventory.report(MANIFEST, "manifest", str(error))


def _columns(out: Path) -> ReleaseColumns:
    """Return the columns of its tables by the rubric in run.json; faults of that file are reported elsewhere."""
    try:
        return columns_of(orjson.loads(read_inside(out, out / FACTS, _LARGEST_FACTS))["facts"]["frozen"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError):
        return columns_of({})


def _check_file(out: Path, known: KnownFile, job: _Job, options: CheckOptions) -> list[ReleaseProblem]:
    name, entry, rows, inside = job
    if entry is not None and known.size != entry.bytes and known.sums in (None, entry.sha256):
        detail = f"has {known.size:,} bytes, and the manifest states {entry.bytes:,}"
        return [ReleaseProblem(name, "size", detail)]
    try:
        found = _hash(out / name)
    except OSError as error:
        return [ReleaseProblem(name, "unreadable", str(error.strerror))]
    by_sums = known.sums is None or found == known.sums
    by_manifest = entry is None or found == entry.sha256
    if by_sums and by_manifest:
        if entry is None or entry.role == DOCUMENT:
            return []
        return check_contents(out / name, entry, rows, inside, options)
    if by_manifest and entry is not None:
        return [ReleaseProblem(SUMS, "sums", f"gives another hash for {name} than it has by the manifest")]
    if by_sums and known.sums is not None:
        return [ReleaseProblem(MANIFEST, "manifest", f"gives another hash for {name} than {SUMS}")]
    return [ReleaseProblem(name, "checksum", "differs from the released file")]


def _hash(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
