"""Pictures that tell nothing but themselves: PNG without metadata, of one size in pixels and in bytes within a case."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import cv2
import numpy as np

from plantain.pixels.arrays import Mask, Pixels

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"
"""A stored deflate block of no bytes: decoders pass over it, and it makes a file five bytes longer."""

_LAST_BLOCK = b"\x03\x00"
STEP = 65536
"""Files of a case are padded to a multiple of it."""

SPARE = 160
"""Bytes of everything but the pixels, and what any difference can be made of."""


def blinded(pictures: Mapping[str, Pixels], size: tuple[int, int]) -> dict[str, bytes]:
    """All pictures of a case as PNG that differ in nothing but their pixels.

    Args:
        pictures: uint8 (H, W, 3) by any key.
        size: (width, height) that all are brought to.

    Returns:
        Files of equal length by key, grey ones only where all are grey.
    """
    fitted = {key: _fitted(pixels, size) for key, pixels in pictures.items()}
    grey = all(bool((p[..., :1] == p).all()) for p in fitted.values())
    rows = {key: _filtered(p[..., 0] if grey else p) for key, p in fitted.items()}
    packed = {key: _packed(data) for key, data in rows.items()}
    length = -(-(max(map(len, packed.values())) + SPARE) // STEP) * STEP
    return {key: _file(packed[key], zlib.adler32(rows[key]), size, grey, length) for key in pictures}


def _fitted(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    if (pixels.shape[1], pixels.shape[0]) == size:
        return pixels
    shrinks = pixels.shape[1] > size[0]
    resized = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
    return np.asarray(resized, np.uint8)


def fitted_mask(mask: Mask, size: tuple[int, int]) -> Mask:
    """A mask at another (width, height), by nearest neighbour."""
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0)


def _filtered(pixels: Pixels) -> bytes:
    """The rows as PNG packs them best: each as its difference to the row above (filter 2)."""
    rows = pixels.reshape(pixels.shape[0], -1)
    above = rows.copy()
    above[1:] -= rows[:-1]
    return np.concatenate([np.full((rows.shape[0], 1), 2, np.uint8), above], axis=1).tobytes()


def _packed(rows: bytes) -> bytes:
    """Raw deflate, ended at a byte, without a last block."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(rows) + packer.flush(zlib.Z_FULL_FLUSH)


def _file(packed: bytes, adler: int, size: tuple[int, int], grey: bool, length: int) -> bytes:
    """The PNG of just that length: empty deflate blocks of 5 bytes and empty chunks of 12 make any difference."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 8, 0 if grey else 2, 0, 0, 0))

    def made(blocks: int, chunks: int) -> bytes:
        data = b"\x78\x9c" + packed + _EMPTY_BLOCK * blocks + _LAST_BLOCK + struct.pack(">I", adler)
        return (
            _SIGNATURE + header + _chunk(b"IDAT", data) + _chunk(b"IDAT", b"") * chunks + _chunk(b"IEND", b"")
        )

    missing = length - len(made(0, 0))
    chunks = next(n for n in range(5) if (missing - 12 * n) % 5 == 0)
    return made((missing - 12 * chunks) // 5, chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
