"""Contents of a disk after a power cut, inferred from a trace of a process's system calls.

The model is POSIX at its meanest: bytes count once their file was synced, names once their folder was.
Unsynced writes may survive or not, each page for itself; names that were not synced survive in order or
not at all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CALLS = (
    "open,openat,creat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,"
    "ftruncate"
)
_LINE = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(\w+)(?: resumed>)?\(?(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FILE = re.compile(r"^\d+<((?:\\x[0-9a-f]{2})*)>")


@dataclass(frozen=True)
class Event:
    """One finished system call: its name, the file of its descriptor, its strings, and the raw arguments."""

    name: str
    file: str
    texts: tuple[bytes, ...]
    arguments: str
    result: int


def read_trace(path: Path) -> Iterator[Event]:
    """Events of an `strace -f -y -xx` log in the order in which they finished."""
    started: dict[str, str] = {}
    for line in path.read_text().splitlines():
        match = _LINE.match(line)
        if match is None or line.split(maxsplit=1)[1].startswith(("---", "+++")):
            continue
        thread, name, rest = match.groups()
        if rest.endswith("<unfinished ...>"):
            started[thread] = rest.removesuffix("<unfinished ...>")
            continue
        if " resumed>" in line:
            rest = started.pop(thread) + line.split(" resumed>", 1)[1]
        arguments, _, result = rest.rpartition(" = ")
        number = re.match(r"-?\d+", result)
        if number is None or int(number[0]) < 0:
            continue
        at = _FILE.match(arguments)
        texts = tuple(_bytes(text) for text in _TEXT.findall(arguments))
        yield Event(name, _bytes(at[1]).decode() if at else "", texts, arguments, int(number[0]))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


@dataclass
class _File:
    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes (offset, bytes) and truncations (length, None) since the last sync."""

    def now(self) -> bytes:
        return _apply(self.synced, self.pending)


def _apply(content: bytes, changes: list[tuple[int, bytes | None]]) -> bytes:
    result = bytearray(content)
    for offset, data in changes:
        if data is None:
            del result[offset:]
            result.extend(bytes(offset - len(result)))
        else:
            result.extend(bytes(max(0, offset - len(result))))
            result[offset : offset + len(data)] = data
    return bytes(result)


class Disk:
    """Files and folders below `root` as a process sees them, and as a power cut may leave them."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.seen: dict[str, _File | None] = {}  # None is a folder
        self.durable: dict[str, _File | None] = {}
        self.unsynced: dict[str, list[tuple[str, _File | None, bool]]] = {}  # by folder: name, what, there?

    def play(self, event: Event) -> bool:
        """Apply one event; return True if it concerns this disk."""
        name = event.name
        if name in {"write", "pwrite64"} and event.file in self.seen:
            file = self._file(event.file)
            data = event.texts[-1][: event.result]  # the only quoted string is the buffer
            offset = (
                int(event.arguments.rpartition(",")[2].strip(" )")) if name == "pwrite64" else len(file.now())
            )
            file.pending.append((offset, data))
        elif name in {"fsync", "fdatasync"} and event.file.startswith(self.root):
            self._sync(event.file)
        elif name == "ftruncate" and event.file in self.seen:
            length = int(event.arguments.rpartition(",")[2].strip(" )"))
            self._file(event.file).pending.append((length, None))
        elif name in {"open", "openat", "creat"} and self._ours(event, 0):
            if "O_CREAT" not in event.arguments:
                return False
            path = self._path(event, 0)
            if path not in self.seen:
                self._name(path, _File())
            elif "O_TRUNC" in event.arguments:
                self._file(path).pending.append((0, None))
        elif name in {"mkdir", "mkdirat"} and self._ours(event, 0):
            self._name(self._path(event, 0), None)
        elif name in {"unlink", "unlinkat"} and self._ours(event, 0):
            self._name(self._path(event, 0), self.seen.get(self._path(event, 0)), there=False)
        elif name.startswith("rename") and self._ours(event, 0):
            old, new = self._path(event, 0), self._path(event, 1)
            what = self.seen[old]
            # One step of one folder (the store and SQLite never rename across folders): both or neither.
            self.unsynced.setdefault(str(Path(new).parent), []).append((f"{old}\0{new}", what, True))
            del self.seen[old]
            self.seen[new] = what
        else:
            return False
        return True

    def after_power_cut(self, chance: random.Random | None) -> dict[str, bytes | None]:
        """Paths and contents; None is a folder. Without `chance` nothing unsynced survives."""
        names = dict(self.durable)
        if chance is not None:
            for steps in self.unsynced.values():
                for step in steps[: chance.randint(0, len(steps))]:
                    _step(names, *step)
        left: dict[str, bytes | None] = {}
        for path, file in sorted(names.items()):
            if str(Path(path).parent) != self.root and str(Path(path).parent) not in left:
                continue  # its folder's name was lost
            if file is None:
                left[path] = None
            elif chance is None:
                left[path] = file.synced
            else:
                left[path] = _apply(file.synced, [change for change in file.pending if chance.random() < 0.5])
        return left

    def _sync(self, path: str) -> None:
        if path == self.root or self.seen.get(path, _File()) is None:
            for step in self.unsynced.pop(path, []):
                _step(self.durable, *step)
        elif path in self.seen:
            file = self._file(path)
            file.synced, file.pending = file.now(), []

    def _name(self, path: str, what: _File | None, there: bool = True) -> None:
        self.unsynced.setdefault(str(Path(path).parent), []).append((path, what, there))
        if there:
            self.seen[path] = what
        else:
            self.seen.pop(path, None)

    def _file(self, path: str) -> _File:
        file = self.seen[path]
        assert file is not None
        return file

    def _path(self, event: Event, number: int) -> str:
        return event.texts[number].decode()

    def _ours(self, event: Event, number: int) -> bool:
        path = event.texts[number].decode(errors="replace") if event.texts else ""
        return path.startswith(self.root + "/") and not path.endswith("-shm")


def _step(names: dict[str, _File | None], path: str, what: _File | None, there: bool) -> None:
    old, renamed, new = path.partition("\0")
    if renamed:
        names.pop(old, None)
        names[new] = what
    elif there:
        names[path] = what
    else:
        names.pop(path, None)
