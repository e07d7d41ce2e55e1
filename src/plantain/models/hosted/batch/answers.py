"""Answer files of batch jobs: where each answer lies, read when it is asked for; together they do not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import Fault, read_body


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an answer file."""

    file: Path
    offset: int
    length: int

    def read(self) -> JsonObject:
        """The line's JSON object."""
        with self.file.open("rb") as file:
            file.seek(self.offset)
            return read_body(file.read(self.length))


def index(files: Iterable[Path], key_of: Callable[[JsonObject], str]) -> dict[str, Line]:
    """The line of every request that the files answer, in whatever order; of two for one request, the first.

    Lines that are no JSON object, or name no request, are passed over: their requests are unanswered.
    """
    found: dict[str, Line] = {}
    for path in files:
        offset = 0
        with path.open("rb") as file:
            for raw in file:
                if raw.strip():
                    try:
                        key = key_of(read_body(raw))
                    except Fault:
                        key = ""
                    if key:
                        found.setdefault(key, Line(path, offset, len(raw)))
                offset += len(raw)
    return found
