"""Thumbnails of the viewer, made once and kept in memory, so that looking at a run writes nothing into it."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Callable

import cv2
from PIL import Image

from plantain.journal.blobs import BlobStore
from plantain.pages.thumbnails import shrink
from plantain.pixels.decode import decode
from plantain.pixels.encode import XMP_PACKET

SIDE = 176
QUALITY = 80
KEPT = 4_000
"""Thumbnails in memory, about 5 kB each."""


class Thumbnails:
    """Thumbnails by name; one of a run's blob is shown as long as the blob exists."""

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
        with self._decoding:
            made = _made(read(), synthetic)
        with self._turn:
            self._kept[name] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made


def _made(data: bytes, synthetic: bool) -> bytes:
    pixels = shrink(decode(data), SIDE)
    grey = bool((pixels[..., :1] == pixels).all())
    buffer = io.BytesIO()
    plane = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY) if grey else pixels
    Image.fromarray(plane).save(buffer, "JPEG", quality=QUALITY, xmp=XMP_PACKET if synthetic else b"")
    return buffer.getvalue()
