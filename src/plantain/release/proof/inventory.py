"""Bookkeeping of a verification: the files of a release, with their entries in checksums and manifest."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from plantain.files.opening import is_system_file
from plantain.release.plan import CONTROL, ORIGINAL, ReleaseFile

LONGEST_PATH = 1024
"""Longest path in characters; no release has longer ones."""


@dataclass(frozen=True, slots=True, order=True)
class ReleaseProblem:
    """One defect of a release.

    Attributes:
        path: the faulty file, relative to the release; "" for the release as a whole.
        kind: "missing", "extra", "size", "checksum", "sums", "manifest", "path", "link", "unreadable", "rows",
            "schema", "image", "pixels", "signature", "reference", "count", "licence", "record", "against".
        detail: the fault, in a sentence without its subject.
    """

    path: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path or 'release'}: {self.kind}: {self.detail}".replace("\n", "\\n")


@dataclass(slots=True)
class KnownFile:
    """One path of a release.

    Attributes:
        size: size on disk in bytes; None without such a file.
        sums: hash in SHA256SUMS; None if missing there.
        listed: hash in the manifest; None if missing there, "" if the manifest has no valid hash of it.
        whole: True once the file was found to be undamaged.
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
        files: files by path.
        images: (path, role, hash in the journal) of edited images, by task, generation and round; removed as their
            records are found.
        originals: a file with each original, by hash.
        signed: True if the manifest lists an image with a signature.
        problems: problems found so far.
        system: files and folders left by operating systems and downloads, which are ignored.
    """

    files: dict[str, KnownFile] = field(default_factory=dict)
    images: dict[_Attempt, tuple[str, str, str]] = field(default_factory=dict)
    originals: dict[str, str] = field(default_factory=dict)
    signed: bool = False
    problems: list[ReleaseProblem] = field(default_factory=list)
    system: list[str] = field(default_factory=list)

    def add(self, path: str) -> KnownFile:
        """Return the entry of a path; add an empty one if it is new."""
        return self.files.setdefault(path, KnownFile())

    def get(self, path: str) -> KnownFile:
        """Return the entry of a path; an empty one, which is not added, if it is new."""
        return self.files.get(path) or KnownFile()

    def report(self, path: str, kind: str, detail: str) -> None:
        """Record a problem of a file; `kind` and `detail` as in `ReleaseProblem`."""
        self.problems.append(ReleaseProblem(path, kind, detail))

    def add_image(self, entry: ReleaseFile) -> None:
        """Record an entry of the manifest: an edited image or an original."""
        self.signed = self.signed or bool(entry.source_sha256)
        if entry.role == ORIGINAL:
            self.originals.setdefault(entry.sha256, entry.path)
        if entry.is_edit:
            key = (entry.task, entry.generation, entry.round)
            found = (entry.path, entry.role, entry.source_sha256 or entry.sha256)
            known = self.images.setdefault(key, found)
            if known[1:] != found[1:]:
                detail = f"its image of task {entry.task}, round {entry.round}, is another than in {known[0]}"
                self.report(entry.path, "manifest", detail)


def take_stock(out: Path, inventory: Inventory) -> None:
    """Record every regular file below `out`, and report links and special files, without following links.

    A system file that SHA256SUMS names belongs to the release.
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
    """Return why a path named by a release is unsafe to open, e.g. as it leaves the folder; None if it is safe."""
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
