"""The name and version of a source, where the person who ingests it states them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plantain.sources.entries import Entry, Found, Reader


@dataclass(frozen=True, slots=True)
class Named:
    """Any reader, whose images carry another dataset or version than it would give them; "" changes nothing."""

    reader: Reader
    dataset: str = ""
    version: str = ""

    def count(self) -> int | None:
        """As the reader counts."""
        return self.reader.count()

    def scan(self) -> Iterator[Found]:
        """As the reader scans, with the name and version that were stated."""
        for item in self.reader.scan():
            if isinstance(item, Entry):
                image = item.image
                image = replace(
                    image, dataset=self.dataset or image.dataset, version=self.version or image.version
                )
                yield replace(item, image=image)
            else:
                yield item
