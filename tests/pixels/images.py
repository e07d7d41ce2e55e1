"""Images for tests: small, made from a seed, in every common format."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image


def grey(width: int = 60, height: int = 40, seed: int = 0) -> np.ndarray:
    """Return a smooth uint8 (H, W) image with some noise, so that codecs have something to do."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    wave = 128 + 80 * np.sin(x / 9.0) * np.cos(y / 7.0)
    return np.clip(wave + rng.normal(0, 4, wave.shape), 0, 255).astype(np.uint8)


def colour(width: int = 60, height: int = 40, seed: int = 0) -> np.ndarray:
    """Return a uint8 (H, W, 3) image with unequal channels."""
    return np.dstack([grey(width, height, seed + k) // (k + 1) for k in range(3)])


def save(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def every_format() -> dict[str, bytes]:
    """Return one valid file of each kind that is read."""
    g, c = Image.fromarray(grey()), Image.fromarray(colour())
    alpha = c.copy()
    alpha.putalpha(Image.fromarray(grey(seed=9)))
    deep = Image.fromarray((grey().astype(np.uint16) << 4) | 7)
    return {
        "jpeg grey": save(g, "JPEG"),
        "jpeg colour": save(c, "JPEG", quality=92),
        "jpeg progressive": save(c, "JPEG", progressive=True),
        "jpeg cmyk": save(c.convert("CMYK"), "JPEG"),
        "png grey": save(g, "PNG"),
        "png colour": save(c, "PNG"),
        "png alpha": save(alpha, "PNG"),
        "png palette": save(c.convert("P", palette=Image.Palette.ADAPTIVE), "PNG"),
        "png 16 bit": save(deep, "PNG"),
        "png 1 bit": save(g.convert("1"), "PNG"),
        "gif": save(g, "GIF"),
        "bmp": save(c, "BMP"),
        "tiff": save(c, "TIFF"),
        "tiff lzw": save(c, "TIFF", compression="tiff_lzw"),
        "tiff 16 bit": save(deep, "TIFF"),
        "webp": save(c, "WEBP", lossless=True),
    }


def png_bomb(width: int, height: int) -> bytes:
    """Return a valid PNG header over next to nothing: decoded, it would take three bytes a pixel."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(100_000))), (b"IEND", b""))
    )
