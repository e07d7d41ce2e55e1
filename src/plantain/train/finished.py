"""The file that says how a training went, and which one it was; it comes last, so that its absence says "not done"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plantain.records import InputError

DONE = "training.json"


def read_finished(path: Path, identity: str) -> dict[str, Any] | None:
    """What a file says of the training of that identity; None when there is no file.

    Raises:
        InputError: it is of another training, or cannot be read.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
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
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")
    unfinished.replace(path)
