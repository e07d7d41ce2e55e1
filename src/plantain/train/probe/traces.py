"""Traces that an editor leaves in a picture beside what it meant to draw: grain, spectrum, blocks, rounding."""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Floats, Mask, Pixels

BANDS = 12
TILE = 64
LEAST_TILES = 8
"""Tiles without a change below which nothing is measured outside the edit."""

CHANGED = 2.0
"""Grey levels, smoothed, above which a place counts as edited."""


def traces(pixels: Pixels, where: Mask) -> Floats:
    """Numbers that say how a picture was made and little of what it shows.

    Per band of frequency the mean logarithm of the power of windowed tiles; spread and kurtosis of the finest detail;
    steps at every eighth pixel against the others; shares of even levels and of colour.

    Args:
        pixels: uint8 (H, W, 3).
        where: bool (H, W); tiles of `TILE` pixels that lie in it wholly are measured.

    Returns:
        (BANDS + 6,).
    """
    gray = pixels.astype(np.float32).mean(axis=2)
    tiles, flat = _tiles(gray, where)
    window = np.outer(np.hanning(TILE), np.hanning(TILE))
    power = np.abs(np.fft.rfft2((tiles - tiles.mean(axis=(1, 2), keepdims=True)) * window)) ** 2
    bands = [float(np.log(power[:, ring].mean(axis=1) + 1.0).mean()) for ring in _rings()]
    fine = tiles - np.stack([cv2.GaussianBlur(tile, (0, 0), 1.0) for tile in tiles])
    spread = float(np.median(fine.std(axis=(1, 2))))
    kurtosis = float(np.median((fine**4).mean(axis=(1, 2)) / np.maximum(fine.var(axis=(1, 2)), 1e-3) ** 2))
    across, down = _steps(gray, where, 1), _steps(gray, where, 0)
    even = float((pixels[..., 1][where] % 2 == 0).mean())
    colour = float(np.ptp(pixels[where].astype(np.int16), axis=1).mean())
    return np.array([*bands, np.log(spread + 1e-2), np.log(kurtosis), across, down, even + flat, colour])


def untouched(before: Pixels, after: Pixels) -> Mask:
    """Where an edit and its original hardly differ once smoothed, so that grain does not count; bool (H, W)."""
    apart = (before.astype(np.float32) - after).mean(axis=2)
    near = np.abs(cv2.GaussianBlur(apart, (0, 0), 3.0)) < CHANGED
    return np.asarray(cv2.erode(near.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0)


def tile_count(where: Mask) -> int:
    """Whole tiles in a mask."""
    return int(_whole(where).sum())


def _tiles(gray: npt.NDArray[np.float32], where: Mask) -> tuple[npt.NDArray[np.float32], float]:
    """Tiles inside `where` that show something, (N, TILE, TILE), and the share of it that is flat."""
    rows, columns = (size // TILE * TILE for size in gray.shape)
    cut = gray[:rows, :columns].reshape(rows // TILE, TILE, columns // TILE, TILE).swapaxes(1, 2)
    kept = cut[_whole(where)]
    lit = kept[kept.std(axis=(1, 2)) > 1.0]
    return (lit if len(lit) else kept), 1.0 - len(lit) / max(len(kept), 1)


def _whole(where: Mask) -> npt.NDArray[np.bool_]:
    rows, columns = (size // TILE * TILE for size in where.shape)
    cut = where[:rows, :columns].reshape(rows // TILE, TILE, columns // TILE, TILE)
    return np.asarray(cut.all(axis=(1, 3)))


def _rings() -> list[npt.NDArray[np.bool_]]:
    radius = np.hypot(np.fft.fftfreq(TILE)[:, None], np.fft.rfftfreq(TILE)[None, :])
    edges = np.linspace(0.02, 0.5, BANDS + 1)
    return [(radius >= low) & (radius < high) for low, high in pairwise(edges)]


def _steps(gray: npt.NDArray[np.float32], where: Mask, axis: int) -> float:
    """Logarithm of the mean step at every eighth pixel over that elsewhere."""
    step = np.abs(np.diff(gray, axis=axis))
    inside = where[:, 1:] if axis else where[1:]
    at = (
        (np.arange(step.shape[axis]) % 8 == 7)[None, :]
        if axis
        else (np.arange(step.shape[axis]) % 8 == 7)[:, None]
    )
    on, off = step[inside & at], step[inside & ~at]
    return float(np.log((on.mean() + 0.05) / (off.mean() + 0.05))) if on.size and off.size else 0.0
