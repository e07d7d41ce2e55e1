"""What can be wrong with a release, as one record that names the file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ReleaseProblem:
    """One thing that does not hold.

    Attributes:
        path: the file concerned, relative to the release; "" for the release as a whole.
        kind: "missing", "extra", "size", "checksum", "sums", "manifest", "path", "link", "unreadable", "unfinished",
            "rows", "schema", "image", "pixels", "signature", "reference", "count", "licence", "record", "against".
        detail: what is wrong, in a sentence without its subject.
    """

    path: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path or 'release'}: {self.kind}: {self.detail}"
