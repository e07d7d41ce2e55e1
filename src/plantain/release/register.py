"""The register of a run's releases and their images, so that a withdrawal can name the releases concerned."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import orjson

from plantain.files.opening import replace_file
from plantain.records import InputError

REGISTER = "release-register"
"""Folder in the run's: a file for each release. Not in the journal, since an export may run while a build writes."""


def register(run: Path, out: Path, image_ids: Iterable[str]) -> None:
    """Record in a run, before an export, that a release contains these images.

    Args:
        run: folder of the run.
        out: folder of the release.
        image_ids: ids of the images.

    Raises:
        InputError: the register cannot be written.
    """
    path = str(out.resolve())
    listed = run / REGISTER / f"{hashlib.sha256(path.encode(errors='surrogateescape')).hexdigest()[:16]}.json"
    try:
        listed.parent.mkdir(exist_ok=True)
        before = _read(listed)[1] if listed.exists() else set()
        _write(listed, path, {*before, *image_ids})
    except OSError as error:
        raise InputError(
            f"{listed}: cannot be written ({error.strerror}); a run remembers its releases, so that a withdrawal finds "
            "them"
        ) from error


def copy_register(run: Path, to: Path) -> None:
    """Copy a run's register of releases into that of `to`, the run into which it was merged."""
    for _, path, images in _listed(run):
        register(to, Path(path), images)


def releases_with(run: Path, image_ids: Collection[str]) -> list[str]:
    """Return the sorted paths of the releases that contain any of these images; [] without a register."""
    return sorted(path for _, path, images in _listed(run) if not images.isdisjoint(image_ids))


def forget(run: Path, image_ids: Collection[str]) -> None:
    """Remove images from the register of releases permanently."""
    for listed, path, images in _listed(run):
        if not images.isdisjoint(image_ids):
            _write(listed, path, images.difference(image_ids))


def _listed(run: Path) -> Iterator[tuple[Path, str, set[str]]]:
    """Yield the file, the path and the images of every registered release."""
    for listed in sorted((run / REGISTER).glob("*.json")):
        yield listed, *_read(listed)


def _read(listed: Path) -> tuple[str, set[str]]:
    try:
        release = orjson.loads(listed.read_bytes())
        return release["path"], set(release["images"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{listed}: is damaged, so the images of that release are unknown; restore the file, or delete it and "
            "withdraw from that release by hand"
        ) from error


def _write(listed: Path, path: str, images: Collection[str]) -> None:
    replace_file(listed, orjson.dumps({"path": path, "images": sorted(images)}))
