"""The file that says how a training went, and which one it was; it comes last, so that its absence says "not done"."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plantain.files.opening import read_inside
from plantain.files.writing import replace_file
from plantain.records import InputError

DONE = "training.json"


def read_finished(path: Path, identity: str) -> dict[str, Any] | None:
    """What a file says of the training of that identity; None when there is no file.

    Raises:
        InputError: it is of another training, or cannot be read.
    """
    if not os.path.lexists(path):
        return None
    data = read_inside(path.parent, path)
    try:
        found = json.loads(data)
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict) or found.get("identity") != identity:
        raise InputError(
            f"{path.parent}: holds another study or another training (other data, base or settings); use another --out "
            "folder"
        )
    return found


def write_json(path: Path, value: object) -> None:
    """Replaces the file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(value, indent=1, ensure_ascii=False).encode())


@dataclass(frozen=True, slots=True)
class Learned:
    """What a finished training learned from: a release or benchmark by name, and its examples, None where not told."""

    folder: Path
    source: str
    examples: frozenset[str] | None


def trainings(folder: Path) -> list[Learned]:
    """Every finished training below a folder. Raises InputError where one does not say what it learned from."""
    found = []
    for path in sorted(folder.rglob(DONE)):
        data = read_inside(folder, path)
        try:
            card = json.loads(data)
            ids = card.get("trained_on")
            examples = None if ids is None else frozenset(map(str, ids))
            found.append(Learned(path.parent, str(card["source"]["name"]), examples))
        except (RecursionError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}: does not say what it learned from ({error})") from error
    return found
