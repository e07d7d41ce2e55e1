"""Registers an edited image to its original: editors that redraw a whole image also move it by a pixel or two.

Tiles are compared by phase correlation, which neither brightness nor an edit that fills a few tiles misleads. A
cubic displacement field is fitted to them robustly, so that edited tiles do not count.
"""

from __future__ import annotations

import cv2
import numpy as np
from scipy.optimize import least_squares

from plantain.pixels.arrays import Field, Floats, Image

TILE, STEP = 128, 64
"""Side of a tile and distance between tiles, in pixels of a 1024-pixel frame."""

WORST = 0.5
"""Largest median displacement after registration, in pixels of a 1024-pixel frame."""

STILL = 0.05
"""Median displacement in pixels up to which an image is left alone: resampling it would only blur it."""

_FEWEST, _AGREES = 0.5, 1.0
"""Least share of the tiles that must lie within this many pixels of the fitted field."""

_STRUCTURE = 2.0
"""Least standard deviation of a tile's normalised detail."""

_ROUNDS = 3


def register(original: Image, edited: Image) -> tuple[Image, float, str]:
    """Resample an edited image onto its original.

    Args:
        original, edited: uint8 (H, W, 3) or (H, W), of one shape.

    Returns:
        The image, uint8; the median displacement left, in pixels of a 1024-pixel frame; why it cannot be registered
        ("" where it can).

    Raises:
        ValueError: the shapes differ.
    """
    if original.shape != edited.shape:
        raise ValueError(f"original {original.shape[:2]} and edited {edited.shape[:2]} differ in size")
    unit = max(original.shape[:2]) / 1024
    fixed, moving = _structure(original), _structure(edited)
    ys, xs = np.mgrid[: fixed.shape[0], : fixed.shape[1]].astype(np.float32)
    field = np.zeros((*fixed.shape, 2), np.float32)
    tiles = _tiles(fixed, moving, unit)
    if tiles is not None and float(np.median(_lengths(tiles))) > STILL:
        for _ in range(_ROUNDS):
            if tiles is not None:
                field += _fitted(tiles, xs, ys)
                moved = cv2.remap(moving, xs + field[..., 0], ys + field[..., 1], cv2.INTER_LINEAR)
                tiles = _tiles(fixed, np.asarray(moved, np.float32), unit)
        maps = (xs + field[..., 0], ys + field[..., 1])
        edited = np.asarray(cv2.remap(edited, *maps, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE))
    if tiles is None:
        return edited, 0.0, "it has too little structure to be registered to the original"
    lengths = _lengths(tiles) / unit
    residual, agreed = float(np.median(lengths)), float((lengths <= _AGREES).mean())
    if residual <= WORST and agreed >= _FEWEST:
        return edited, residual, ""
    why = f"median displacement {residual:.2f} pixels, at most {WORST:g}; {agreed:.0%} of the tiles agree"
    return edited, residual, f"it cannot be registered to the original: {why}, at least {_FEWEST:.0%}"


def _structure(pixels: Image) -> Field:
    """Fine detail, normalised by its local strength and cut where that is low."""
    grey = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    plane = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 1.2)
    fine = plane - cv2.GaussianBlur(plane, (0, 0), 6.0)
    spread = cv2.sqrt(cv2.GaussianBlur(fine * fine, (0, 0), 16.0)) + 1.5
    return np.asarray(fine / spread * np.minimum(spread, 8.0), np.float32)


def _tiles(fixed: Field, moving: Field, unit: float) -> Floats | None:
    """Return rows (x, y, dx, dy, response) of the tiles with structure, (N, 5); None where fewer than six have."""
    side, step = max(32, round(TILE * unit)), max(16, round(STEP * unit))
    side = min(side, *fixed.shape)
    window = cv2.createHanningWindow((side, side), cv2.CV_32F)
    rows: list[tuple[float, float, float, float, float]] = []
    for top in range(0, fixed.shape[0] - side + 1, step):
        for left in range(0, fixed.shape[1] - side + 1, step):
            place = np.s_[top : top + side, left : left + side]
            first, second = np.ascontiguousarray(fixed[place]), np.ascontiguousarray(moving[place])
            if float(first.std()) < _STRUCTURE or float(second.std()) < _STRUCTURE / 2:
                continue
            (dx, dy), response = cv2.phaseCorrelate(first, second, window)
            rows.append((left + side / 2, top + side / 2, dx, dy, response))
    return np.array(rows) if len(rows) >= 6 else None


def _lengths(tiles: Floats) -> Floats:
    return np.asarray(np.hypot(tiles[:, 2], tiles[:, 3]))


def _fitted(tiles: Floats, xs: Field, ys: Field) -> Field:
    """Fit a polynomial displacement field (H, W, 2) with a loss that edited tiles hardly influence."""
    number = 10 if len(tiles) >= 30 else 3
    terms, weight = _terms(tiles[:, 0], tiles[:, 1], xs.shape, number), np.sqrt(tiles[:, 4:].clip(0.01, 1))

    def apart(solved: Floats) -> Floats:
        return np.asarray((weight * (terms @ solved.reshape(number, 2) - tiles[:, 2:4])).ravel())

    first = np.zeros((number, 2))
    first[0] = np.median(tiles[:, 2:4], axis=0)
    solved = least_squares(apart, first.ravel(), loss="cauchy", f_scale=0.1).x.reshape(number, 2)
    return np.asarray(_terms(xs, ys, xs.shape, number) @ solved, np.float32)


def _terms(x: Floats | Field, y: Floats | Field, shape: tuple[int, ...], number: int) -> Floats:
    """Return the first terms of a cubic polynomial of x and y, each scaled to [-1, 1], as the last axis."""
    x, y = 2 * x / shape[1] - 1, 2 * y / shape[0] - 1
    terms = [x**i * y ** (degree - i) for degree in range(4) for i in range(degree + 1)]
    return np.stack(terms[:number], axis=-1)
