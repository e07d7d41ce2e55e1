"""A recipient's own licensed originals put back beside a release, by hash; they never become a part of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plantain.catalogue.store import Catalogue
from plantain.files.opening import check_received
from plantain.files.writing import replace_file
from plantain.journal import BlobStore
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.records import InputError
from plantain.release.importing.reading import OurRelease
from plantain.release.originals import ATTACHED, MEDIA, media_type_of
from plantain.release.plan import ORIGINAL
from plantain.release.proof.manifest import MANIFEST, BadManifest, ManifestReader
from plantain.release.staging import make_folder

NOTE = f"{ATTACHED}/README.txt"
IGNORE = f"{ATTACHED}/.gitignore"

_NOTE = b"""These originals were put here from your own copy of their datasets. They are not part of the release:
SHA256SUMS and the manifest do not list them, and whoever gave you the release did not pass them on. Do not pass this
folder on.
"""


@dataclass(frozen=True, slots=True)
class Attached:
    """What was put back.

    Attributes:
        attached: originals that the release had not, now beside it.
        there: that were in the release or attached already.
        missing: that the catalogue does not have, at least not prepared in the same way.
    """

    attached: int
    there: int
    missing: int


def attach_originals(release: Path, source: Path) -> Attached:
    """Copies the originals that a release names and does not have out of a catalogue, or a run.

    Each is found by the hash of its prepared bytes, so that nothing can be mistaken; doing it again changes nothing.

    Raises:
        InputError: no release, no catalogue, or a picture of it does not hold what was stored.
    """
    check_received(release)
    if not OurRelease.recognised(release):
        raise InputError(f"{release}: is no release of plantain, or has no records of its tasks")
    blobs = _blobs(source)
    held = set(_carried(release))
    wanted = sorted({r.image.prepared_sha256 for r in OurRelease(release).records()} - {""})
    attached = there = 0
    for sha256 in wanted:
        theirs = blobs.path(sha256)  # refuses what is no hash, before anything is named after it
        if sha256 in held or attached_path(release, sha256) is not None:
            there += 1
        elif theirs.is_file():
            _copy(release, blobs, sha256)
            attached += 1
    return Attached(attached, there, len(wanted) - attached - there)


def attached_path(release: Path, sha256: str) -> Path | None:
    """Where an attached original lies; None where it does not."""
    for ending in MEDIA.values():
        path = release / ATTACHED / f"{sha256}.{ending}"
        if path.is_file() and not path.is_symlink():
            return path
    return None


def _blobs(source: Path) -> BlobStore:
    if (source / JOURNAL_NAME).is_file():
        return BlobStore(source / "blobs")
    with Catalogue.open(source) as catalogue:
        return catalogue.blobs


def _carried(release: Path) -> Iterator[str]:
    """Hashes of the originals that the release has itself."""
    if not (release / MANIFEST).is_file():
        return
    try:
        reader = ManifestReader(release / MANIFEST)
        try:
            yield from (entry.sha256 for entry, _ in reader if entry.role == ORIGINAL)
        finally:
            reader.close()
    except BadManifest as error:
        raise InputError(f"{release / MANIFEST}: {error}") from error


def _copy(release: Path, blobs: BlobStore, sha256: str) -> None:
    folder = release / ATTACHED
    if folder.is_symlink():
        raise InputError(f"{folder}: is a symbolic link; nothing is written through it")
    if not (release / NOTE).is_file():
        make_folder(release, folder)
        replace_file(release / NOTE, _NOTE)
        replace_file(release / IGNORE, b"*\n")
    data = blobs.read(sha256)
    replace_file(folder / f"{sha256}.{MEDIA[media_type_of(data)]}", data)
