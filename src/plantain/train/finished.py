"""The record of a finished training. It is written last: a folder without it is not finished."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from plantain.files.opening import read_inside, replace_file
from plantain.records import InputError

DONE = "training.json"


def read_finished(path: Path, identity: str) -> dict[str, Any] | None:
    """Read the record of a finished training; None if the file is missing.

    Raises:
        InputError: its identity is another than `identity`, or it cannot be read.
    """
    if not os.path.lexists(path):
        return None
    found = _read(path.parent, path)
    if not isinstance(found, dict) or found.get("identity") != identity:
        raise InputError(
            f"{path.parent}: contains another training (other data, base or settings); use another --to folder"
        )
    return found


def write_json(path: Path, value: object) -> None:
    """Write a value to a JSON file atomically; create the file's folder if missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(value, indent=1, ensure_ascii=False).encode())


def trainings(folder: Path) -> list[tuple[Path, str, frozenset[str] | None]]:
    """Return (folder, name of the release or benchmark, ids of the examples) of every finished training below a folder.

    The ids are None if the record does not list them.

    Raises:
        InputError: a record does not name its data.
    """
    found = []
    for path in sorted(folder.rglob(DONE)):
        card = _read(folder, path)
        try:
            ids = card.get("trained_on")
            examples = None if ids is None else frozenset(map(str, ids))
            found.append((path.parent, str(card["source"]["name"]), examples))
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}: does not name the data of its training ({error})") from error
    return found


def _read(folder: Path, path: Path) -> Any:
    try:
        return json.loads(read_inside(folder, path))
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
