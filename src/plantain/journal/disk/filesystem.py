"""Where a run may live: SQLite's log needs locks and shared memory that network file systems do not give."""

from __future__ import annotations

from pathlib import Path

from plantain.records import InputError

REFUSED = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "fuse.sshfs"})
"""Types, as in /proc/self/mountinfo, whose locks hang or lie. Cluster file systems with coherent locks
(Lustre, GPFS, BeeGFS, CephFS) are not among them."""

_MOUNTS = Path("/proc/self/mountinfo")


class NetworkFolder(InputError):
    """A run was to be written on a network file system."""


def check_filesystem(run: Path, mounts: Path = _MOUNTS) -> None:
    """Raises NetworkFolder when `run` lies on a network file system; says nothing where that is not known."""
    kind = filesystem_type(run, mounts)
    if kind in REFUSED:
        raise NetworkFolder(
            f"{run} lies on a network file system ({kind}), where a killed run can be lost; "
            "write it to a local disk, and copy it when it is done"
        )


def filesystem_type(folder: Path, mounts: Path = _MOUNTS) -> str:
    """The type of the file system that holds `folder`, e.g. "ext4"; "" off Linux."""
    if not mounts.is_file():
        return ""
    real = folder.resolve()
    best, kind = -1, ""
    for line in mounts.read_text(errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        point = Path(_unescape(before.split()[4]))
        # Later lines are mounted over earlier ones at the same point.
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split()[0]
    return kind


def _unescape(text: str) -> str:
    """The kernel writes space, tab, newline and backslash as octal."""
    for octal, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(octal, plain)
    return text
