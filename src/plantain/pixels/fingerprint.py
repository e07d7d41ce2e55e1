"""The hash of a picture's pixels: it survives what a file's hash does not, such as signing or another container."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode


@lru_cache(maxsize=32)
def pixel_sha256(data: bytes) -> str:
    """SHA-256 of the uint8 (H, W, 3) RGB bytes that an encoded image decodes to, row by row. Raises BadImage."""
    return sha256_of_pixels(decode(data))


def sha256_of_pixels(pixels: Pixels) -> str:
    """The same of a picture that is decoded already: uint8 (H, W, 3), RGB."""
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()
