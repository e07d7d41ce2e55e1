"""Med-Banana's published tree: images by folder and name, with their conversations where they are there.

Anything else stays unknown: no instruction, verdict or round is made up. A path only states that an edit succeeded or
failed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import orjson

from plantain.files.opening import files_like, is_system_file
from plantain.findings import load_taxonomy
from plantain.journal import BlobRef
from plantain.journal.verdicts import PUBLISHED
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.privacy.permission import sha256_of
from plantain.records import (
    OK,
    Direction,
    Geometry,
    InputError,
    Licence,
    Outcome,
    OutcomeKind,
    SourceImage,
    TaskState,
    task_id,
)
from plantain.records.messages import fold
from plantain.release.importing.reading import LARGEST_IMAGE
from plantain.release.naming import safe
from plantain.release.task_record import AttemptRecord, ScoreRecord, TaskRecord

_FOLDER = re.compile(r"(?P<dataset>.+)-(?P<task>edit|remove)(?P<failed>-failed)?")
_FILE = re.compile(
    r"(?P<stem>.+)-(?P<task>edit|remove)(?:-failed(?:-(?P<round>\d{1,2}))?)?\.jpe?g", re.IGNORECASE
)
_VERDICT = ("has_disease", "structure_reasonable", "looks_realistic", "qualified", "reason")
_DIRECTION = {"edit": Direction.ADD, "remove": Direction.REMOVE}


class TreeKey(NamedTuple):
    """The key of a task in a published tree: dataset, image and disease, as paths name them."""

    dataset: str
    image_id: str
    disease: str
    direction: Direction


class TreeImage(NamedTuple):
    """One edited image of a published tree, described by the parts of its path.

    Attributes:
        path: the path, relative to the tree.
        key: the task.
        failed: True if the path marks it as a failed attempt.
        round: the round; None if the name has none.
    """

    path: str
    key: TreeKey
    failed: bool
    round: int | None


class PublishedTree:
    """Med-Banana's published tree: a folder with `{dataset}-edit` and `{dataset}-remove`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names = {safe(f.name): f for f in load_taxonomy().findings if not f.normal}
        self._alike = {fold(name): name for name in self._names}
        self._image = cache(_read_image)  # records are read three times, and decoding is most of the time

    @staticmethod
    def recognised(root: Path) -> bool:
        """Return True if a folder contains a folder named as in a published Med-Banana tree."""
        return any(_FOLDER.fullmatch(path.name) and path.is_dir() for path in root.iterdir())

    def images(self) -> Iterator[tuple[str, bytes]]:
        """Yield (path, bytes) of every image."""
        for image in self.edits():
            yield image.path, Path(image.path).read_bytes()

    def edits(self) -> Iterator[TreeImage]:
        """Yield the tree's edited images, identified by their paths and not opened; links and large files are skipped.

        Raises:
            InputError: a name is not IMAGE-DISEASE-TASK[-failed[-ROUND]].jpeg.
        """
        for folder, place in self._folders():
            for finding, name in _images_below(folder):
                path = f"{finding}/{name}"
                match = _FILE.fullmatch(name)
                if match is None or match["task"] != place["task"]:
                    raise InputError(f"{path}: expected IMAGE-DISEASE-{place['task']}.jpeg")
                image_id, disease = self._parts(path, finding.name, match["stem"])
                key = TreeKey(place["dataset"], image_id, self._spelt(disease), _DIRECTION[place["task"]])
                number = None if match["round"] is None else int(match["round"])
                yield TreeImage(path, key, place["failed"] is not None, number)

    def records(self) -> Iterator[TaskRecord]:
        """Yield the record of every task, sorted by key. Raise InputError for a file that is not an image."""
        found: dict[TreeKey, list[TreeImage]] = defaultdict(list)
        for image in self.edits():
            found[image.key].append(image)
        entries = self._conversations()
        for key in sorted(found.keys() | entries.keys()):
            entry = orjson.loads(entries[key]) if key in entries else {}
            yield self._record(key, found.get(key, []), entry)

    def _folders(self) -> Iterator[tuple[Path, re.Match[str]]]:
        for path in sorted(self.root.iterdir()):
            place = _FOLDER.fullmatch(path.name)
            if place is not None and path.is_dir() and not path.is_symlink():
                yield path, place

    def _parts(self, path: str, folder: str, stem: str) -> tuple[str, str]:
        """Return image id and disease: by the folder, else by the known findings, else by the last dash."""
        for disease in (folder, *sorted(self._names, key=len, reverse=True)):
            if stem.endswith(f"-{disease}") and len(stem) > len(disease) + 1:
                return stem[: -len(disease) - 1], disease
        image_id, dash, disease = stem.rpartition("-")
        if not (image_id and dash and disease):
            raise InputError(f"{path}: expected IMAGE-DISEASE before the task in the file's name")
        return image_id, disease

    def _spelt(self, disease: str) -> str:
        """Return a disease as trees name it, so that "pleural effusion" in JSON finds Pleural_Effusion."""
        return self._alike.get(fold(disease), disease.replace(" ", "_"))

    def _conversations(self) -> dict[TreeKey, bytes]:
        """Return the entry of each task as JSON, in the paper's form or the scripts'."""
        found: dict[TreeKey, bytes] = {}
        for folder, place in self._folders():
            path = folder / "all_conversations.json"
            if not path.is_file():
                continue
            for number, entry in enumerate(_entries(path)):
                if not isinstance(entry, dict) or "disease" not in entry:
                    raise InputError(f"{path}: entry {number}: expected an object with a disease")
                image = Path(str(entry.get("image_id") or entry.get("image") or "")).stem
                disease = self._spelt(str(entry["disease"]))
                key = TreeKey(place["dataset"], image, disease, _DIRECTION[place["task"]])
                found[key] = orjson.dumps(entry)
        return found

    def _record(self, key: TreeKey, images: list[TreeImage], entry: Mapping[str, object]) -> TaskRecord:
        finding = self._names.get(key.disease)
        success = next((image for image in images if not image.failed), None)
        status = str(entry.get("outcome") or entry.get("status") or "")
        succeeded = success is not None or status == "success"
        rounds = _rounds(entry)
        last = max(rounds, default=None) if succeeded else None
        by_round = {image.round: image for image in images if image.failed}
        if success is not None:
            by_round[last] = success
        numbers = sorted({*by_round, *rounds}, key=lambda number: number or 0)
        modality = finding.modality if finding else "unknown"
        return TaskRecord(
            task_id=task_id(f"published:{key.dataset}/{key.image_id}", 0, key.disease, key.direction),
            finding=finding.name if finding else key.disease,
            direction=key.direction,
            modality=modality,
            generation=0,
            state=TaskState.SUCCESS if succeeded else TaskState.FAILED,
            round=last if succeeded else max((n for n in numbers if n is not None), default=None),
            reason="",
            split="",
            image=SourceImage(
                id=key.image_id,
                dataset=key.dataset,
                modality=modality,
                labels=(),
                licence=Licence.UNKNOWN,
                source_sha256="",
                prepared_sha256="",
                geometry=Geometry(0, 0, "unknown", 0, 0, 0, 0),
            ),
            attempts=tuple(self._attempt(n, by_round.get(n), rounds.get(n or 0, {})) for n in numbers),
        )

    def _attempt(
        self, number: int | None, image: TreeImage | None, entry: Mapping[str, object]
    ) -> AttemptRecord:
        """Return one round. A published verdict has three of the four criteria: it is kept as text and as a score."""
        prompt = entry.get("generate_prompt")
        instruction = entry.get("instruction") or (prompt.get("prompt") if isinstance(prompt, dict) else None)
        verdict = entry.get("verdict") or entry.get("verification")
        text = orjson.dumps(verdict).decode() if isinstance(verdict, dict) else ""
        edited = None if image is None else self._image(image.path)
        return AttemptRecord(
            generation=0,
            round=number,
            superseded=False,
            role="",
            instruction=str(instruction) if instruction else None,
            edit_outcome=OK if edited is not None else None,
            edited=edited,
            mask=None,
            support=None,
            judge_outcome=Outcome(OutcomeKind.OK, text) if edited is not None or text else None,
            verdicts=(),
            scores=_published(verdict) if isinstance(verdict, dict) else (),
        )


def _images_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the finding's folder and the name of every image; links and files that are too large are ignored."""
    for finding in files_like(folder, "*"):
        if finding.is_dir():
            names = [
                entry.name
                for entry in os.scandir(finding)
                if entry.name.endswith((".jpeg", ".jpg"))
                and not is_system_file(entry.name)
                and entry.is_file(follow_symlinks=False)
                and entry.stat().st_size <= LARGEST_IMAGE
            ]
            for name in sorted(names):
                yield finding, name


def _entries(path: Path) -> list[object]:
    """Return the tasks in a file of conversations: a list, or an object of them. Raise InputError for other content."""
    try:
        document = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if not isinstance(document, list | dict):
        raise InputError(f"{path}: expected an object or a list of tasks")
    return list(document.values() if isinstance(document, dict) else document)


def _rounds(entry: Mapping[str, object]) -> dict[int, Mapping[str, object]]:
    listed = entry.get("rounds")
    return {
        int(entry["round"]): entry
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, dict) and str(entry.get("round", "")).isdecimal()
    }


def _published(verdict: Mapping[str, object]) -> tuple[ScoreRecord, ...]:
    """Return a published verdict as the score that keeps its booleans and reason."""
    detail = {name: verdict[name] for name in _VERDICT if isinstance(verdict.get(name), bool | str)}
    decided = verdict.get("qualified")
    value = float(decided) if isinstance(decided, bool) else None
    return (ScoreRecord(PUBLISHED, value, "" if value is not None else "no decision was published", detail),)


def _read_image(path: str) -> BlobRef:
    data = Path(path).read_bytes()
    try:
        decode_untrusted(data, path)
    except BadImage as error:
        raise InputError(str(error)) from error
    return BlobRef(sha256_of(data), len(data), "image/jpeg")


def tree_id(root: Path) -> str:
    """Return an id for the imported run, 16 hex digits, that depends only on the tree's file names."""
    names = sorted(str(path.relative_to(root)) for path in files_like(root, "**/*.jp*g"))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
