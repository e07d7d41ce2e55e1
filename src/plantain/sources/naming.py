"""What the person who ingests a source states of all its images: name, version, consent of their owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plantain.records import Consent
from plantain.sources.entries import Found, Reader, SourceEntry


@dataclass(frozen=True, slots=True)
class NamingReader:
    """Any reader, whose images carry what was stated; "" and None change nothing."""

    reader: Reader
    dataset: str = ""
    version: str = ""
    consent: Consent | None = None

    def count(self) -> int | None:
        """As the reader counts."""
        return self.reader.count()

    def scan(self) -> Iterator[Found]:
        """As the reader scans, with what was stated."""
        for item in self.reader.scan():
            if isinstance(item, SourceEntry):
                image = item.image
                image = replace(
                    image,
                    dataset=self.dataset or image.dataset,
                    version=self.version or image.version,
                    consent=self.consent or image.consent,
                )
                yield replace(item, image=image)
            else:
                yield item
