"""Train, validation and test: whole groups only, so that no patient and no duplicate stands on both sides."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping

SPLITS = ("train", "validation", "test")

_VALIDATION, _TEST = 0.1, 0.1


def split_of(group: str, seed: int) -> str:
    """The split of a group, about 80 : 10 : 10, from a seeded hash of its name alone."""
    digest = hashlib.sha256(f"split\x1f{seed}\x1f{group}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < _TEST:
        return "test"
    return "validation" if place < _TEST + _VALIDATION else "train"


def empty_splits(splits: Mapping[str, int], groups: int) -> str:
    """Says which splits hold no task and why, e.g. "no test split: too few groups (17)"; "" where all hold some.

    They are not filled from others. A group's split hangs on its name alone, so that no later release of the run puts
    a patient into the test split who was in the training split of an earlier one.
    """
    empty = [name for name in SPLITS if not splits.get(name)]
    if not empty:
        return ""
    return f"no {' and no '.join(empty)} split: too few groups ({groups:,})"


def canary_of(run_id: str) -> str:
    """The GUID that marks the test split of every release of one run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"plantain:test-split:{run_id}"))
