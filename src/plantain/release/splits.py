"""Train, validation and test splits of whole groups, so that no patient and no duplicate is in two of them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping

SPLITS = ("train", "validation", "test")

_VALIDATION, _TEST = 0.1, 0.1


def split_of(group: str, seed: int) -> str:
    """Return the split of a group, about 80 : 10 : 10, by a seeded hash of its name alone."""
    digest = hashlib.sha256(f"split\x1f{seed}\x1f{group}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < _TEST:
        return "test"
    return "validation" if place < _TEST + _VALIDATION else "train"


def empty_splits(splits: Mapping[str, int], groups: int) -> str:
    """Return a note on splits without tasks, e.g. "no test split: too few groups (17)"; "" if there are none.

    They are not filled from others: a group never changes its split in a later release.
    """
    empty = [name for name in SPLITS if not splits.get(name)]
    return f"no {' and no '.join(empty)} split: too few groups ({groups:,})" if empty else ""


def canary_of(run_id: str) -> str:
    """Return the GUID that marks the test split of every release of a run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"plantain:test-split:{run_id}"))
