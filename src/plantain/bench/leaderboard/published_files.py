"""Read MedEBench's published JSON files, recognised by content: automated scores of outputs, and ranks by people.

Each number belongs to one sample, model and name. The names are a judge's scores and `masked_ssim`, or the dimensions
of the human study; sample, model and (of ranks) organ are the keys around it, in any of the published nestings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from plantain.files.opening import read_regular
from plantain.records import InputError

MAX_BYTES = 64 * 2**20
FAILED = -1.0
"""The published judge's value for a reply that it could not read."""

RANKED = {"accuracy": "EA", "context": "CP", "quality": "VQ"}
"""Published name of a dimension of the human study -> ours."""

LIMITS = {"masked_ssim": (-1.0, 1.0)} | {
    f"gpt4o_{name}{suffix}": (0.0, 10.0)
    for suffix in ("_detailed", "")
    for name in ("editing_accuracy", "contextual_preservation", "visual_quality")
}
"""Published name of a score -> lowest and highest number."""

COLLECTED = (
    "How the published ranks were collected: the published panel fills each box with an earlier rank or with the "
    "rank by an automated metric (Editing Accuracy, masked SSIM, Visual Quality by the description), the same three "
    "that are then reported as best; images were shown at 128 x 128 in a fixed order of models. The published "
    "correlations (0.79, 0.82, 0.82) and agreement (0.91) may be inflated by this; the files do not show by how much."
)
"""What a reader of correlations with the published ranks must know."""


@dataclass(slots=True)
class PublishedFile:
    """One file.

    Attributes:
        path: the file.
        ranks: True for ranks by people (1 is best), False for automated scores.
        rows: sample -> model -> published name -> number.
        organs: of the samples, as far as the file names them.
    """

    path: Path
    ranks: bool
    rows: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    organs: dict[str, str] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(model for row in self.rows.values() for model in row))


def is_published_file(path: Path) -> bool:
    """Return True if a file's content is in a published form."""
    try:
        data = orjson.loads(read_regular(path, str(path), MAX_BYTES))
    except (InputError, OSError, orjson.JSONDecodeError):
        return False
    return any(name in RANKED or name in LIMITS for keys, _ in _leaves(data, ()) for name in keys)


def read_published(path: Path) -> PublishedFile:
    """Read one file.

    Raises:
        InputError: not JSON or another form; names sample, model and name.
    """
    try:
        data = orjson.loads(read_regular(path, str(path), MAX_BYTES))
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise InputError(f"{path}: scores: expected numbers by sample, model and metric")
    leaves = list(_leaves(data, ()))
    found = PublishedFile(path, any(RANKED.keys() & keys for keys, _ in leaves))
    names = RANKED if found.ranks else LIMITS
    numbers: list[tuple[list[str], str, float]] = []
    for keys, value in leaves:
        around = [key for key in keys if key not in names]
        where = f"{path}: {', '.join(key[:80] for key in keys)}"
        if isinstance(value, bool) or not isinstance(value, int | float) or len(keys) < 3:
            raise InputError(f"{where}: expected numbers by sample, model and metric")
        if len(around) == len(keys) or len(around) > 2 + found.ranks:
            *outer, last = (key[:80] for key in keys)
            raise InputError(f"{path}: sample {', '.join(outer)}: {last}: not one of {', '.join(names)}")
        numbers.append((around, next(key for key in keys if key in names), float(value)))
    if not numbers:
        raise InputError(f"{path}: no scores by sample")
    turned = all(around[-1].isdecimal() and not around[-2].isdecimal() for around, _, _ in numbers)
    for around, name, value in numbers:
        sample, model = reversed(around[-2:]) if turned else around[-2:]
        where = f"{path}: sample {sample[:40]}, {model[:80]}: {name}"
        low, high = (0.0, float("inf")) if found.ranks else LIMITS[name]
        if not low <= value <= high and not (value == FAILED and high == 10.0):
            raise InputError(f"{where}: {value:g} is not from {low:g} to {high:g}")
        if len(around) == 3 and found.organs.setdefault(sample, around[0]) != around[0]:
            raise InputError(f"{where}: the sample is under {found.organs[sample]} and under {around[0]}")
        found.rows.setdefault(sample, {}).setdefault(model, {})[name] = value
    return found


def _leaves(data: object, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(data, dict) and len(keys) < 5:
        for key, value in data.items():
            yield from _leaves(value, (*keys, key))
    elif keys:
        yield keys, data
