"""Cardiomegaly and a wide mediastinum: borders moved by a smooth warp, grain left where it is.

The warp moves rows sideways only (and the apex of the heart a little down), so that ribs bend no more than they must;
it fades out before the chest wall and above the hila.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.models.offline.chest.canvas import Canvas, blur, coordinates, open_canvas
from plantain.models.offline.chest.drawing import FloatImage
from plantain.models.offline.rendering import CannotShow, FindingRenderer, Mask, Rendering, Scene

_RATIO = ((0.525, 0.55), (0.57, 0.60), (0.63, 0.67))
NORMAL_RATIO = 0.46
Column = npt.NDArray[np.float64]


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
    target = max(target, ratio + 0.035)
    if target > 0.76:
        raise CannotShow(f"the heart already takes {ratio:.2f} of the thorax: no room to enlarge it")
    grow = (target - ratio) * chest.thoracic_width
    left = 0.78 + canvas.rng.uniform(-0.08, 0.08)
    drawn, mask = _move_heart(canvas, (1 - left) * grow, left * grow)
    note = f"heart from {ratio:.2f} to {target:.2f} of the thorax, left border most{words}"
    return canvas.finish(drawn, mask, "warp", note)


def remove(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    words = _refuse_projection(canvas)
    chest = canvas.chest
    ratio = chest.cardiothoracic_ratio
    if ratio <= 0.5:
        raise CannotShow(f"no cardiomegaly found: the heart takes {ratio:.2f} of the thorax")
    shrink = (ratio - NORMAL_RATIO) * chest.thoracic_width
    drawn, mask = _move_heart(canvas, -0.25 * shrink, -0.75 * shrink)
    note = f"heart from {ratio:.2f} to about {NORMAL_RATIO:.2f} of the thorax, left border most{words}"
    return canvas.finish(drawn, mask, "warp", note)


def _move_heart(canvas: Canvas, right: float, left: float) -> tuple[FloatImage, Mask]:
    """Moves the heart's borders outwards by so many pixels (inwards when negative)."""
    chest = canvas.chest
    top, low = chest.heart_rows
    rows = np.arange(canvas.gray.shape[0], dtype=np.float64)
    height = low - top
    # Most at the apex, nothing at the hila, and easing out under the diaphragm.
    rise = _ease((rows - (top - 0.15 * height)) / (0.85 * height))
    fade = _ease((low + 0.55 * height - rows) / (0.60 * height))
    share = rise * fade
    shift = _row_shift(canvas, chest.left.medial_at(rows), chest.left.wall_at(rows), left * share)
    shift += _row_shift(canvas, chest.right.medial_at(rows), chest.right.wall_at(rows), -right * rise * fade)
    return _warp(canvas, shift, down=0.22 * max(left, 0.0), share=share)


def _ease(t: Column) -> Column:
    t = np.clip(t, 0, 1)
    eased: Column = t * t * (3 - 2 * t)
    return eased


def _row_shift(canvas: Canvas, border: Column, wall: Column, amount: Column) -> FloatImage:
    """Sideways displacement: full at the border, nothing at the midline and at the chest wall."""
    _, columns = coordinates(canvas.gray.shape)
    middle = canvas.chest.midline
    outward = np.sign(wall - middle)[:, None]
    along = (columns - middle) * outward
    at_border = np.maximum((border - middle) * outward[:, 0], 20)[:, None]
    at_wall = np.maximum(((wall - middle) * outward[:, 0])[:, None] - 6, at_border + 15)
    inner = np.clip(along / at_border, 0, 1)
    outer = np.clip((at_wall - along) / (at_wall - at_border), 0, 1)
    bump = _ease(inner) * _ease(np.minimum(outer * 1.02, 1))
    # Never fold: at the steepest the bump may use up two thirds of the room that it has.
    room = 0.62 * np.minimum(at_wall - at_border, at_border)[:, 0] / 1.5
    limited = np.sign(amount) * np.minimum(np.abs(amount), room)
    limited = cv2.GaussianBlur(limited[:, None].astype(np.float64), (1, 61), 0, sigmaY=14)[:, 0]
    return (bump * limited[:, None]).astype(np.float32)


def _warp(canvas: Canvas, shift: FloatImage, *, down: float, share: Column) -> tuple[FloatImage, Mask]:
    """Moves the picture without its grain, then lays the grain back where it was."""
    gray = canvas.gray
    soft = blur(gray, 1.1)
    rows, columns = coordinates(gray.shape)
    shift = blur(shift, 5.0)
    sink = blur(np.maximum(shift, 0) / max(float(np.abs(shift).max()), 1e-3), 8.0) * down
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
    active = np.clip(size / 1.5, 0, 1)
    drawn = gray + active * (moved + moved_fine - gray)
    return drawn.astype(np.float32), size > 0.4


CARDIOMEGALY = FindingRenderer(add, remove)
