"""Train, validation and test: whole groups only, so that no patient and no duplicate stands on both sides."""

from __future__ import annotations

import hashlib
import uuid

SPLITS = ("train", "validation", "test")

_VALIDATION, _TEST = 0.1, 0.1


def split_of(group: str, seed: int) -> str:
    """The split of a group, about 80 : 10 : 10, from a seeded hash of its name alone."""
    digest = hashlib.sha256(f"split\x1f{seed}\x1f{group}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < _TEST:
        return "test"
    return "validation" if place < _TEST + _VALIDATION else "train"


def canary_of(run_id: str) -> str:
    """The GUID that marks the test split of every release of one run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"plantain:test-split:{run_id}"))
