"""Verifies a release: every file against SHA256SUMS and manifest, its content, and the agreement of its records.

Files are hashed in threads, and opened only if their checksum is right. SHA256SUMS and the manifest are checked against
each other, so that a change to either is distinguished from a change to the file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import orjson

from plantain.files.installing import install_line
from plantain.files.opening import read_inside
from plantain.files.system_files import is_system_file
from plantain.journal import JournalReader
from plantain.records import InputError
from plantain.release.layouts.columns import ReleaseColumns, columns_of
from plantain.release.plan import FACTS, ReleaseFile
from plantain.release.proof.contents import CheckOptions, check_contents
from plantain.release.proof.inventory import (
    EMPTY,
    Inventory,
    ReleaseProblem,
    take_stock,
    unlisted,
    why_unsafe,
)
from plantain.release.proof.manifest import DOCUMENT, MANIFEST, SUMS, BadManifest, ManifestReader, read_sums
from plantain.release.proof.recorded import NEEDED, check_records

_LARGEST_FACTS = 64 << 20

_GROUP_BYTES, _GROUP_FILES = 16 << 20, 64
"""Small files are checked together: passing one to a thread costs as much as hashing it."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of `verify_release`.

    Attributes:
        files, bytes: on disk.
        images: edited images of the manifest, each counted once.
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


@dataclass(frozen=True, slots=True)
class _Job:
    """One file to check: its hash by SHA256SUMS and its manifest entries, either of which may be missing."""

    path: str
    size: int
    sums: str | None
    entry: ReleaseFile | None = None
    rows: int | None = None
    inside: tuple[ReleaseFile, ...] = ()


@dataclass(slots=True)
class _Check:
    """State of one verification."""

    out: Path
    pixels: bool
    inventory: Inventory = field(default_factory=Inventory)
    columns: ReleaseColumns = field(default_factory=lambda: columns_of({}))
    signed: bool = False
    can_read_signatures: bool = field(default_factory=lambda: importlib.util.find_spec("c2pa") is not None)


def verify_release(out: Path, *, against: Path | None = None, pixels: bool = False) -> Proof:
    """Check a release in full. Nothing in it is changed.

    Args:
        against: the run that it was made from: its tasks, attempts and verdicts are compared too.
        pixels: also decode every image and compare the hash of its pixels.

    Raises:
        InputError: `out` is not a release, or `against` is not a run.
    """
    if not out.is_dir():
        raise InputError(f"{out}: no such folder")
    with ExitStack() as stack:
        check = _Check(out, pixels)
        inventory = check.inventory
        take_stock(out, inventory, _own_system_files(out / SUMS))
        if not {SUMS, MANIFEST} & inventory.files.keys():
            if (out / SUMS).is_symlink():
                raise InputError(
                    f"{out}: its files are links, as in the cache of the Hub, and links are not followed; "
                    "verify a copy (cp -rL, or hf download --local-dir)"
                )
            raise InputError(f"{out}: contains neither {SUMS} nor {MANIFEST}, so it is not a release")
        reader = stack.enter_context(JournalReader.open(against)) if against is not None else None
        present = [known.size for known in inventory.files.values() if known.size is not None]
        _read_sums_file(check)
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count() or 1, "plantain-verify"))
        _check_files(check, pool)
        if check.signed and not check.can_read_signatures:
            inventory.report(
                "", "signature", f"cannot be checked without c2pa-python: {install_line('release')}"
            )
        images = len(inventory.images)
        problems = [*inventory.problems, *check_records(out, inventory, reader)]
        release = _hash(out / SUMS) if inventory.get(SUMS).size is not None else ""
    found = tuple(sorted(set(_without_echo(problems))))
    return Proof(len(present), sum(present), images, release, found, tuple(sorted(inventory.system)))


def _without_echo(problems: list[ReleaseProblem]) -> Iterator[ReleaseProblem]:
    """Omit folders that are only empty because their files are missing, and files reported missing twice."""
    missing = {problem.path for problem in problems if problem.kind == "missing"}
    listed = {problem.path for problem in problems if problem.kind == "missing" and problem.detail != NEEDED}
    emptied = {str(parent) for path in missing for parent in PurePosixPath(path).parents}
    for problem in problems:
        if not (problem.detail == NEEDED and problem.path in listed) and not (
            problem.detail == EMPTY and problem.path in emptied
        ):
            yield problem


def _own_system_files(sums: Path) -> set[str]:
    """Return the paths in SHA256SUMS that are named like a system file, as .gitattributes is."""
    if sums.is_symlink() or not sums.is_file():
        return set()
    return {line[2] for line in read_sums(sums) if len(line) == 3 and is_system_file(line[2])}


def _read_sums_file(check: _Check) -> None:
    if check.inventory.get(SUMS).size is None:
        check.inventory.report(SUMS, "missing", NEEDED)
        return
    for line in read_sums(check.out / SUMS):
        if len(line) == 2:
            check.inventory.report(SUMS, "sums", f"line {line[0]} {line[1]}")
        else:
            check.inventory.add(line[2]).sums = line[1]


def _check_files(check: _Check, pool: ThreadPoolExecutor) -> None:
    """Check every listed file in threads, a bounded number of groups at a time."""
    waiting: deque[Future[list[tuple[str, list[ReleaseProblem]]]]] = deque()

    def take() -> None:
        for path, problems in waiting.popleft().result():
            check.inventory.problems += problems
            check.inventory.add(path).whole = not problems

    for group in _groups(_jobs(check)):
        waiting.append(pool.submit(_check_group, check, group))
        if len(waiting) > 4 * (os.cpu_count() or 1):
            take()
    while waiting:
        take()


def _groups(jobs: Iterable[_Job]) -> Iterator[list[_Job]]:
    group: list[_Job] = []
    for job in jobs:
        group.append(job)
        if len(group) == _GROUP_FILES or sum(one.size for one in group) >= _GROUP_BYTES:
            yield group
            group = []
    if group:
        yield group


def _jobs(check: _Check) -> Iterator[_Job]:
    """Yield every file that is there and listed; report missing, extra and partly listed files."""
    inventory = check.inventory
    has_sums = inventory.get(SUMS).size is not None
    trusted = False
    for entry, rows, inside in _manifest(check):
        if wrong := why_unsafe(entry.path):
            inventory.add(entry.path).listed = ""
            inventory.report(MANIFEST, "path", f"names {entry.path[:200]!r}, which {wrong}")
            continue
        trusted = True
        known = inventory.add(entry.path)
        known.listed = entry.sha256
        for image in (entry, *inside):
            inventory.add_image(image)
            check.signed = check.signed or bool(image.source_sha256)
        if entry.path.startswith("data/trajectories/") and rows is not None:
            inventory.trajectory_rows = (inventory.trajectory_rows or 0) + rows
        if has_sums and known.sums is None:
            inventory.report(SUMS, "sums", f"has no line for {entry.path}")
        if known.size is None:
            inventory.report(entry.path, "missing", "is listed and not there")
        else:
            yield _Job(entry.path, known.size, known.sums, entry, rows, tuple(inside))
    for path in (SUMS, MANIFEST):  # each is checked by the other, and neither by itself
        inventory.add(path).listed = ""
    for path, known in sorted(inventory.files.items()):
        if known.sums is None or known.listed is not None:
            continue
        if trusted:
            inventory.report(path, "manifest", f"is in {SUMS} and not in the manifest")
        if known.size is None:
            inventory.report(path, "missing", "is listed and not there")
        else:
            yield _Job(path, known.size, known.sums)
    for path in unlisted(inventory):
        inventory.report(path, "extra", "is not a file of this release")


def _manifest(check: _Check) -> Iterator[tuple[ReleaseFile, int | None, list[ReleaseFile]]]:
    """Yield the manifest's entries if its own checksum is right; nothing of it is believed otherwise."""
    inventory, path = check.inventory, check.out / MANIFEST
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
        reader = ManifestReader(path)
        check.columns = _columns(check.out)
        try:
            yield from reader.by_file()
        finally:
            reader.close()
    except BadManifest as error:
        inventory.report(MANIFEST, "manifest", str(error))


def _columns(out: Path) -> ReleaseColumns:
    """Return the columns of its tables by the rubric in run.json; faults of that file are reported elsewhere."""
    try:
        return columns_of(orjson.loads(read_inside(out, out / FACTS, _LARGEST_FACTS))["facts"]["frozen"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError):
        return columns_of({})


def _check_group(check: _Check, group: list[_Job]) -> list[tuple[str, list[ReleaseProblem]]]:
    results = []
    for job in group:
        try:
            results.append((job.path, _check_file(check, job)))
        except OSError as error:
            results.append((job.path, [ReleaseProblem(job.path, "unreadable", str(error.strerror))]))
    return results


def _check_file(check: _Check, job: _Job) -> list[ReleaseProblem]:
    path, entry = check.out / job.path, job.entry
    if entry is not None and job.size != entry.bytes and job.sums in (None, entry.sha256):
        detail = f"has {job.size:,} bytes, and the manifest states {entry.bytes:,}"
        return [ReleaseProblem(job.path, "size", detail)]
    found = _hash(path)
    by_sums = job.sums is None or found == job.sums
    by_manifest = entry is None or found == entry.sha256
    if by_sums and by_manifest:
        if entry is None or entry.role == DOCUMENT:
            return []
        options = CheckOptions(check.pixels, check.can_read_signatures, check.columns)
        return check_contents(path, entry, job.rows, job.inside, options)
    if by_manifest and entry is not None:
        return [
            ReleaseProblem(SUMS, "sums", f"gives another hash for {job.path} than it has by the manifest")
        ]
    if by_sums and job.sums is not None:
        return [ReleaseProblem(MANIFEST, "manifest", f"gives another hash for {job.path} than {SUMS}")]
    return [ReleaseProblem(job.path, "checksum", "differs from the released file")]


def _hash(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
