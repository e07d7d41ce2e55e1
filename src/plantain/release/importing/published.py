"""Med-Banana's published tree: images by folder and name, and the conversations where somebody has them.

What a tree does not say stays unknown: no instruction, no verdict, no round is made up. Its name says that an edit
succeeded or failed, and that is all.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from plantain.findings import load_taxonomy
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.records import (
    OK,
    Direction,
    Geometry,
    InputError,
    Licence,
    Outcome,
    OutcomeKind,
    SourceImage,
    TaskKind,
    TaskState,
    task_id,
)
from plantain.release.importing.reading import digest, tree_pictures
from plantain.release.naming import safe
from plantain.release.task_record import AttemptRecord, RecordedPicture, TaskRecord

_FOLDER = re.compile(r"(?P<dataset>.+)-(?P<task>edit|remove)(?P<failed>-failed)?")
_FILE = re.compile(
    r"(?P<stem>.+)-(?P<task>edit|remove)(?:-failed(?:-(?P<round>\d{1,2}))?)?\.jpe?g", re.IGNORECASE
)
_DIRECTION = {"edit": Direction.ADD, "remove": Direction.REMOVE}
_CONVERSATIONS = "all_conversations.json"
_UNKNOWN_SHAPE = Geometry(0, 0, "unknown", 0, 0, 0, 0)

_Key = tuple[str, str, str, Direction]
"""Dataset, image id, disease as in names, direction."""


@dataclass(frozen=True, slots=True)
class _File:
    picture: RecordedPicture
    failed: bool
    round: int | None


class PublishedTree:
    """A folder with `{dataset}-edit` and `{dataset}-remove` in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names = {safe(f.name): f for f in load_taxonomy().findings if not f.normal}

    @staticmethod
    def recognised(root: Path) -> bool:
        """Whether the folder has such a folder in it."""
        return any(_FOLDER.fullmatch(path.name) and path.is_dir() for path in root.iterdir())

    def pictures(self) -> Iterator[tuple[str, bytes]]:
        for folder in self._folders():
            yield from tree_pictures(folder)

    def records(self) -> Iterator[TaskRecord]:
        """Every task in the order of its key. Raises InputError for a file that is no image."""
        files = self._files()
        entries = self._conversations()
        for key in sorted(files.keys() | entries.keys()):
            yield self._record(key, files.get(key, []), entries.get(key, {}))

    def edits(self) -> Iterator[tuple[Path, _Key, bool]]:
        """Every picture with what its name tells, and whether it stands among the failed; none is opened."""
        for folder in self._folders():
            place = _FOLDER.fullmatch(folder.name)
            assert place is not None
            for path in sorted((*folder.glob("*/*.jpeg"), *folder.glob("*/*.jpg"))):
                match = _FILE.fullmatch(path.name)
                if match is None or match["task"] != place["task"]:
                    raise InputError(f"{path}: expected IMAGE-DISEASE-{place['task']}.jpeg")
                image_id, disease = self._parts(path, match["stem"])
                key = (place["dataset"], image_id, disease, _DIRECTION[place["task"]])
                yield path, key, place["failed"] is not None

    def _folders(self) -> list[Path]:
        return [
            path
            for path in sorted(self.root.iterdir())
            if path.is_dir() and not path.is_symlink() and _FOLDER.fullmatch(path.name)
        ]

    def _files(self) -> dict[_Key, list[_File]]:
        found: dict[_Key, list[_File]] = defaultdict(list)
        for folder in self._folders():
            place = _FOLDER.fullmatch(folder.name)
            assert place is not None
            for name, data in tree_pictures(folder):
                path = Path(name)
                match = _FILE.fullmatch(path.name)
                if match is None or match["task"] != place["task"]:
                    raise InputError(f"{path}: expected IMAGE-DISEASE-{place['task']}.jpeg")
                image_id, disease = self._parts(path, match["stem"])
                _check_image(data, name)
                picture = RecordedPicture(digest(data), len(data), "image/jpeg")
                number = None if match["round"] is None else int(match["round"])
                key = (place["dataset"], image_id, disease, _DIRECTION[place["task"]])
                found[key].append(_File(picture, place["failed"] is not None, number))
        return found

    def _parts(self, path: Path, stem: str) -> tuple[str, str]:
        """Image id and disease of a name: by its folder, else by the findings that are known, else by the last dash."""
        for disease in (path.parent.name, *sorted(self._names, key=len, reverse=True)):
            if stem.endswith(f"-{disease}") and len(stem) > len(disease) + 1:
                return stem[: -len(disease) - 1], disease
        image_id, dash, disease = stem.rpartition("-")
        if not (image_id and dash and disease):
            raise InputError(f"{path}: expected IMAGE-DISEASE before the task in the file's name")
        return image_id, disease

    def _conversations(self) -> dict[_Key, Mapping[str, object]]:
        """Entries by task, of the paper's form or of the scripts'."""
        found: dict[_Key, Mapping[str, object]] = {}
        for folder in self._folders():
            path = folder / _CONVERSATIONS
            place = _FOLDER.fullmatch(folder.name)
            if place is None or not path.is_file():
                continue
            try:
                document = orjson.loads(path.read_bytes())
            except orjson.JSONDecodeError as error:
                raise InputError(f"{path}: not JSON ({error})") from error
            entries = list(document.values()) if isinstance(document, dict) else document
            if not isinstance(entries, list):
                raise InputError(f"{path}: expected an object or a list of tasks")
            for number, entry in enumerate(entries):
                if not isinstance(entry, dict) or "disease" not in entry:
                    raise InputError(f"{path}: entry {number}: expected an object with a disease")
                image = Path(str(entry.get("image_id") or entry.get("image") or "")).stem
                disease = str(entry["disease"]).replace(" ", "_")
                found[place["dataset"], image, disease, _DIRECTION[place["task"]]] = entry
        return found

    def _record(self, key: _Key, files: list[_File], entry: Mapping[str, object]) -> TaskRecord:
        dataset, image_id, disease, direction = key
        finding = self._names.get(disease)
        success = next((file for file in files if not file.failed), None)
        status = str(entry.get("outcome") or entry.get("status") or "")
        succeeded = success is not None or status == "success"
        rounds = _rounds(entry)
        last = max((number for number in rounds), default=None)
        round_of_success = last if succeeded else None
        attempts = {
            file.round: _attempt(file.round, file.picture, rounds.get(file.round or 0, {}))
            for file in files
            if file.failed
        }
        if success is not None:
            attempts[round_of_success] = _attempt(
                round_of_success, success.picture, rounds.get(round_of_success or 0, {})
            )
        for number, round_entry in rounds.items():
            attempts.setdefault(number, _attempt(number, None, round_entry))
        tried = [number for number in attempts if number is not None]
        modality = finding.modality if finding else "unknown"
        return TaskRecord(
            task_id=task_id(f"published:{dataset}/{image_id}", 0, disease, direction),
            kind=TaskKind.EDIT,
            finding=finding.name if finding else disease,
            direction=direction,
            modality=modality,
            generation=0,
            state=TaskState.SUCCESS if succeeded else TaskState.FAILED,
            round=round_of_success if succeeded else max(tried, default=None),
            reason="",
            split="",
            canary=None,
            image=_unseen_image(dataset, image_id, modality),
            attempts=tuple(attempts[number] for number in sorted(attempts, key=lambda n: n or 0)),
        )


def _rounds(entry: Mapping[str, object]) -> dict[int, Mapping[str, object]]:
    listed = entry.get("rounds")
    return {
        int(entry["round"]): entry
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, dict) and str(entry.get("round", "")).isdecimal()
    }


def _attempt(
    number: int | None, picture: RecordedPicture | None, entry: Mapping[str, object]
) -> AttemptRecord:
    """One round. A published verdict has three of the four criteria: it is kept as text, not completed by guessing."""
    prompt = entry.get("generate_prompt")
    instruction = entry.get("instruction") or (prompt.get("prompt") if isinstance(prompt, dict) else None)
    verdict = entry.get("verdict") or entry.get("verification")
    text = orjson.dumps(verdict).decode() if isinstance(verdict, dict) else ""
    return AttemptRecord(
        generation=0,
        round=number,
        superseded=False,
        role="",
        instruction=str(instruction) if instruction else None,
        edit_outcome=OK if picture is not None else None,
        edited=picture,
        raw=None,
        mask=None,
        support=None,
        judge_outcome=Outcome(OutcomeKind.OK, text) if picture is not None or text else None,
        verdicts=(),
        scores=(),
    )


def _unseen_image(dataset: str, image_id: str, modality: str) -> SourceImage:
    """The source image as far as a tree tells: its name. Its bytes, labels and licence are unknown."""
    return SourceImage(
        id=image_id,
        dataset=dataset,
        modality=modality,
        labels=(),
        licence=Licence.UNKNOWN,
        source_sha256="",
        prepared_sha256="",
        geometry=_UNKNOWN_SHAPE,
    )


def _check_image(data: bytes, name: str) -> None:
    try:
        decode_untrusted(data, name)
    except BadImage as error:
        raise InputError(str(error)) from error


def tree_id(root: Path) -> str:
    """A name for the imported run that depends on the tree's files alone."""
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*.jp*g"))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
