"""Which images belong together, so that no split has one patient on both sides: groups, and near duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from plantain.files.opening import replace_file
from plantain.files.tables import written_csv
from plantain.pixels.likeness import Codes, close_pairs
from plantain.records import SourceImage

if TYPE_CHECKING:
    from plantain.catalogue.store import Catalogue

JOINED = "joined:"
"""Prefix of a group that ingest made of near duplicates; it may span several datasets."""


class DisjointSets:
    """Names joined into sets; each is known by its smallest name, whatever the order of joining."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the smallest name in a name's set."""
        root = name
        while (above := self._parent.setdefault(root, root)) != root:
            root = above
        while (above := self._parent[name]) != root:
            self._parent[name], name = root, above
        return root

    def join(self, one: str, other: str) -> None:
        """Make one set of two."""
        first, second = sorted((self.find(one), self.find(other)))
        self._parent[second] = first


class Groups:
    """Images joined by patient or study, by equal pixels, and a rendered image with the one it was drawn on.

    Only recorded relations count; resemblance that no source or ingest recorded is not searched for.
    """

    def __init__(self, images: Iterable[SourceImage]) -> None:
        self._sets = DisjointSets()
        self.ungrouped = 0
        for image in images:
            name = _image_name(image.dataset, image.id)
            self.ungrouped += image.group is None
            self._sets.find(name)
            if image.group is not None:
                dataset = "" if image.group.startswith(JOINED) else image.dataset
                self._sets.join(name, f"group\x1f{dataset}\x1f{image.group}")
            if image.source_sha256:
                self._sets.join(name, f"source\x1f{image.source_sha256}")
            if image.prepared_sha256:
                self._sets.join(name, f"prepared\x1f{image.prepared_sha256}")
            if image.synthetic and "+" in image.id:
                self._sets.join(name, _image_name(image.dataset, image.id.partition("+")[0]))

    def group(self, image: SourceImage) -> str:
        """Return the smallest name in the image's group."""
        return self._sets.find(_image_name(image.dataset, image.id))

    def name(self, image: SourceImage) -> str:
        """Return the group as a short name that does not reveal its images."""
        return f"group-{hashlib.sha256(self.group(image).encode()).hexdigest()[:12]}"

    def count(self, images: Iterable[SourceImage]) -> int:
        """Return the number of groups of these images."""
        return len({self.group(image) for image in images})


def _image_name(dataset: str, image_id: str) -> str:
    return f"image\x1f{dataset}\x1f{image_id}"


NEAR = "near_duplicates.csv"
MANY = 20
"""Images with the same code up to which every pair of them is listed."""


@dataclass(frozen=True, slots=True)
class NearPair:
    """Two images that look alike.

    Attributes:
        one, other: their ids, the smaller first.
        bits: differing bits of 256; 0 for copies.
        same_group: their source has them in one group.
    """

    one: str
    other: str
    bits: int
    same_group: bool


def join_near_duplicates(catalogue: Catalogue) -> list[NearPair]:
    """Find all near duplicates, join the groups of each pair, and return the pairs in order of their ids.

    Computed from the groups that the sources gave, so that it does not depend on how the catalogue grew.
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
    """Write the pairs as CSV; without any, remove the file."""
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
