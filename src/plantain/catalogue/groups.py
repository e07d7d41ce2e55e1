"""Which images belong together, so that no split has one patient on both sides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from plantain.records import SourceImage

JOINED = "joined:"
"""Prefix of a group that ingest made of near duplicates; it may span several datasets."""


class DisjointSets:
    """Names joined into disjoint sets (union-find); a set is represented by its smallest name."""

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
        """Join the sets of two names into one."""
        first, second = sorted((self.find(one), self.find(other)))
        self._parent[second] = first


class Groups:
    """Group images by patient or study, equal pixels, and rendering (an image with the one it was drawn on).

    Only recorded relations count; near duplicates must have been recorded before.
    """

    def __init__(self, images: Iterable[SourceImage]) -> None:
        self._sets = DisjointSets()
        self.ungrouped = 0
        for image in images:
            name = _image_name(image.dataset, image.id)
            self.ungrouped += image.group is None and not image.parent
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
        """Return a short name of an image's group that does not reveal its images."""
        return f"group-{hashlib.sha256(self.group(image).encode()).hexdigest()[:12]}"

    def count(self, images: Iterable[SourceImage]) -> int:
        """Return the number of groups of these images."""
        return len({self.group(image) for image in images})


def _image_name(dataset: str, image_id: str) -> str:
    return f"image\x1f{dataset}\x1f{image_id}"
