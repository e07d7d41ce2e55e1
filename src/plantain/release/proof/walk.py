"""Which files really lie in a release: regular files only, and nothing is followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plantain.release.plan import STAGING
from plantain.release.proof.problems import ReleaseProblem

EMPTY = "is an empty folder"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the file system says of a file: equal stamps mean that nobody wrote to it in between."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of a file as it lies there now; nothing is followed."""
        status = path.stat(follow_symlinks=False)
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def walk(out: Path) -> Iterator[tuple[str, int] | ReleaseProblem]:
    """Path below `out` and size of every regular file, and what else lies there and must not; in no order."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        empty = bool(folder)
        try:
            with os.scandir(out / folder) as entries:
                for entry in entries:
                    empty = False
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if path == STAGING:
                        detail = "says that the export did not finish; run it again"
                        yield ReleaseProblem(path, "unfinished", detail)
                    elif not _is_text(path):
                        yield ReleaseProblem(_shown(path), "extra", "has a name that is not UTF-8")
                    elif entry.is_symlink():
                        detail = "is a symbolic link; a release holds files only"
                        yield ReleaseProblem(path, "link", detail)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        yield path, entry.stat(follow_symlinks=False).st_size
                    else:
                        yield ReleaseProblem(path, "extra", "is neither a file nor a folder")
        except OSError as error:
            yield ReleaseProblem(_shown(folder), "unreadable", str(error.strerror))
            continue
        if empty:
            yield ReleaseProblem(_shown(folder), "extra", EMPTY)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()
