"""Reads a release of ours: the records of its tasks, and its images from any layout."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import orjson

from plantain.files.opening import files_like, is_system_file
from plantain.files.parquet import header_of, rows_of_table
from plantain.records import InputError
from plantain.release.layouts.dicom import jpeg_in
from plantain.release.plan import FACTS, TRAJECTORIES
from plantain.release.task_record import TaskRecord, from_json

LARGEST_LINE = 64_000_000
LARGEST_IMAGE = 64_000_000
"""Bytes of one record or image at most: a release comes from outside, and may be anything."""

_IMAGES = ("image", "edited", "mask", "original", "jpg_0", "jpg_1")
"""Columns with images."""


class OurRelease:
    """A release that `plantain export` wrote, or a part of one with its records and facts."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @staticmethod
    def recognised(root: Path) -> bool:
        """Return True if a folder contains records of a release."""
        return (root / TRAJECTORIES).is_file()

    def facts(self) -> dict[str, object]:
        """Return the facts about the run in run.json. Raise InputError if it is missing or damaged."""
        path = self.root / FACTS
        try:
            facts = orjson.loads(path.read_bytes())["facts"]
        except FileNotFoundError as error:
            raise InputError(f"{path}: no such file; every release has it") from error
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(f"{path}: not what plantain writes there ({error!r})") from error
        if not isinstance(facts, dict):
            raise InputError(f"{path}: facts: expected an object")
        return facts

    def records(self) -> Iterator[TaskRecord]:
        """Yield the task records. Raise InputError for one that is unreadable."""
        path = self.root / TRAJECTORIES
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LARGEST_LINE + 1):
                number += 1
                if len(line) > LARGEST_LINE:
                    raise InputError(f"{path}: line {number}: longer than {LARGEST_LINE} bytes")
                try:
                    yield from_json(line)
                except ValueError as error:
                    raise InputError(f"{path}: line {number}: {error}") from error

    def images(self) -> Iterator[tuple[str, bytes]]:
        for path in files_like(self.root, "data/*/*.parquet"):
            # A training table has nothing that the table of successes has not.
            if path.parent.name != "trajectories" and not (
                path.parent.name == "train" and any(self.root.glob("data/success/*.parquet"))
            ):
                yield from _images_of_table(path)
        for path in files_like(self.root, "wds/*.tar"):
            for name, data in _members(path):
                yield f"{path}:{name}", data
        for path in files_like(self.root, "dicom/*/*.dcm"):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST_IMAGE:
                yield str(path), jpeg_in(path.read_bytes(), str(path))[0]
        for folder in files_like(self.root, "*"):
            if folder.is_dir() and not folder.is_symlink() and folder.name not in ("data", "wds"):
                yield from tree_images(folder)


def tree_images(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (path, bytes) of a tree's images, `{dataset}-{task}/{disease}/*.jpeg` and originals, without links."""
    for path in sorted([*files_like(folder, "*/*.jpeg"), *files_like(folder, "*/*.jpg")]):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST_IMAGE:
            yield str(path), path.read_bytes()


def _images_of_table(path: Path) -> Iterator[tuple[str, bytes]]:
    names = [name for name in header_of(path) if name in _IMAGES]
    for row in rows_of_table(path, names):
        for name, cell in row.items():
            data = cell.get("bytes") if isinstance(cell, dict) else cell
            if isinstance(data, bytes):
                yield f"{path}: {name}", data


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(path, "r|") as tar:
            for member in tar:
                if not member.isfile() or not member.name.endswith(".jpg") or is_system_file(member.name):
                    continue
                if member.size > LARGEST_IMAGE:
                    raise InputError(f"{path}: {member.name}: larger than {LARGEST_IMAGE} bytes")
                file = tar.extractfile(member)
                if file is not None:
                    yield member.name, file.read()
    except (tarfile.TarError, OSError) as error:
        raise InputError(f"{path}: not a readable tar file ({error})") from error
