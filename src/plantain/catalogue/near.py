"""Near duplicates of a catalogue: found, recorded, and joined into one group, so that no split separates them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plantain.catalogue.groups import JOINED, DisjointSets
from plantain.catalogue.store import Catalogue
from plantain.files.opening import replace_file
from plantain.files.tables import written_csv
from plantain.pixels.likeness import Codes, close_pairs

NEAR = "near_duplicates.csv"
MANY = 20
"""Images with the same code up to which every pair of them is listed."""


@dataclass(frozen=True, slots=True)
class NearPair:
    """Two images that are near duplicates.

    Attributes:
        one, other: their ids, the smaller first.
        bits: number of differing bits of their 256-bit codes; 0 for copies.
        same_group: True if their source has them in one group.
    """

    one: str
    other: str
    bits: int
    same_group: bool


def join_near_duplicates(catalogue: Catalogue) -> list[NearPair]:
    """Find all near duplicates, join the groups of each pair, and return the pairs in order of their ids.

    It starts from the groups that the sources gave, so that the result does not depend on the order of ingests.
    """
    groups = {image_id: (dataset, group) for image_id, dataset, group in catalogue.own_groups()}
    known = catalogue.likenesses()
    if len(known) < 2:
        return []
    codes = np.frombuffer(b"".join(code for _, code in known), np.uint8).reshape(len(known), -1)
    pairs = []
    for first, second, bits in _thinned_pairs(codes):
        one, other = sorted((known[first][0], known[second][0]))
        alike = groups[one] == groups[other] and groups[one][1] is not None
        pairs.append(NearPair(one, other, bits, alike))
    pairs.sort(key=lambda pair: (pair.one, pair.other))
    catalogue.regroup(_joined(groups, [pair for pair in pairs if not pair.same_group]))
    return pairs


def _thinned_pairs(codes: Codes) -> Iterator[tuple[int, int, int]]:
    """Yield close pairs; of many images with the same code, each with the first of them alone.

    A thousand blank images would make half a million pairs.
    """
    _, code_of, times = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    firsts: dict[int, int] = {}
    kept = []
    for place, code in enumerate(code_of.ravel().tolist()):
        first = firsts.setdefault(code, place)
        if first == place or times[code] <= MANY:
            kept.append(place)
        else:
            yield first, place, 0
    for one, other, bits in close_pairs(codes[kept]):
        yield kept[one], kept[other], bits


def write_near_duplicates(path: Path, pairs: list[NearPair]) -> None:
    """Write the pairs as CSV (image, near_duplicate, bits, same_group); without any, remove the file."""
    if not pairs:
        path.unlink(missing_ok=True)
        return
    rows = [(pair.one, pair.other, pair.bits, "yes" if pair.same_group else "no") for pair in pairs]
    replace_file(path, written_csv([("image", "near_duplicate", "bits", "same_group"), *rows]).encode())


def _joined(groups: dict[str, tuple[str, str | None]], pairs: list[NearPair]) -> dict[str, str | None]:
    """Return the group of every image: its own, or the one named after the smallest image that it is joined with."""
    sets = DisjointSets()
    representative: dict[tuple[str, str | None], str] = {}
    for image_id, key in groups.items():
        if key[1] is not None:
            sets.join(representative.setdefault(key, image_id), image_id)
    for pair in pairs:
        sets.join(pair.one, pair.other)
    reached = {sets.find(pair.one) for pair in pairs}
    found: dict[str, str | None] = {}
    for image_id, (_, group) in groups.items():
        root = sets.find(image_id)
        joined = f"{JOINED}{hashlib.sha256(root.encode()).hexdigest()[:16]}"
        found[image_id] = joined if root in reached else group
    return found
