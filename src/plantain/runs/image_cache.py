"""A run's images by hash: read when needed, the latest kept in memory up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict

from plantain.journal import JournalReader
from plantain.roles import EncodedImage

MEGABYTES = 64
"""Images in memory: about those of a hundred tasks in flight. Tasks that wait for a batch job keep none."""


class ImageCache:
    """Images of one run. Thread-safe."""

    def __init__(self, reader: JournalReader, megabytes: float = MEGABYTES) -> None:
        self._reader = reader
        self._most = int(megabytes * 1e6)
        self._size = 0
        self._latest: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def image(self, sha256: str) -> EncodedImage:
        """Return the image, whose bytes are read when they are needed."""
        return CachedImage(self, sha256)

    def holds(self, sha256: str) -> bool:
        """Return True if the bytes are in memory."""
        return sha256 in self._latest

    def put(self, sha256: str, data: bytes) -> None:
        """Keep bytes that have just been stored."""
        with self._lock:
            if sha256 not in self._latest:
                self._size += len(data)
            self._latest[sha256] = data
            self._latest.move_to_end(sha256)
            while self._size > self._most:
                self._size -= len(self._latest.popitem(last=False)[1])

    def read(self, sha256: str) -> bytes:
        """Return the bytes, from memory or checked from disk. Raise BadBlob."""
        with self._lock:
            data = self._latest.get(sha256)
            if data is not None:
                self._latest.move_to_end(sha256)
                return data
        data = self._reader.read_blob(sha256)
        self.put(sha256, data)
        return data


class CachedImage(EncodedImage):
    """A stored JPEG whose bytes are read at each access, so that a waiting request does not keep them."""

    __slots__ = ("_cache", "_sha256")
    _cache: ImageCache
    _sha256: str

    def __init__(self, cache: ImageCache, sha256: str) -> None:
        for name, value in (("media_type", "image/jpeg"), ("_cache", cache), ("_sha256", sha256)):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> bytes:
        """The bytes. Raise BadBlob."""
        return self._cache.read(self._sha256)

    def __reduce__(self) -> tuple[type[EncodedImage], tuple[bytes, str]]:
        """Pickle the bytes, without the cache."""
        return EncodedImage, (self.data, self.media_type)
