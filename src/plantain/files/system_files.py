"""Files that an operating system, an archiver or a download leaves among others: no command reads them as data."""

from __future__ import annotations

from pathlib import Path, PurePath

NAMES = frozenset(
    {
        *(".ds_store", "__macosx", ".appledouble", ".spotlight-v100", ".trashes", ".fseventsd", "icon\r"),
        *("thumbs.db", "ehthumbs.db", "desktop.ini", "$recycle.bin", "system volume information"),
        *(".cache", ".huggingface", ".gitattributes", ".gitignore", ".git", ".ipynb_checkpoints"),
        *("@eadir", "lost+found", ".directory"),
    }
)
"""Names of files and folders in lower case: of macOS; of Windows; of downloads and tools; of servers and Linux."""

PREFIXES = ("._", ".~lock.", "~$")
"""First letters of AppleDouble files, and of the locks of LibreOffice and Office."""


def is_system_file(path: PurePath | str) -> bool:
    """Return True if a part of a path, relative to the folder that is read, is named like such a file."""
    return any(part.lower() in NAMES or part.startswith(PREFIXES) for part in PurePath(path).parts)


def files_like(root: Path, pattern: str) -> list[Path]:
    """Return the paths below a folder that a glob pattern matches, sorted, without system files."""
    return sorted(path for path in root.glob(pattern) if not is_system_file(path.relative_to(root)))
