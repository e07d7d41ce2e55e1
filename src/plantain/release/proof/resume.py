"""Which files an interrupted `verify` had already found whole, so that it can go on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import orjson

from plantain.records import InputError
from plantain.release.proof.walk import Stamp


class Checked:
    """A file of one line per file that held: path, stamp, hash, how deep it was looked into.

    A file counts as checked only while its size, times and inode are what they were.
    """

    def __init__(self, kept: Path | None, out: Path, depth: str) -> None:
        self._known: dict[str, list[object]] = {}
        self._depth = depth
        self._file: BinaryIO | None = None
        if kept is None:
            return
        if kept.resolve().is_relative_to(out.resolve()):
            raise InputError(f"--resume {kept}: must not lie in the release itself")
        try:
            if kept.exists():
                for line in kept.read_bytes().split(b"\n"):
                    self._read(line)
            self._file = kept.open("ab")
        except OSError as error:
            raise InputError(f"--resume {kept}: {error.strerror}") from error
        self._file.write(b"\n")  # a line that a kill cut short must not swallow the next one

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def has(self, path: str, stamp: Stamp, sha256: str) -> bool:
        """Whether this very file had been found whole."""
        return self._known.get(path) == self._stamped(stamp, sha256)

    def add(self, path: str, stamp: Stamp, sha256: str) -> None:
        if self._file is not None:
            self._file.write(orjson.dumps([path, self._stamped(stamp, sha256)]) + b"\n")
            self._file.flush()

    def _stamped(self, stamp: Stamp, sha256: str) -> list[object]:
        return [stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode, sha256, self._depth]

    def _read(self, line: bytes) -> None:
        try:
            path, stamped = orjson.loads(line)
        except ValueError:
            return  # cut short by a kill: that file is checked again
        self._known[str(path)] = stamped
