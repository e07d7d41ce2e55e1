"""A run's pictures by their hash: read when they are looked at, the latest kept in memory up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict

from plantain.journal import JournalReader
from plantain.roles import EncodedImage

MEGABYTES = 64
"""Pictures in memory: those of a hundred tasks that are edited now. Thousands that wait for a batch job hold none."""


class ImageCache:
    """Pictures of one run. Thread-safe.

    Args:
        reader: of the run's journal.
        megabytes: most bytes in memory.
    """

    def __init__(self, reader: JournalReader, megabytes: float = MEGABYTES) -> None:
        self._reader = reader
        self._most = int(megabytes * 1e6)
        self._size = 0
        self._latest: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def image(self, sha256: str) -> EncodedImage:
        """The picture, without its bytes until they are asked for."""
        return CachedImage(self, sha256)

    def holds(self, sha256: str) -> bool:
        """Whether the bytes are in memory, so that reading them takes no time."""
        return sha256 in self._latest

    def put(self, sha256: str, data: bytes) -> None:
        """Keeps bytes that have just been stored, for those who look at them next."""
        with self._lock:
            if sha256 not in self._latest:
                self._size += len(data)
            self._latest[sha256] = data
            self._latest.move_to_end(sha256)
            while self._size > self._most:
                self._size -= len(self._latest.popitem(last=False)[1])

    def read(self, sha256: str) -> bytes:
        """The bytes, from memory or checked from disk. Raises BadBlob."""
        with self._lock:
            data = self._latest.get(sha256)
            if data is not None:
                self._latest.move_to_end(sha256)
                return data
        data = self._reader.read_blob(sha256)
        self.put(sha256, data)
        return data


class CachedImage(EncodedImage):
    """A stored JPEG whose bytes are read anew whenever they are asked for: a request that waits does not hold them."""

    __slots__ = ("_pictures", "_sha256")
    _pictures: ImageCache
    _sha256: str

    def __init__(self, pictures: ImageCache, sha256: str) -> None:
        for name, value in (("media_type", "image/jpeg"), ("_pictures", pictures), ("_sha256", sha256)):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> bytes:
        """The bytes. Raises BadBlob."""
        return self._pictures.read(self._sha256)

    def __reduce__(self) -> tuple[type[EncodedImage], tuple[bytes, str]]:
        """To another process go the bytes: the cache stays here."""
        return EncodedImage, (self.data, self.media_type)
