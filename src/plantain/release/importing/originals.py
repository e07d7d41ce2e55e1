"""Originals that rows of pairs share: many edits of one picture follow each other, and it is prepared once for them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from plantain.journal import BlobRef
from plantain.records import Geometry

MOST = 1024
"""Originals that are remembered, those of the last rows."""


@dataclass(frozen=True, slots=True)
class PreparedOriginal:
    """What rows need of an original: how its sides relate, and how it was prepared.

    Attributes:
        ratio: its width over its height.
        synthetic: its file says that it is.
        geometry, reference: where the picture lies in the prepared one, and the prepared one's bytes.
    """

    ratio: float
    synthetic: bool
    geometry: Geometry
    reference: BlobRef


class Originals:
    """The originals of the last rows, by the hash of their bytes and whether they are kept in grey; for threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, bool], PreparedOriginal] = OrderedDict()
        self._lock = Lock()

    def get(self, key: tuple[str, bool], make: Callable[[], PreparedOriginal]) -> PreparedOriginal:
        """The original of these bytes, made where it is not remembered. Raises what `make` does."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        made = make()
        with self._lock:
            self._known[key] = made
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        return made
