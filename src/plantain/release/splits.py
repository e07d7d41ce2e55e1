"""Train, validation and test splits of whole groups, so that no patient and no duplicate is in two of them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping

SPLITS = ("train", "validation", "test")

_VALIDATION, _TEST = 0.1, 0.1


FEWEST = 10
"""Groups from which on each split has one: a tenth of them is a group."""


def splits_of(groups: Iterable[str], seed: int) -> dict[str, str]:
    """Return the split of each group, about 80 : 10 : 10, by a seeded hash of its name.

    The hash alone decides, so that none changes sides as a run grows. Only where no group of `FEWEST` or more falls to
    test or validation, the one of train with the lowest hash does.
    """
    places = {group: _place(group, seed) for group in groups}
    found = {
        group: "test" if place < _TEST else "validation" if place < _TEST + _VALIDATION else "train"
        for group, place in places.items()
    }
    for name in ("test", "validation"):
        left = [group for group, split in found.items() if split == "train"]
        if len(found) >= FEWEST and len(left) > 1 and name not in found.values():
            found[min(left, key=lambda group: (places[group], group))] = name
    return found


def _place(group: str, seed: int) -> float:
    digest = hashlib.sha256(f"split\x1f{seed}\x1f{group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def empty_splits(splits: Mapping[str, int], groups: int) -> str:
    """Return a note on splits without tasks, e.g. "no test split: too few groups (17)"; "" if there are none."""
    empty = [name for name in SPLITS if not splits.get(name)]
    return f"no {' and no '.join(empty)} split: too few groups ({groups:,})" if empty else ""


def canary_of(run_id: str) -> str:
    """Return the GUID that marks the test split of every release of a run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"plantain:test-split:{run_id}"))
