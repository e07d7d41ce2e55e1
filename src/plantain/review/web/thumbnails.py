"""Thumbnails, made once: stored next to a run's blobs if that folder is writable, else in memory."""

from __future__ import annotations

import io
import os
import threading
from collections import OrderedDict
from collections.abc import Callable

import cv2
from PIL import Image

from plantain.files.opening import read_regular
from plantain.journal.disk.blobs import BlobStore
from plantain.pages.thumbnails import shrink
from plantain.pixels.decode import decode
from plantain.pixels.encode import XMP_PACKET
from plantain.records import InputError

SIDE = 176
QUALITY = 80
KEPT = 4_000
"""Thumbnails in memory, about 5 kB each."""


class Thumbnails:
    """Thumbnails by name; those of a run's blobs are stored next to them."""

    def __init__(self, blobs: BlobStore | None = None) -> None:
        self._blobs = blobs
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._turn = threading.Lock()
        self._decoding = threading.Semaphore(2)

    def of(self, name: str, read: Callable[[], bytes], *, synthetic: bool) -> bytes:
        """Return a JPEG whose longest side is 176 pixels.

        Args:
            name: of the image; the hash of a blob.
            read: returns the image's bytes; called only once.
            synthetic: mark the thumbnail as synthetic, like the image.

        Raises:
            BadBlob, BadImage: as `read` and decoding do.
        """
        with self._turn:
            known = self._kept.get(name)
            if known is not None and (self._blobs is None or self._blobs.path(name).exists()):
                self._kept.move_to_end(name)
                return known
        made = self._stored(name)
        if made is None:
            with self._decoding:
                made = _made(read(), synthetic)
            self._store(name, made)
        with self._turn:
            self._kept[name] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made

    def _stored(self, name: str) -> bytes | None:
        if self._blobs is None or not self._blobs.path(name).exists():
            return None
        path = self._blobs.thumbnail(name)
        try:
            found = read_regular(path, str(path)) if path.exists() else b""
        except InputError:
            return None
        # Written without a sync: after a power cut it may be empty or incomplete.
        return found if found.startswith(b"\xff\xd8") and found.endswith(b"\xff\xd9") else None

    def _store(self, name: str, made: bytes) -> None:
        """Store a thumbnail next to its blob, if that folder is writable."""
        if self._blobs is None or not os.access(self._blobs.root.parent, os.W_OK):
            return
        path = self._blobs.thumbnail(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{name}.{os.getpid()}.{threading.get_ident()}")
            part.write_bytes(made)
            part.replace(path)
        except OSError:
            return
        if not self._blobs.path(name).exists():  # withdrawn meanwhile
            path.unlink(missing_ok=True)


def _made(data: bytes, synthetic: bool) -> bytes:
    pixels = shrink(decode(data), SIDE)
    grey = bool((pixels[..., :1] == pixels).all())
    buffer = io.BytesIO()
    plane = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY) if grey else pixels
    Image.fromarray(plane).save(buffer, "JPEG", quality=QUALITY, xmp=XMP_PACKET if synthetic else b"")
    return buffer.getvalue()
