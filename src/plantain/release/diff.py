"""What changed between two releases: tasks, images, files, licences, and what is said of the runs."""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import orjson

from plantain.files.opening import check_received
from plantain.journal import JsonValue
from plantain.privacy.licence_texts import PARTS
from plantain.records import InputError
from plantain.release.proof.manifest import BESIDE, MANIFEST, BadManifest, ManifestReader
from plantain.release.proof.recorded import FACTS, TRAJECTORIES
from plantain.release.task_record import TaskRecord, from_json

NAMED = 10_000
"""Changes of one kind that are named at most; all are counted."""


@dataclass(frozen=True, slots=True)
class ReleaseChange:
    """One thing that is in only one of two releases ("added", "removed"), or in both and different ("changed")."""

    how: str
    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """Everything that differs from release A to release B, each list sorted by name and at most NAMED long.

    Attributes:
        run: fields of run.json, e.g. models, seed, code version.
        licences: parts and their licences.
        tasks: by id; a changed one says which fields.
        images: edited images by task, generation and round; a changed one has other pixels or another role.
        files: data files by path. What stands beside them follows from the rest and is not listed.
        counts: all changes by list and way, e.g. {"tasks": {"added": 3}}.
    """

    run: tuple[ReleaseChange, ...]
    licences: tuple[ReleaseChange, ...]
    tasks: tuple[ReleaseChange, ...]
    images: tuple[ReleaseChange, ...]
    files: tuple[ReleaseChange, ...]
    counts: dict[str, dict[str, int]]

    @property
    def same(self) -> bool:
        return not any(self.counts.values())


class _List:
    """Changes of one kind, counted in full and kept up to NAMED."""

    def __init__(self) -> None:
        self.kept: list[ReleaseChange] = []
        self.counts: Counter[str] = Counter()

    def add(self, change: ReleaseChange) -> None:
        self.counts[change.how] += 1
        if len(self.kept) < NAMED:
            self.kept.append(change)


def diff_releases(a: Path, b: Path) -> ReleaseDifference:
    """Compares two releases by their records; the bytes of images are compared by hash.

    Raises:
        InputError: either is no release, or one of its records cannot be read.
    """
    for out in (a, b):
        check_received(out)
    lists = {name: _List() for name in ("run", "licences", "tasks", "images", "files")}
    for change in _mappings(_facts(a), _facts(b)):
        lists["run"].add(change)
    for change in _mappings(_licences(a), _licences(b)):
        lists["licences"].add(change)
    _tasks(a, b, lists["tasks"])
    _files(a, b, lists["images"], lists["files"])
    return ReleaseDifference(
        **{name: tuple(listed.kept) for name, listed in lists.items()},
        counts={name: dict(sorted(listed.counts.items())) for name, listed in lists.items() if listed.counts},
    )


def _mappings(a: dict[str, JsonValue], b: dict[str, JsonValue]) -> Iterator[ReleaseChange]:
    for name in sorted(a.keys() | b.keys()):
        if name not in b:
            yield ReleaseChange("removed", name, _shown(a[name]))
        elif name not in a:
            yield ReleaseChange("added", name, _shown(b[name]))
        elif a[name] != b[name]:
            yield ReleaseChange("changed", name, f"{_shown(a[name])} -> {_shown(b[name])}")


def _shown(value: JsonValue) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= 200 else f"{text[:200]}..."


def _facts(out: Path) -> dict[str, JsonValue]:
    document = _json(out, FACTS)
    facts = document.get("facts") if isinstance(document, dict) else None
    if not isinstance(facts, dict):
        raise InputError(f"{out / FACTS}: does not hold the facts of a run{_proof(out)}")
    return facts


def _licences(out: Path) -> dict[str, JsonValue]:
    parts = _json(out, PARTS)
    if not isinstance(parts, list) or not all(isinstance(part, dict) and "part" in part for part in parts):
        raise InputError(f"{out / PARTS}: is not a list of parts{_proof(out)}")
    return {str(part["part"]): part for part in parts if isinstance(part, dict)}


def _json(out: Path, path: str) -> JsonValue:
    try:
        value: JsonValue = orjson.loads((out / path).read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{out}: is no release: it holds no {path}") from error
    except (OSError, orjson.JSONDecodeError) as error:
        raise InputError(f"{out / path}: cannot be read: {error}{_proof(out)}") from error
    return value


def _proof(out: Path) -> str:
    """Ends a line about a damaged release: the command that names all that is damaged."""
    return f"; {shlex.join(['plantain', 'verify', str(out)])} names all that is damaged"


# --- tasks ------------------------------------------------------------------------------------------


def _tasks(a: Path, b: Path, changes: _List) -> None:
    """Both lists are in the order of the ids, so they are walked side by side."""
    ours, theirs = _records(a), _records(b)
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.task_id < other.task_id):
            assert one is not None
            changes.add(ReleaseChange("removed", one.task_id, f"{one.key}: {one.state.value}"))
            one = next(ours, None)
        elif one is None or other.task_id < one.task_id:
            changes.add(ReleaseChange("added", other.task_id, f"{other.key}: {other.state.value}"))
            other = next(theirs, None)
        else:
            if one != other:
                changes.add(ReleaseChange("changed", one.task_id, "; ".join(_fields(one, other))))
            one, other = next(ours, None), next(theirs, None)


def _fields(one: TaskRecord, other: TaskRecord) -> Iterator[str]:
    """Which fields of a task differ, with the values of those that are short."""
    for field in dataclasses.fields(TaskRecord):
        before, after = getattr(one, field.name), getattr(other, field.name)
        if before == after:
            continue
        if field.name == "attempts":
            rounds = [f"round {new.round}" for old, new in zip(before, after, strict=False) if old != new]
            if len(before) != len(after):
                rounds.append(f"{len(before)} -> {len(after)} attempts")
            yield "attempts: " + ", ".join(rounds)
        elif field.name == "image":
            names = [
                f.name
                for f in dataclasses.fields(before)
                if getattr(before, f.name) != getattr(after, f.name)
            ]
            yield "image: " + ", ".join(names)
        else:
            yield f"{field.name}: {before} -> {after}"


def _records(out: Path) -> Iterator[TaskRecord]:
    path = out / TRAJECTORIES
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield from_json(line)
                except ValueError as error:
                    raise InputError(f"{path}: line {number}: {error}{_proof(out)}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}{_proof(out)}") from error


# --- images and files -------------------------------------------------------------------------------

_Image = tuple[str, int, int]

Key = TypeVar("Key", str, _Image)


def _files(a: Path, b: Path, images: _List, files: _List) -> None:
    (ours, our_files), (theirs, their_files) = _manifest(a), _manifest(b)
    for name, change in _keyed(ours, theirs):
        task, generation, round = name
        images.add(
            ReleaseChange(
                change, f"task {task}, generation {generation}, round {round}", _image(ours, theirs, name)
            )
        )
    for path, change in _keyed(our_files, their_files):
        files.add(ReleaseChange(change, path))


def _keyed(a: Mapping[Key, object], b: Mapping[Key, object]) -> Iterator[tuple[Key, str]]:
    for key in sorted(a.keys() | b.keys()):
        if a.get(key) != b.get(key):
            yield key, "removed" if key not in b else "added" if key not in a else "changed"


def _image(ours: dict[_Image, tuple[str, str]], theirs: dict[_Image, tuple[str, str]], key: _Image) -> str:
    before, after = ours.get(key), theirs.get(key)
    if before is None or after is None:
        return (before or after or ("", ""))[0]
    changes = [] if before[0] == after[0] else [f"{before[0]} -> {after[0]}"]
    return "; ".join([*changes, *(["other pixels"] if before[1] != after[1] else [])])


def _manifest(out: Path) -> tuple[dict[_Image, tuple[str, str]], dict[str, str]]:
    """Edited images with role and hash of their pixels, and data files with their hash."""
    images: dict[_Image, tuple[str, str]] = {}
    files: dict[str, str] = {}
    path = out / MANIFEST
    if not path.is_file():
        raise InputError(f"{out}: is no release: it holds no {MANIFEST}")
    try:
        reader = ManifestReader(path)
        try:
            for entry, _ in reader:
                if entry.is_edit and entry.task is not None:
                    key = (entry.task, entry.generation or 0, entry.round or 0)
                    images[key] = (entry.role, entry.pixel_sha256 or entry.source_sha256 or entry.sha256)
                if not entry.embedded and entry.role != BESIDE:
                    files[entry.path] = entry.sha256
        finally:
            reader.close()
    except BadManifest as error:
        raise InputError(f"{path}: {error}{_proof(out)}") from error
    return images, files
