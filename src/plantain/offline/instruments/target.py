"""Which of the changed parts are the edit that was asked for, and which are something else."""

from __future__ import annotations

import numpy as np

from plantain.offline.instruments.anatomy import MAP_SIDE, Anatomy
from plantain.offline.instruments.change import FACTOR, Change, ChangedPart
from plantain.offline.instruments.pair import grow
from plantain.offline.instruments.presentation import Presentation, expected_sign
from plantain.records import Direction

ENOUGH = 0.1
"""Where less than this share of the change lies in its place, the finding itself was put elsewhere."""
TOUCHING = 0.15
"""A moved border reaches beyond the structure that it bounds: parts count that lie in it by this share."""
WITH_MARGIN = 1.2
"""A removal takes a focus with its blurred border, and the ground between two that nearly touch."""
GLARING, THIN = 80.0, 4.0
"""Grey levels and half-size pixels of a stroke."""
FRINGE = 72.0
"""Faint islands of a haze lie within this many pixels of a 1024-pixel frame of it: a rib and its gap."""
CLOSE = 18.0
"""A part within this many pixels of a 1024-pixel frame of a single lesion belongs to it."""


def candidates(change: Change) -> tuple[ChangedPart, ...]:
    """Parts where the finding may lie, however strong a change elsewhere is; all parts where next to none lie there."""
    inside = tuple(part for part in change.parts if part.inside >= 0.5)
    total = sum(part.mass for part in change.parts)
    return inside if sum(part.mass for part in inside) >= ENOUGH * total else change.parts


def target_parts(
    change: Change, presentation: Presentation, anatomy: Anatomy, direction: Direction, side: str | None
) -> tuple[ChangedPart, ...]:
    """The parts that are the edit itself.

    Args:
        change: the change map.
        presentation: whether the finding has one part or many.
        anatomy: the judge's map.
        direction: a removal may take several lesions, an addition of a single one may not add more.
        side: the side that the instruction names, or None.
    """
    if presentation.parts == "warp":
        return tuple(part for part in change.parts if part.inside >= TOUCHING and not stroke(part))
    pool = on_side(candidates(change), anatomy, side, change.smooth.shape[1])
    pool = tuple(part for part in pool if not stroke(part)) or pool
    if not pool:
        return ()
    sign = expected_sign(presentation, direction)
    if presentation.pure:
        pool = _mostly(pool, tuple(part for part in pool if part.sign == sign))
    if presentation.pure and direction is Direction.REMOVE:
        pool = _mostly(
            pool, _taken_away(pool, change, presentation, _first_of_each_side(pool, anatomy, side, change))
        )
    # A removal may take several lesions; what takes several is told from a stray by having stood out before.
    if presentation.parts != "single" or (presentation.pure and direction is Direction.REMOVE):
        widest = presentation.focus * anatomy.length * change.smooth.shape[1] / MAP_SIDE
        if direction is Direction.REMOVE:
            widest *= WITH_MARGIN
        return tuple(part for part in pool if part.radius <= widest) or pool[:1]
    first = _first_of_each_side(pool, anatomy, side, change)
    near = grow(change.mask(first), CLOSE * change.smooth.shape[1] * FACTOR / 1024)
    own = set(np.unique(change.labels[near]).tolist())
    own |= {one.label for part in first for one in change.fading_from(part, _fringe(change))}
    return tuple(part for part in change.parts if part.label in own)


def _fringe(change: Change) -> float:
    """How far faint islands may lie, in half-size pixels."""
    return float(FRINGE * change.smooth.shape[1] / 1024)


def stroke(part: ChangedPart) -> bool:
    """Thin and glaring: a letter of a marker, not a finding."""
    return part.peak > GLARING and part.radius < THIN


def _mostly(pool: tuple[ChangedPart, ...], kept: tuple[ChangedPart, ...]) -> tuple[ChangedPart, ...]:
    """The kept ones, unless more was left out than kept."""
    return kept if sum(part.mass for part in kept) >= 0.5 * sum(part.mass for part in pool) else pool


def _taken_away(
    pool: tuple[ChangedPart, ...], change: Change, presentation: Presentation, first: tuple[ChangedPart, ...]
) -> tuple[ChangedPart, ...]:
    """Of a removal: the strongest parts, what fades out from them, what stood out before, and lines that belong."""
    fading = {one.label for part in first for one in change.fading_from(part, _fringe(change))}
    return tuple(
        part
        for part in pool
        if part in first
        or part.label in fading
        or part.relief * part.sign < 0
        or (presentation.lines and part.radius < THIN)
    )


def _first_of_each_side(
    pool: tuple[ChangedPart, ...], anatomy: Anatomy, side: str | None, change: Change
) -> tuple[ChangedPart, ...]:
    """The strongest part, and of a removal on both sides the strongest on either."""
    if anatomy.midline is None or side != "bilateral":
        return pool[:1]
    width = change.smooth.shape[1]
    halves = [[part for part in pool if _on_left(part, anatomy, width) == left] for left in (True, False)]
    return tuple(half[0] for half in halves if half)


def on_side(
    parts: tuple[ChangedPart, ...], anatomy: Anatomy, side: str | None, change_side: int
) -> tuple[ChangedPart, ...]:
    """The parts on the named side, unless next to nothing changed there."""
    if anatomy.midline is None or side not in ("left", "right"):
        return parts
    own = tuple(part for part in parts if _on_left(part, anatomy, change_side) == (side == "left"))
    return own if sum(part.mass for part in own) >= ENOUGH * sum(part.mass for part in parts) else parts


def _on_left(part: ChangedPart, anatomy: Anatomy, change_side: int) -> bool:
    scale = MAP_SIDE / change_side
    return bool(anatomy.off_midline(part.x * scale, part.y * scale) > 0)
