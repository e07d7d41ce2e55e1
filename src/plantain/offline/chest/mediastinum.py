"""Enlarged cardiomediastinum: the upper mediastinum's borders moved outwards or back; spine and trachea stay."""

from __future__ import annotations

import numpy as np

from plantain.offline.chest.canvas import Canvas, blur, coordinates, open_canvas
from plantain.offline.chest.heart import warp
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Mask

_SHARES = ((0.265, 0.28), (0.30, 0.33), (0.35, 0.39))
"""How wide it becomes, in parts of the thorax's width."""
_BOLDNESS = (0.85, 1.0, 1.1)
_MOST_GROWTH = 0.17
USUAL_SHARE = 0.19
"""A healthy upper mediastinum over the thorax's width, as `anatomy` finds it: 0.14 to 0.24 on a dozen films."""
LEAST_SHARE = 0.255
"""From here on it is believed to be wide; a rule of thumb, no society gives a cut-off."""


def upper_share(canvas: Canvas) -> float:
    """Mean width of the mediastinum between apex and hilum, over the thorax's width."""
    rows, _ = _upper_rows(canvas)
    right, left = canvas.chest.right.medial_at(rows), canvas.chest.left.medial_at(rows)
    return float((left - right).mean()) / canvas.chest.thoracic_width


def _upper_rows(canvas: Canvas) -> tuple[np.ndarray, float]:
    """Rows at the height of the aortic knob and the great vessels, and the height of the lungs."""
    top = max(canvas.chest.right.top, canvas.chest.left.top)
    height = min(canvas.chest.right.bottom, canvas.chest.left.bottom) - top
    return np.arange(top + 0.14 * height, top + 0.36 * height), float(height)


def add(scene: Scene) -> Rendering:
    """Widens the upper mediastinum, on the left a little more.

    Raises:
        CannotShow: no lungs, or no lung is left beside it to be covered.
    """
    canvas = open_canvas(scene)
    before = upper_share(canvas)
    growth = canvas.rng.uniform(*_SHARES[canvas.extent()]) - before
    growth = float(np.clip(growth * _BOLDNESS[canvas.conspicuity()], 0.04, _MOST_GROWTH))
    if before + growth > 0.55:
        raise CannotShow(f"the mediastinum already takes {before:.2f} of the thorax: no room to widen it")
    share = canvas.rng.uniform(0.5, 0.62)
    total = growth * canvas.chest.thoracic_width
    drawn, mask = _move(canvas, (1 - share) * total, share * total)
    caveat = "" if scene.image.projection == "PA" else "; not known to be PA, which widens it by itself"
    note = f"upper mediastinum from {before:.2f} to {before + growth:.2f} of the thorax{caveat}"
    return canvas.finish(drawn, mask, "warp", note)


def remove(scene: Scene) -> Rendering:
    """Moves the borders of a wide mediastinum back.

    Raises:
        CannotShow: it is not wide.
    """
    canvas = open_canvas(scene)
    before = upper_share(canvas)
    if before < LEAST_SHARE:
        raise CannotShow(f"no wide mediastinum found: it takes {before:.2f} of the thorax")
    total = (before - USUAL_SHARE) * canvas.chest.thoracic_width
    drawn, mask = _move(canvas, -0.45 * total, -0.55 * total)
    note = f"upper mediastinum from {before:.2f} to {USUAL_SHARE:.2f} of the thorax"
    return canvas.finish(drawn, mask, "warp", note)


def _move(canvas: Canvas, right: float, left: float) -> tuple[Field, Mask]:
    """Moves both borders outwards by so many pixels (inwards when negative) between apex and hilum."""
    chest = canvas.chest
    rows = np.arange(canvas.gray.shape[0], dtype=np.float64)
    upper, height = _upper_rows(canvas)
    rising = np.clip((rows - (upper[0] - 0.13 * height)) / (0.14 * height), 0, 1)
    falling = np.clip((upper[-1] + 0.20 * height - rows) / (0.24 * height), 0, 1)
    share = rising**2 * (3 - 2 * rising) * falling**2 * (3 - 2 * falling)
    _, columns = coordinates(canvas.gray.shape)
    shift = np.zeros(canvas.gray.shape, np.float32)
    for side, outward, amount in (("right", -1.0, right), ("left", 1.0, left)):
        lung = chest.lung(side)
        border = np.maximum((lung.medial_at(rows) - chest.midline) * outward, 24.0)
        wall = np.maximum((lung.wall_at(rows) - chest.midline) * outward, border + 60.0)
        # Spine and trachea, in the inner part, stay; what lies between them and the border is stretched.
        core = 0.42 * border
        given = np.clip(amount * share, -0.75 * (border - core), 0.5 * (wall - border))
        new = border + given
        along = (columns - chest.midline) * outward
        inner = np.clip((along - core[:, None]) / (new - core)[:, None], 0, 1)
        outer = np.clip((border + 0.75 * (wall - border))[:, None] - along, 0, None)
        outer = np.clip(outer / (border + 0.75 * (wall - border) - new)[:, None], 0, 1)
        shift += (outward * inner * outer * given[:, None]).astype(np.float32)
    return warp(canvas, blur(shift, 4.0), down=0.0)


RENDERER = FindingRenderer(add, remove)
