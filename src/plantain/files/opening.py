"""Files and folders of others: only regular files of bounded size are read, and no link is followed out of a folder.

Every file that is written is a new one, and no planted link is written through.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePath
from typing import BinaryIO
from urllib.parse import quote

from plantain.records import InputError

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_TEXT_BYTES = 16 * 1024 * 1024
"""Largest size of a recipe, a list of findings or another text written by hand."""


def read_regular(path: Path, name: str, most: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file; `name` is its name in messages.

    Raises:
        InputError: it is missing, not readable, not a regular file (a pipe would never end), or larger than `most`.
    """
    with open_regular(path, name, most) as file:
        return file.read(most + 1)


@contextmanager
def open_regular(path: Path, name: str, most: int | None = MAX_FILE_BYTES) -> Iterator[BufferedReader]:
    """Open a regular file of at most `most` bytes (None: any size) for the block, to read its start or stream it.

    Raises:
        InputError: as `read_regular`, also while it is read.
    """
    try:
        # Not blocking: opening a pipe without a writer would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"{name}: not a regular file")
            if most is not None and status.st_size > most:
                raise InputError(f"{name}: {status.st_size >> 20} MB; at most {most >> 20} MB are read")
            yield file
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading without waiting for a pipe's writer. Raise OSError, also if it is a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    return os.fdopen(descriptor, "rb")


def read_inside(root: Path, path: Path, most: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file below `root`, a folder that need not be trusted.

    Raises:
        InputError: as `read_regular`, or a link or ".." in the path leads out of `root`.
    """
    check_inside(root, path)
    return read_regular(path, str(path), most)


def sqlite_uri(path: Path, options: str) -> str:
    """Return the URI with which SQLite opens a file, with options such as "mode=ro"; any path is escaped."""
    return f"file:{quote(os.fsencode(path.absolute()))}?{options}"


def check_inside(root: Path, path: Path) -> None:
    """Check that a path exists and that no link or ".." in it leads out of `root`. Raise InputError otherwise."""
    if not os.path.lexists(path):
        raise InputError(f"{path}: no such file")
    if not is_inside(path, root):
        raise InputError(
            f"{path}: a path or a link that leads out of {root} is not read; copy the file there"
        )


def is_inside(path: Path, root: Path) -> bool:
    """Return True if a path exists and, with links followed, is below `root` or in the hub cache that contains it."""
    try:
        real, home = path.resolve(strict=True), root.resolve(strict=True)
    except (OSError, RuntimeError):
        return False
    return real.is_relative_to(home) or (
        (blobs := _hub_blobs(home)) is not None and real.is_relative_to(blobs)
    )


def _hub_blobs(home: Path) -> Path | None:
    """Return the target of links in a snapshot of Hugging Face's cache: `datasets--x/blobs` for `…/snapshots/y`."""
    for snapshots in home.parents:
        if snapshots.name == "snapshots" and "--" in snapshots.parent.name:
            blobs = snapshots.parent / "blobs"
            return blobs if blobs.is_dir() and not blobs.is_symlink() else None
    return None


def check_received(root: Path, levels: int = 64) -> None:
    """Check that a received folder contains no links that leave it, pipes, sockets or devices.

    Args:
        root: the folder; it may itself be a link.
        levels: depth to which it is searched; code that opens single files checks deeper ones.

    Raises:
        InputError: one was found, or a folder cannot be read.
    """
    waiting = [(root, 1)]
    while waiting:
        folder, level = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            for entry in entries:
                if entry.is_symlink():
                    path = Path(entry.path)
                    if os.path.lexists(path) and not is_inside(path, root):
                        raise InputError(
                            f"{entry.path}: a link that leads out of {root}; nothing was read or written"
                        )
                elif entry.is_dir(follow_symlinks=False):
                    if level < levels:
                        waiting.append((Path(entry.path), level + 1))
                elif not entry.is_file(follow_symlinks=False):
                    raise InputError(
                        f"{entry.path}: neither a file nor a folder; nothing was read or written"
                    )
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error


def read_toml_table(path: Path) -> dict[str, object]:
    """Read and parse a TOML file. Raise InputError if it cannot be read, or is not TOML."""
    data = read_regular(path, str(path), MAX_TEXT_BYTES)
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, nested deeper than Python reads
        raise InputError(f"{path}: is not valid TOML: {' '.join(str(error).split())[:200]}") from None


SYSTEM_NAMES = frozenset(
    {
        *(".ds_store", "__macosx", ".appledouble", ".spotlight-v100", ".trashes", ".fseventsd", "icon\r"),
        *("thumbs.db", "ehthumbs.db", "desktop.ini", "$recycle.bin", "system volume information"),
        *(".cache", ".huggingface", ".gitattributes", ".gitignore", ".git", ".ipynb_checkpoints"),
        *("@eadir", "#recycle", "lost+found", ".directory", ".temporaryitems", ".apdisk", ".gitmodules"),
    }
)
"""Names of files and folders in lower case: of macOS; of Windows; of downloads and tools; of servers and Linux."""

SYSTEM_PREFIXES = ("._", ".~lock.", "~$", ".Trash-", ".nfs", ".fuse_hidden")
"""First letters of AppleDouble files, of the locks of LibreOffice and Office, and of files that Linux has deleted."""


def is_system_file(path: PurePath | str) -> bool:
    """Return True if a part of a relative path is a file of an operating system or tool, e.g. ".DS_Store"."""
    parts = PurePath(path).parts
    named = any(part.lower() in SYSTEM_NAMES or part.startswith(SYSTEM_PREFIXES) for part in parts)
    return named or str(path).endswith(":Zone.Identifier")  # what Windows adds to a download


def files_like(root: Path, pattern: str) -> list[Path]:
    """Return the paths below a folder that a glob pattern matches, sorted, without system files."""
    return sorted(path for path in root.glob(pattern) if not is_system_file(path.relative_to(root)))


def open_folder(root: Path, name: str = "") -> Path:
    """Create `root`, and the folder `name` in it, if they are missing; return the folder's path.

    Raises:
        InputError: a link in `root` leads out of it; `root` itself may be a link.
    """
    root.mkdir(parents=True, exist_ok=True)
    folder = root
    for part in Path(name).parts:
        folder /= part
        if not os.path.lexists(folder):
            folder.mkdir(exist_ok=True)
        check_inside(root, folder)
    return folder


@contextmanager
def create(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a new file for writing; a link, or a file of a killed process, of that name is removed first.

    Raises:
        OSError: writing fails, or another process made a file of this name at the same time.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, mode)
    except FileExistsError:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, flags, mode)
    with os.fdopen(descriptor, "wb") as file:
        yield file


def replace_file(path: Path, data: bytes | Iterable[bytes], mode: int = 0o666) -> None:
    """Replace a file atomically: readers see the old or the new one, also after a power cut. Raise OSError otherwise.

    `mode` is the permission of the new file, reduced by the process's umask.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with create(part, mode) as file:
            file.writelines((data,) if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
