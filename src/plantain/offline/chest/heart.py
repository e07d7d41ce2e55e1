"""Cardiomegaly and a wide mediastinum: borders moved by a smooth warp, grain left where it is.

The warp moves rows sideways only (and the apex of the heart a little down), so that ribs bend no more than they must;
it fades out before the chest wall and above the hila.
"""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.chest.canvas import Canvas, blur, coordinates, open_canvas
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Floats, Mask

_RATIO = ((0.525, 0.55), (0.57, 0.60), (0.63, 0.67))
NORMAL_RATIO = 0.46
_LEAST_GROWTH = 0.05
"""Less than that is not seen in a pale film."""


def _refuse_projection(canvas: Canvas) -> str:
    image = canvas.scene.image
    if image.projection == "AP" or canvas.supine:
        raise CannotShow("the heart's size cannot be claimed on an AP or supine film: both magnify it")
    return "" if image.projection == "PA" else "; projection unknown, PA assumed"


def add(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    words = _refuse_projection(canvas)
    chest = canvas.chest
    ratio = chest.cardiothoracic_ratio
    target = float(canvas.rng.uniform(*_RATIO[canvas.extent()]))
    target = max(target, ratio + _LEAST_GROWTH)
    if target > 0.76:
        raise CannotShow(f"the heart already takes {ratio:.2f} of the thorax: no room to enlarge it")
    grow = (target - ratio) * chest.thoracic_width
    left = 0.78 + canvas.rng.uniform(-0.08, 0.08)
    drawn, mask, reached = _move_heart(canvas, (1 - left) * grow, left * grow)
    if reached < 0.51:
        raise CannotShow(f"the heart has no room to be wider than half of the thorax ({reached:.2f} at most)")
    note = f"heart from {ratio:.2f} to {reached:.2f} of the thorax, left border most{words}"
    return canvas.finish(drawn, mask, "warp", note)


def remove(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    words = _refuse_projection(canvas)
    chest = canvas.chest
    ratio = chest.cardiothoracic_ratio
    if ratio <= 0.5:
        raise CannotShow(f"no cardiomegaly found: the heart takes {ratio:.2f} of the thorax")
    shrink = (ratio - NORMAL_RATIO) * chest.thoracic_width
    drawn, mask, reached = _move_heart(canvas, -0.25 * shrink, -0.75 * shrink)
    if reached > 0.535:
        raise CannotShow(
            f"the heart is too wide to be brought below half of the thorax ({reached:.2f} at best)"
        )
    note = f"heart from {ratio:.2f} to {reached:.2f} of the thorax, left border most{words}"
    return canvas.finish(drawn, mask, "warp", note)


def _move_heart(canvas: Canvas, right: float, left: float) -> tuple[Field, Mask, float]:
    """Moves the heart's borders outwards by so many pixels (inwards when negative), as far as there is room.

    Returns:
        The picture, the region moved, and the cardiothoracic ratio that the new borders make.
    """
    chest = canvas.chest
    top, low = chest.heart_rows
    rows = np.arange(canvas.gray.shape[0], dtype=np.float64)
    height = low - top
    # Most at the apex, nothing at the hila, and easing out under the diaphragm.
    rise = _ease((rows - (top - 0.15 * height)) / (0.85 * height))
    share = rise * _ease((low + 0.55 * height - rows) / (0.6 * height))
    moved, shift = {}, np.zeros(canvas.gray.shape, np.float32)
    for side, outward, amount in (("right", -1.0, right), ("left", 1.0, left)):
        lung = chest.lung(side)
        border, wall = lung.medial_at(rows), lung.wall_at(rows)
        part, given = _row_shift(chest.midline, border, wall, amount * share, outward, canvas.gray.shape)
        shift += part
        moved[side] = (border + outward * given)[int(top) : int(low)]
    ratio = float(moved["left"].max() - moved["right"].min()) / chest.thoracic_width
    drawn, mask = warp(canvas, shift, down=0.2 * max(left, 0.0))
    return drawn, mask, ratio


def _ease(t: Floats) -> Floats:
    t = np.clip(t, 0, 1)
    eased: Floats = t * t * (3 - 2 * t)
    return eased


def _row_shift(
    middle: float, border: Floats, wall: Floats, amount: Floats, outward: float, shape: tuple[int, ...]
) -> tuple[Field, Floats]:
    """Sideways displacement: full at the border, nothing at the midline and at the chest wall.

    Returns:
        The displacement in the picture (to the right is positive), and outwards at the border, row by row.
    """
    _, columns = coordinates(shape)
    along = (columns - middle) * outward
    at_border = np.maximum((border - middle) * outward, 20)
    at_wall = np.maximum((wall - middle) * outward - 4, at_border + 15)
    # Never fold: where the picture is pulled apart, the bump's steepest slope (1.5 over the room) stays below 0.8.
    gap = at_wall - at_border
    room = np.where(
        amount > 0, np.minimum(0.62 * gap, 1.1 * at_border), np.minimum(1.1 * gap, 0.6 * at_border)
    )
    given = np.sign(amount) * np.minimum(np.abs(amount), room)
    given = cv2.GaussianBlur(given[:, None], (1, 61), 0, sigmaY=14)[:, 0]
    new = at_border + given
    inner = np.clip(along / new[:, None], 0, 1)
    outer = np.clip((at_wall[:, None] - along) / (at_wall - new)[:, None], 0, 1)
    return (outward * _ease(inner) * _ease(outer) * given[:, None]).astype(np.float32), given


def warp(canvas: Canvas, shift: Field, *, down: float) -> tuple[Field, Mask]:
    """Moves the picture without its grain, then lays the grain back where it was."""
    gray = canvas.gray
    soft = blur(gray, 1.1)
    rows, columns = coordinates(gray.shape)
    shift = blur(shift, 5.0)
    outwards: Field = (np.maximum(shift, 0) / max(float(np.abs(shift).max()), 1e-3)).astype(np.float32)
    sink = blur(outwards, 8.0) * np.float32(down)
    moved = cv2.remap(
        soft,
        (columns - shift).astype(np.float32),
        (rows - sink).astype(np.float32),
        cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    # Fine detail (grain and rib rims) moves with its surroundings where the shift is large, stays where it is small.
    fine = gray - soft
    moved_fine = cv2.remap(
        fine,
        np.rint(columns - shift).astype(np.float32),
        np.rint(rows - sink).astype(np.float32),
        cv2.INTER_NEAREST,
    )
    size = np.hypot(shift, sink)
    # Where the picture is pulled apart, pixels repeat: there the grain stays where it was.
    pulled = np.clip(np.abs(np.gradient(shift, axis=1)) / 0.3, 0, 1)
    moved_fine = np.sqrt(1 - pulled) * moved_fine + np.sqrt(pulled) * fine
    active = np.clip(size / 1.5, 0, 1)
    drawn = gray + active * (moved + moved_fine - gray)
    return drawn.astype(np.float32), size > 0.4


CARDIOMEGALY = FindingRenderer(add, remove)
