"""Puts plausible healthy tissue where a tumour was: the other hemisphere's, or a like piece of the same slice.

What comes out is a plausible normal, not this patient's hidden anatomy.
"""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.brain.anatomy import STEP, Brain
from plantain.offline.brain.fields import FieldWindow, window_around
from plantain.offline.brain.symmetry import Midline
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, feather


def healthy_from_mirror(brain: Brain, midline: Midline, mask: Mask) -> tuple[FieldWindow, Field]:
    """The window around the mask with the mirrored half in it, fitted to the tissue around.

    The mirrored half is first bent (dense flow, measured outside the mask only and carried smoothly in) and
    brightened to meet what surrounds the mask.

    Returns:
        The window, and its grey levels with the mask replaced.
    """
    window = _window(mask)
    guide = midline.mirrored(brain.gray)
    known = (dilate(midline.mirrored_mask(brain.inside) & brain.inside, 2) & ~dilate(mask, 6)).astype(
        np.float32
    )
    flow = _flow(brain.gray, guide, known, mask)
    x, y = window.grid()
    bent = cv2.remap(
        guide,
        x + window.cut(flow[0]),
        y + window.cut(flow[1]),
        cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    ).astype(np.float32)
    return window, _joined(brain, window, mask, bent)


def healthy_from_slice(brain: Brain, mask: Mask) -> tuple[FieldWindow, Field]:
    """The same from the best-fitting turned or flipped piece of this slice, for slices without another half.

    Raises:
        CannotShow: no piece of the slice fits.
    """
    window = _window(mask)
    matrix = _best_donor(brain, window, mask)
    rows, columns = window.shape
    x, y = np.meshgrid(np.arange(columns, dtype=np.float32), np.arange(rows, dtype=np.float32))
    mapped_x = matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]
    mapped_y = matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]
    donor = cv2.remap(brain.gray, mapped_x, mapped_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return window, _joined(brain, window, mask, donor.astype(np.float32))


def _window(mask: Mask) -> FieldWindow:
    ys, xs = np.nonzero(mask)
    reach = max(int(np.ptp(xs)), int(np.ptp(ys))) / 2 + 90
    return window_around((xs.min() + xs.max()) / 2, (ys.min() + ys.max()) / 2, reach, mask.shape)


def _flow(gray: Field, guide: Field, known: Field, mask: Mask) -> tuple[Field, Field]:
    """Displacement that lays the guide on the image, smooth, from where `known` is 1."""
    size = (gray.shape[1] // STEP, gray.shape[0] // STEP)
    fixed = cv2.resize(np.where(mask, guide, gray).astype(np.float32), size, interpolation=cv2.INTER_AREA)
    moving = cv2.resize(guide, size, interpolation=cv2.INTER_AREA)
    trust = cv2.resize(known, size, interpolation=cv2.INTER_AREA)
    scale = 255.0 / max(float(fixed.max()), 1.0)
    method = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    flow = method.calc(
        np.clip(fixed * scale, 0, 255).astype(np.uint8),
        np.clip(moving * scale, 0, 255).astype(np.uint8),
        None,
    )
    flow = np.clip(flow, -10, 10) * trust[..., None]
    weight = cv2.GaussianBlur(trust, (0, 0), 7) + np.float32(1e-3)
    parts = []
    for axis in range(2):
        calm = cv2.GaussianBlur(np.ascontiguousarray(flow[..., axis]), (0, 0), 7) / weight
        parts.append(cv2.resize(calm, gray.shape[::-1], interpolation=cv2.INTER_LINEAR) * np.float32(STEP))
    return parts[0].astype(np.float32), parts[1].astype(np.float32)


def _joined(brain: Brain, window: FieldWindow, mask: Mask, fill: Field) -> Field:
    """The fill brought to the brightness around the mask and faded into it."""
    gray, inner = window.cut(brain.gray), window.cut_mask(mask)
    around = (dilate(inner, 60) & ~dilate(inner, 4) & window.cut_mask(brain.inside)).astype(np.float32)
    difference = np.clip(gray - fill, -40, 40) * around
    weight = cv2.GaussianBlur(around, (0, 0), 26) + np.float32(2e-3)
    shift = cv2.GaussianBlur(difference.astype(np.float32), (0, 0), 26) / weight
    # Bone and scalp stay as they are, however the other side's skull is shaped.
    alpha = feather(inner, 9) * np.clip(window.cut(brain.depth) / 6, 0, 1)
    mixed = gray + alpha * (np.clip(fill + shift, 0, 255) - gray)
    # Where the donor's own border falls a little inside this one, its black outside is not tissue.
    level = float(np.median(gray[window.cut(brain.depth) > 0]))
    outside = (fill < 0.3 * level) & (window.cut(brain.depth) < 40) & (gray > 0.5 * level)
    keep = cv2.GaussianBlur(outside.astype(np.float32), (0, 0), 2.5)
    mixed = mixed + np.clip(1.5 * keep, 0, 1) * (gray - mixed)
    result: Field = np.where(alpha > 0, mixed, gray).astype(np.float32)
    return result


def _best_donor(brain: Brain, window: FieldWindow, mask: Mask) -> Field:
    """2x3 matrix from window pixels to the full-image pixels of the piece that fits best around the mask."""
    scale = 8
    size = (brain.gray.shape[1] // scale, brain.gray.shape[0] // scale)
    gray = cv2.resize(brain.gray, size, interpolation=cv2.INTER_AREA)
    inside = cv2.resize(brain.inside.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    taken = cv2.resize(dilate(mask, 12).astype(np.float32), size, interpolation=cv2.INTER_AREA)
    rows, columns = max(window.shape[0] // scale, 4), max(window.shape[1] // scale, 4)
    side = int(np.ceil(np.hypot(rows, columns)))
    centre = (
        (window.columns.start + window.columns.stop) / 2 / scale,
        (window.rows.start + window.rows.stop) / 2 / scale,
    )
    best, found = np.inf, None
    for flip in (1.0, -1.0):
        for angle in np.linspace(-np.pi / 3, np.pi / 3, 9):
            c, s = float(np.cos(angle)), float(np.sin(angle))
            turn = np.array([[c * flip, -s], [s * flip, c]], np.float64)
            # Template: the window's surroundings turned by the inverse, so that the slice itself stays as it is.
            back = np.linalg.inv(turn)
            offset = np.asarray(centre) - back @ np.array([side / 2, side / 2])
            pull = np.column_stack([back, offset]).astype(np.float32)
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            piece, body, hole = (
                cv2.warpAffine(plane, pull, (side, side), flags=flags) for plane in (gray, inside, taken)
            )
            near = ((cv2.dilate(hole, np.ones((9, 9), np.uint8)) > 0.3) & (hole < 0.3)).astype(np.float32)
            if near.sum() < 20 or side >= min(size):
                continue
            fit = cv2.matchTemplate(gray, piece, cv2.TM_SQDIFF, mask=near) / near.sum()
            need = ((hole > 0.3) | (near > 0)).astype(np.float32)
            shape = cv2.matchTemplate(inside, body, cv2.TM_SQDIFF, mask=need) / need.sum()
            overlap = cv2.matchTemplate(taken, need, cv2.TM_CCORR) / need.sum()
            cost = fit + 4e4 * np.maximum(shape - 0.01, 0) + 2e4 * np.maximum(overlap - 0.002, 0)
            low, _, at, _ = cv2.minMaxLoc(cost.astype(np.float32))
            if low < best:
                best, found = low, (turn, np.array(at, np.float64) + side / 2)
    if found is None or best > 6e3:
        raise CannotShow("nothing in this slice fits where the tumour is")
    turn, place = found
    middle = np.array([window.shape[1] / 2, window.shape[0] / 2])
    offset = place * scale - turn @ middle
    return np.column_stack([turn, offset]).astype(np.float32)
