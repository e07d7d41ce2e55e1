"""Train, validation and test: whole groups only, so that no patient and no duplicate stands on both sides."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable

from plantain.records import SourceImage

SPLITS = ("train", "validation", "test")

_VALIDATION, _TEST = 0.1, 0.1


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
                # A group that ingest joined for near duplicates may reach over several datasets.
                dataset = "" if image.group.startswith("joined:") else image.dataset
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


def _image_name(dataset: str, image_id: str) -> str:
    return f"image\x1f{dataset}\x1f{image_id}"
