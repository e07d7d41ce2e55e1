"""The likeness of images: 256 bits that near duplicates share."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Pixels

LIMIT = 15
"""Most bits in which near duplicates differ; how it was chosen: docs/design/catalogue.md."""

_BLOCK = 16
_BANDS = LIMIT + 1

Codes = npt.NDArray[np.uint8]


def likeness(pixels: Pixels) -> bytes:
    """Return a perceptual hash of 32 bytes: whether each of the 16x16 lowest frequencies exceeds their median.

    Args:
        pixels: uint8 (H, W, 3) or (H, W).
    """
    # Every so many pixels first: averaging a whole radiograph for 64x64 cells would take as long as decoding it.
    step = max(1, min(pixels.shape[:2]) // 512)
    small = cv2.resize(np.ascontiguousarray(pixels[::step, ::step]), (64, 64), interpolation=cv2.INTER_AREA)
    gray = small if small.ndim == 2 else cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    block = cv2.dct(gray.astype(np.float32))[:_BLOCK, :_BLOCK].ravel()
    # The mean grey level does not depend on the content.
    block[0] = 0.0
    return np.packbits(block > np.median(block[1:])).tobytes()


def distances(one: Codes, others: Codes) -> npt.NDArray[np.int64]:
    """Return the number of bits in which a code (32,) differs from each of (N, 32)."""
    found: npt.NDArray[np.int64] = np.bitwise_count(one ^ others).sum(axis=1, dtype=np.int64)
    return found


def close_pairs(codes: Codes) -> Iterator[tuple[int, int, int]]:
    """Yield (first index, second index, bits) for each pair of (N, 32) codes that differ in at most 15 of 256 bits.

    Codes that differ in at most 15 of 256 bits agree in at least one of 16 bands of 16 bits, so only codes that share a
    band are compared; a pair is yielded once, by the first band that it shares.
    """
    bands = np.ascontiguousarray(codes).view(np.uint16).reshape(len(codes), _BANDS)
    for band in range(_BANDS):
        order = np.argsort(bands[:, band], kind="stable")
        _, starts = np.unique(bands[order, band], return_index=True)
        for bucket in np.split(order, starts[1:]):
            for place, first in enumerate(bucket[:-1]):
                rest = bucket[place + 1 :]
                apart = distances(codes[first], codes[rest])
                for at in np.flatnonzero(apart <= LIMIT):
                    second = rest[at]
                    if not (bands[first, :band] == bands[second, :band]).any():
                        yield int(first), int(second), int(apart[at])
