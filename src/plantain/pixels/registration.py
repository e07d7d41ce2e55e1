"""Lays an edited picture over its original again, to a fraction of a pixel: editors that redraw pictures move them too.

Displacements are measured tile by tile by phase correlation, which neither brightness nor an edit that fills a few
tiles misleads, and are joined to one smooth field: first a polynomial that all tiles vote for, then what neighbours
agree on.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.pixels.arrays import Field, Floats, Image

TILE, STEP = 128, 64
"""Side of a tile and distance of tiles, in pixels of a 1024-pixel frame."""

WORST = 0.5
"""Median displacement in pixels of a 1024-pixel frame that may be left; with more a picture is not registered."""

FEWEST = 0.5
"""Least share of the tiles with structure that must agree on the field."""

AGREES = 1.0
"""A tile agrees where it lies within this many pixels of the field."""

STILL = 0.05
"""Median displacement in pixels up to which nothing was moved: resampling what lies right would only blur it."""

_STRUCTURE, _FAINT = 2.0, 0.7
"""Strength of borders from which a tile says whether two pictures lie on each other, and from which it helps to move
one: thin vessels and lungs have little, and a tile that is unsure weighs little."""

_LOCAL = 2.5
_ROUNDS, _VOTES = 5, 2
"""Rounds of which the first ones only move what all tiles vote for."""


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """An edited picture in the frame of its original.

    Attributes:
        pixels: uint8, of the original's shape.
        residual: median displacement that is left, in pixels of a 1024-pixel frame.
        moved: largest displacement that was taken away, in the same pixels.
        agreed: share of the tiles with structure that agree, in [0, 1].
        why_not: why the two cannot be laid over each other; "" where they can.
    """

    pixels: Image
    residual: float
    moved: float
    agreed: float
    why_not: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Tiles:
    """What tiles say: middles (N, 2) as x, y in pixels, displacements (N, 2), and how sure each is, (N,)."""

    middles: Floats
    moved: Floats
    sure: Floats

    @property
    def lengths(self) -> Floats:
        return np.asarray(np.hypot(*self.moved.T))


def register(original: Image, edited: Image) -> Registered:
    """Moves an edited picture back over its original.

    Args:
        original, edited: uint8 (H, W, 3) or (H, W), of one shape.

    Raises:
        ValueError: the shapes differ.
    """
    if original.shape != edited.shape:
        raise ValueError(f"original {original.shape[:2]} and edited {edited.shape[:2]} differ in size")
    unit = max(original.shape[:2]) / 1024
    fixed, moving = _structure(original), _structure(edited)
    field = np.zeros((*fixed.shape, 2), np.float32)
    tiles = _tiles(fixed, moving, unit)
    if tiles is not None and float(np.median(tiles.lengths)) > STILL:
        field += np.asarray(_whole_shift(fixed, moving), np.float32)
        for number in range(_ROUNDS):
            tiles = _tiles(fixed, _moved(moving, field), unit, _FAINT)
            if tiles is None:
                break
            more = _voted(tiles, fixed.shape)
            if number >= _VOTES:
                more = more + _local(tiles, more, fixed.shape, unit)
            field += more
    left = _tiles(fixed, _moved(moving, field), unit)
    if left is None:
        return Registered(edited, 0.0, 0.0, 0.0, "there is too little structure to compare")
    lengths = left.lengths / unit
    residual, agreed = float(np.median(lengths)), float((lengths <= AGREES).mean())
    why = ""
    if residual > WORST:
        why = f"it cannot be laid over the original: {residual:.2f} pixels are left, at most {WORST:g} may be"
    elif agreed < FEWEST:
        why = f"it cannot be laid over the original: {agreed:.0%} of the tiles agree, at least {FEWEST:.0%} must"
    moved = float(np.abs(field).max()) / unit
    if moved < 0.02:
        return Registered(edited, residual, 0.0, agreed, why)
    ys, xs = np.mgrid[: fixed.shape[0], : fixed.shape[1]].astype(np.float32)
    back = cv2.remap(
        edited, xs + field[..., 0], ys + field[..., 1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return Registered(back, residual, moved, agreed, why)


def whole_shift(original: Image, edited: Image) -> tuple[float, float] | None:
    """How far an edited picture lies to the right of and below its original, as one; None without enough structure.

    Half of the tiles may be edited, or moved otherwise, without a say.

    Args:
        original, edited: uint8 (H, W, 3) or (H, W), of one shape.

    Returns:
        (dx, dy) in pixels.
    """
    fixed, moving = _structure(original), _structure(edited)
    tiles = _tiles(fixed, moving, max(original.shape[:2]) / 1024)
    if tiles is None:
        return None
    dx, dy = (float(value) for value in np.median(tiles.moved, axis=0))
    return dx, dy


def _structure(pixels: Image) -> Field:
    """Borders without brightness, cut where they are strong, so that a bright rim does not decide alone."""
    grey = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    plane = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 1.2)
    fine = plane - cv2.GaussianBlur(plane, (0, 0), 6.0)
    spread = cv2.sqrt(cv2.GaussianBlur(fine * fine, (0, 0), 16.0)) + 1.5
    return np.asarray(fine / spread * np.minimum(spread, 8.0), np.float32)


def _whole_shift(fixed: Field, moving: Field) -> tuple[float, float]:
    """The shift of the whole picture, where it is larger than a tile could tell."""
    window = cv2.createHanningWindow(fixed.shape[::-1], cv2.CV_32F)
    (dx, dy), sure = cv2.phaseCorrelate(fixed, moving, window)
    return (dx, dy) if sure > 0.03 and max(abs(dx), abs(dy)) > 3 else (0.0, 0.0)


def _tiles(fixed: Field, moving: Field, unit: float, least: float = _STRUCTURE) -> _Tiles | None:
    """Displacements of the tiles that have at least this much structure; None where fewer than six have."""
    side, step = max(32, round(TILE * unit)), max(16, round(STEP * unit))
    side = min(side, *fixed.shape)
    window = cv2.createHanningWindow((side, side), cv2.CV_32F)
    rows: list[tuple[float, float, float, float, float]] = []
    for top in range(0, fixed.shape[0] - side + 1, step):
        for left in range(0, fixed.shape[1] - side + 1, step):
            place = np.s_[top : top + side, left : left + side]
            first, second = fixed[place], moving[place]
            if float(first.std()) < least or float(second.std()) < least / 2:
                continue
            (dx, dy), sure = cv2.phaseCorrelate(
                np.ascontiguousarray(first), np.ascontiguousarray(second), window
            )
            rows.append((left + side / 2, top + side / 2, dx, dy, sure))
    if len(rows) < 6:
        return None
    found = np.array(rows)
    return _Tiles(found[:, :2], found[:, 2:4], found[:, 4])


def _voted(tiles: _Tiles, shape: tuple[int, ...]) -> Field:
    """The smooth field that most tiles agree on: a polynomial, tiles far from it weighing less and less."""
    degree = 2 if len(tiles.sure) >= 30 else 1
    terms = _terms(tiles.middles, shape, degree)
    weights = np.clip(tiles.sure, 0.01, 1.0)
    middle = np.median(tiles.moved, axis=0)
    own = weights / (1.0 + (np.hypot(*(tiles.moved - middle).T) / 3.0) ** 2)
    solved = np.zeros((terms.shape[1], 2))
    for _ in range(8):
        ridge = 1e-3 * own.sum() * np.eye(terms.shape[1])
        ridge[0, 0] = 0.0
        solved = np.linalg.solve(
            terms.T @ (own[:, None] * terms) + ridge, terms.T @ (own[:, None] * tiles.moved)
        )
        off = np.hypot(*(tiles.moved - terms @ solved).T)
        scale = max(0.3, 1.5 * float(np.median(off)))
        own = weights / (1.0 + (off / scale) ** 2) ** 2
    coarse = 8
    ys, xs = np.mgrid[0 : shape[0] : coarse, 0 : shape[1] : coarse]
    grid = _terms(np.stack([xs.ravel(), ys.ravel()], 1).astype(np.float64), shape, degree) @ solved
    small = grid.reshape(*xs.shape, 2).astype(np.float32)
    return np.asarray(cv2.resize(small, shape[1::-1], interpolation=cv2.INTER_CUBIC), np.float32)


def _terms(places: Floats, shape: tuple[int, ...], degree: int) -> Floats:
    """Powers of x and y, each in [-1, 1], up to a degree: (N, terms)."""
    x, y = 2 * places[:, 0] / shape[1] - 1, 2 * places[:, 1] / shape[0] - 1
    return np.stack(
        [x**i * y**j for total in range(degree + 1) for i in range(total + 1) for j in (total - i,)], 1
    )


def _local(tiles: _Tiles, voted: Field, shape: tuple[int, ...], unit: float) -> Field:
    """What neighbouring tiles agree on beyond the voted field; at most `_LOCAL` pixels."""
    at = np.clip(np.rint(tiles.middles).astype(int), 0, np.array(shape[1::-1]) - 1)
    beyond = tiles.moved - voted[at[:, 1], at[:, 0]]
    weights = np.clip(tiles.sure, 0.0, 1.0) * (np.hypot(*beyond.T) <= _LOCAL * unit)
    coarse = max(4, round(16 * unit))
    size = (shape[0] // coarse + 1, shape[1] // coarse + 1)
    total, mass = np.zeros((*size, 2), np.float32), np.zeros(size, np.float32)
    cells = (at / coarse).astype(int)
    np.add.at(total, (cells[:, 1], cells[:, 0]), (weights[:, None] * beyond).astype(np.float32))
    np.add.at(mass, (cells[:, 1], cells[:, 0]), weights.astype(np.float32))
    sigma = 0.8 * STEP * unit / coarse
    total, mass = cv2.GaussianBlur(total, (0, 0), sigma), cv2.GaussianBlur(mass, (0, 0), sigma)
    # Where no tile says anything nothing more is moved.
    local = total / (mass + 0.15 * float(mass.max() or 1.0))[..., None]
    return np.asarray(cv2.resize(local, shape[1::-1], interpolation=cv2.INTER_CUBIC), np.float32)


def _moved(plane: Field, field: Field) -> Field:
    ys, xs = np.mgrid[: plane.shape[0], : plane.shape[1]].astype(np.float32)
    return np.asarray(
        cv2.remap(
            plane, xs + field[..., 0], ys + field[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        ),
        np.float32,
    )
