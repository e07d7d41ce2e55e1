"""Which images belong together, so that no split, whoever makes it, has one patient on both sides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from plantain.records import SourceImage

JOINED = "joined:"
"""Begins the name of a group that ingest made of near duplicates; it may reach over several datasets."""


class Groups:
    """Images joined by patient or study, by equal pixels, and a rendered image with the one it was drawn on.

    What is recorded is joined; resemblance that no source or ingest recorded is not looked for here.
    """

    def __init__(self, images: Iterable[SourceImage]) -> None:
        self._parent: dict[str, str] = {}
        self.ungrouped = 0
        for image in images:
            name = _image_name(image.dataset, image.id)
            self.ungrouped += image.group is None
            if image.group is not None:
                dataset = "" if image.group.startswith(JOINED) else image.dataset
                self._join(name, f"group\x1f{dataset}\x1f{image.group}")
            if image.source_sha256:
                self._join(name, f"source\x1f{image.source_sha256}")
            if image.prepared_sha256:
                self._join(name, f"prepared\x1f{image.prepared_sha256}")
            if image.synthetic and "+" in image.id:
                self._join(name, _image_name(image.dataset, image.id.partition("+")[0]))
            self._find(name)

    def group(self, image: SourceImage) -> str:
        """The smallest name in the image's group: the same whatever order the images came in."""
        return self._find(_image_name(image.dataset, image.id))

    def name(self, image: SourceImage) -> str:
        """The group as a short name that does not say which images are in it."""
        return f"group-{hashlib.sha256(self.group(image).encode()).hexdigest()[:12]}"

    def count(self, images: Iterable[SourceImage]) -> int:
        """How many groups these images belong to."""
        return len({self.group(image) for image in images})

    def _find(self, name: str) -> str:
        root = name
        while (above := self._parent.setdefault(root, root)) != root:
            root = above
        while (above := self._parent[name]) != root:
            self._parent[name] = root
            name = above
        return root

    def _join(self, one: str, other: str) -> None:
        first, second = sorted((self._find(one), self._find(other)))
        self._parent[second] = first


def _image_name(dataset: str, image_id: str) -> str:
    return f"image\x1f{dataset}\x1f{image_id}"
