"""Proving a release: every file against SHA256SUMS and manifest, what is inside it, and that its records agree.

Files are hashed in threads and looked into only once their checksum held. SHA256SUMS and the manifest are
checked against each other, so that a change to either is told from a change to the file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import orjson

from plantain.files.installing import install_line
from plantain.files.opening import read_inside
from plantain.journal import JournalReader
from plantain.records import InputError
from plantain.release.layouts.columns import ReleaseColumns, columns_of
from plantain.release.plan import ReleaseFile
from plantain.release.proof.contents import Looking, check_contents
from plantain.release.proof.inventory import Inventory
from plantain.release.proof.manifest import BESIDE, FORMAT, MANIFEST, BadManifest, ManifestReader
from plantain.release.proof.problems import ReleaseProblem
from plantain.release.proof.recorded import FACTS, NEEDED, check_records
from plantain.release.proof.resume import Checked
from plantain.release.proof.sums import SUMS, read_sums, why_unsafe
from plantain.release.proof.walk import EMPTY, Stamp, walk

_LARGEST_FACTS = 64 << 20
_GROUP_BYTES = 16 << 20
_GROUP_FILES = 64
_MOST_INSIDE = 20_000
"""Images inside files that are being checked or wait for it: their entries are what memory goes to."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What `verify_release` found.

    Attributes:
        files, bytes: that lie there.
        images: edited images of the manifest, each counted once.
        release: SHA-256 of SHA256SUMS: the one hash that stands for the release; "" without that file.
        skipped: files that an earlier, interrupted check had found whole.
        problems: sorted by path.
    """

    files: int
    bytes: int
    images: int
    release: str
    skipped: int
    problems: tuple[ReleaseProblem, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class _Job:
    """One file to check: what SHA256SUMS and the manifest say of it, either of which may be silent."""

    path: str
    stamp: Stamp
    sums: str | None
    entry: ReleaseFile | None
    rows: int | None
    inside: tuple[ReleaseFile, ...]


@dataclass
class _Check:
    """State of one verification."""

    out: Path
    pixels: bool
    checked: Checked
    inventory: Inventory
    problems: list[ReleaseProblem] = field(default_factory=list)
    columns: ReleaseColumns = field(default_factory=lambda: columns_of({}))
    format: int = FORMAT
    skipped: int = 0
    signed: bool = False
    can_read_signatures: bool = field(default_factory=lambda: importlib.util.find_spec("c2pa") is not None)


def verify_release(
    out: Path,
    *,
    against: Path | None = None,
    pixels: bool = False,
    resume: Path | None = None,
    workers: int = 0,
) -> Proof:
    """Checks a release in full; nothing in it is changed.

    Args:
        against: the run that it was made of: its tasks, attempts and verdicts are compared too.
        pixels: also decode every image and compare the hash of its pixels.
        resume: file that remembers what was found whole, outside the release.
        workers: threads; 0 for one per processor.

    Raises:
        InputError: there is no release, no run, or `resume` cannot be used.
    """
    if not out.is_dir():
        raise InputError(f"{out}: no such folder")
    with ExitStack() as stack:
        inventory = stack.enter_context(Inventory())
        problems = _look_around(out, inventory)
        reader = stack.enter_context(JournalReader.open(against)) if against is not None else None
        checked = Checked(resume, out, "pixels" if pixels else "bytes")
        stack.callback(checked.close)
        check = _Check(out, pixels, checked, inventory, problems)
        _read_sums_file(check)
        pool = stack.enter_context(ThreadPoolExecutor(workers or os.cpu_count() or 1, "plantain-verify"))
        _run(check, pool)
        if check.signed and not check.can_read_signatures:
            detail = f"cannot be checked without c2pa-python: {install_line('release')}"
            problems.append(ReleaseProblem("", "signature", detail))
        images = inventory.images()
        problems += check_records(out, inventory, reader)
        files, size = inventory.counted()
        release = _hash(out / SUMS) if inventory.is_present(SUMS) else ""
    return Proof(
        files=files,
        bytes=size,
        images=images,
        release=release,
        skipped=check.skipped,
        problems=tuple(sorted(set(_without_echo(problems)))),
    )


def _look_around(out: Path, inventory: Inventory) -> list[ReleaseProblem]:
    """Takes stock of every file that lies there; what must not. Raises InputError where there is no release."""
    problems = []
    for found in walk(out):
        if isinstance(found, ReleaseProblem):
            problems.append(found)
        else:
            inventory.add_present(*found)
    if not inventory.is_present(SUMS) and not inventory.is_present(MANIFEST):
        raise InputError(f"{out}: holds neither {SUMS} nor {MANIFEST}, so it is no release")
    return problems


def _without_echo(problems: list[ReleaseProblem]) -> list[ReleaseProblem]:
    """Leaves out folders that are only empty because what belongs there is missing, and what is missing twice over."""
    missing = {problem.path for problem in problems if problem.kind == "missing"}
    listed = {problem.path for problem in problems if problem.kind == "missing" and problem.detail != NEEDED}
    problems = [problem for problem in problems if problem.detail != NEEDED or problem.path not in listed]
    emptied = {str(parent) for path in missing for parent in PurePosixPath(path).parents}
    return [problem for problem in problems if problem.detail != EMPTY or problem.path not in emptied]


def _read_sums_file(check: _Check) -> None:
    if not check.inventory.is_present(SUMS):
        check.problems.append(ReleaseProblem(SUMS, "missing", NEEDED))
        return
    for line in read_sums(check.out / SUMS):
        if len(line) == 2:
            check.problems.append(ReleaseProblem(SUMS, "sums", f"line {line[0]} {line[1]}"))
        else:
            check.inventory.add_sums(line[2], line[1])


# --- the run over all files -------------------------------------------------------------------------


def _run(check: _Check, pool: ThreadPoolExecutor) -> None:
    waiting: deque[tuple[Future[list[tuple[_Job, str, list[ReleaseProblem]]]], int]] = deque()
    limit = 4 * (os.cpu_count() or 1)
    held = 0

    def take() -> int:
        future, inside = waiting.popleft()
        _take(check, future)
        return inside

    for group in _groups(_jobs(check)):
        inside = sum(len(job.inside) for job in group)
        waiting.append((pool.submit(_check_group, check, group), inside))
        held += inside
        while waiting and (len(waiting) >= limit or held > _MOST_INSIDE):
            held -= take()
    while waiting:
        take()


def _take(check: _Check, future: Future[list[tuple[_Job, str, list[ReleaseProblem]]]]) -> None:
    for job, sha256, problems in future.result():
        check.problems += problems
        if not problems:
            check.inventory.add_whole(job.path)
            check.checked.add(job.path, job.stamp, sha256)


def _groups(jobs: Iterator[_Job]) -> Iterator[list[_Job]]:
    """Small files together: a thread's hand-over costs as much as hashing one."""
    group: list[_Job] = []
    size = 0
    for job in jobs:
        group.append(job)
        size += job.stamp.size
        if size >= _GROUP_BYTES or len(group) == _GROUP_FILES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _jobs(check: _Check) -> Iterator[_Job]:
    """Every file that lies there and is listed; what is missing, extra or listed once only becomes a problem."""
    inventory = check.inventory
    sums_lie_there = inventory.is_present(SUMS)
    for entry, rows, inside in _manifest(check):
        if wrong := why_unsafe(entry.path):
            inventory.add_listed(entry.path, "")
            check.problems.append(
                ReleaseProblem(MANIFEST, "path", f"names {entry.path[:200]!r}, which {wrong}")
            )
            continue
        by_sums = inventory.sums(entry.path)
        inventory.add_listed(entry.path, entry.sha256)
        for image in (entry, *inside):
            inventory.add_image(image)
            check.signed = check.signed or bool(image.source_sha256)
        if entry.path.startswith("data/trajectories/") and rows is not None:
            inventory.trajectory_rows = (inventory.trajectory_rows or 0) + rows
        if sums_lie_there and by_sums is None:
            check.problems.append(ReleaseProblem(SUMS, "sums", f"has no line for {entry.path}"))
        stamp = _stamp(check, entry.path)
        if stamp is None:
            continue
        if entry.sha256 == by_sums and check.checked.has(entry.path, stamp, entry.sha256):
            check.skipped += 1
            inventory.add_whole(entry.path)
        else:
            yield _Job(entry.path, stamp, by_sums, entry, rows, tuple(inside))
    manifest_lists = inventory.lists_any()
    for path in (SUMS, MANIFEST):  # each vouches for the other, and neither for itself
        inventory.add_listed(path, "")
    yield from _unlisted(check, manifest_lists)


def _stamp(check: _Check, path: str) -> Stamp | None:
    """What the file system says of a file before it is read; None, and a problem, when there is no such file."""
    if check.inventory.is_present(path):
        with suppress(OSError):
            return Stamp.of(check.out / path)
    check.problems.append(ReleaseProblem(path, "missing", "is listed and does not lie there"))
    return None


def _unlisted(check: _Check, manifest_lists: bool) -> Iterator[_Job]:
    """Files that the manifest does not list."""
    for path, sha256 in check.inventory.only_in_sums():
        if manifest_lists:
            check.problems.append(ReleaseProblem(path, "manifest", f"is in {SUMS} and not in the manifest"))
        stamp = _stamp(check, path)
        if stamp is not None:
            yield _Job(path, stamp, sha256, None, None, ())
    for path in check.inventory.present_beside():
        check.problems.append(ReleaseProblem(path, "extra", "is not listed"))


def _manifest(check: _Check) -> Iterator[tuple[ReleaseFile, int | None, list[ReleaseFile]]]:
    """The manifest's entries, once its own checksum held; nothing of one that did not is believed."""
    if not check.inventory.is_present(MANIFEST):
        check.problems.append(ReleaseProblem(MANIFEST, "missing", NEEDED))
        return
    path = check.out / MANIFEST
    try:
        found = _hash(path)
    except OSError as error:
        check.problems.append(ReleaseProblem(MANIFEST, "unreadable", str(error.strerror)))
        return
    expected = check.inventory.sums(MANIFEST)
    if expected is None and check.inventory.is_present(SUMS):
        check.problems.append(ReleaseProblem(SUMS, "sums", f"has no line for {MANIFEST}"))
    if expected is not None and found != expected:
        check.problems.append(
            ReleaseProblem(MANIFEST, "checksum", f"does not have the hash that {SUMS} gives")
        )
        return
    try:
        reader = ManifestReader(path)
        check.format = reader.format
        if reader.format > 1:
            check.columns = _columns(check.out)
        try:
            yield from reader.by_file()
        finally:
            reader.close()
    except BadManifest as error:
        check.problems.append(ReleaseProblem(MANIFEST, "manifest", str(error)))


def _columns(out: Path) -> ReleaseColumns:
    """The columns of its tables by the rubric that run.json names; what is wrong with that file is told elsewhere."""
    try:
        return columns_of(orjson.loads(read_inside(out, out / FACTS, _LARGEST_FACTS))["facts"]["frozen"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError):
        return columns_of({})


# --- one file ---------------------------------------------------------------------------------------


def _check_group(check: _Check, group: list[_Job]) -> list[tuple[_Job, str, list[ReleaseProblem]]]:
    results = []
    for job in group:
        try:
            sha256, problems = _check_file(check, job)
        except OSError as error:
            sha256, problems = "", [ReleaseProblem(job.path, "unreadable", str(error.strerror))]
        results.append((job, sha256, problems))
    return results


def _check_file(check: _Check, job: _Job) -> tuple[str, list[ReleaseProblem]]:
    path, entry = check.out / job.path, job.entry
    if entry is not None and job.stamp.size != entry.bytes and (job.sums is None or job.sums == entry.sha256):
        detail = f"has {job.stamp.size:,} bytes, and the manifest says {entry.bytes:,}"
        return "", [ReleaseProblem(job.path, "size", detail)]
    found = _hash(path)
    by_sums = job.sums is None or found == job.sums
    by_manifest = entry is None or found == entry.sha256
    if by_sums and by_manifest:
        if entry is None or entry.role == BESIDE:
            return found, []
        looking = Looking(check.pixels, check.can_read_signatures, check.columns, check.format)
        return found, check_contents(path, entry, job.rows, job.inside, looking)
    if by_manifest and entry is not None:
        return found, [
            ReleaseProblem(SUMS, "sums", f"gives another hash for {job.path} than it has by the manifest")
        ]
    if by_sums and job.sums is not None:
        return found, [ReleaseProblem(MANIFEST, "manifest", f"gives another hash for {job.path} than {SUMS}")]
    return found, [ReleaseProblem(job.path, "checksum", "is not what was released")]


def _hash(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
