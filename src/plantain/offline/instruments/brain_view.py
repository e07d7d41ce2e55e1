"""The judge's map of a brain MR slice: head, inside of the skull, the band along the dura, midline."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.instruments.anatomy import Anatomy, ellipse
from plantain.offline.instruments.pair import blur, filled, grow, hull, largest_part, shrunken
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.frame import without_frame

RAYS = 180
OUTER_SHARE = 0.28
"""Scalp and skull lie within this outer share of a ray from the middle of the head."""
PLACES = 56
"""On that part of a ray."""
STRIDE, TURN = 2, 0.03
"""Places by which the bone may step from ray to ray, and what a step costs, in the worth of a ray."""
FAINT = 0.04
"""Of the brain's level: so much of a difference is noise."""
LEAST_DEEPER = 0.35
"""By what share bone is darker than scalp and brain."""
INWARD = 0.3
"""By how much more a deep line is worth: of two black lines with marrow between them the inner one is meant."""
FINE = 0.7
"""Pixels of the mean in which a thin bone is still seen."""
TURNS = tuple(range(-12, 13, 2))
CLEARLY = 1.005
"""Degrees by which a head may be turned, and how many times more alike its halves must be than if it is upright."""
VAULT, CORONAL_VAULT = 0.42, 0.46
"""Half of the height of the skull's vault, over its length on a sagittal slice and over its width on a coronal one."""


def brain_view(level: Field, plane: str) -> Anatomy:
    """Maps a slice of any sequence, with or without the skull.

    Args:
        level: float32 (h, w) grey levels on the small frame.
        plane: "axial", "coronal", "sagittal" or "unknown"; a sagittal slice has no sides.
    """
    plain = without_frame(level)
    smooth = blur(plain, 1.2)
    bright = float(np.percentile(smooth, 99))
    black = _background(smooth, 0.2 * bright)
    head = filled(largest_part(smooth > black + max(10.0, 0.12 * (bright - black))))
    brain = _inside_skull(np.maximum(blur(plain, FINE) - black, 0), head)
    if plane == "sagittal" and head[-3:].any():
        brain = brain & _above_face(head, VAULT)
    if not head.any():
        head[:] = True
    vault = brain & _above_face(head, CORONAL_VAULT) if plane == "coronal" else brain
    columns = np.flatnonzero(head.any(axis=0))
    rows = np.flatnonzero(head.any(axis=1))
    width, height = float(columns[-1] - columns[0] + 1), float(rows[-1] - rows[0] + 1)
    dura, line = brain & ~shrunken(brain, 0.17 * width), brain & ~shrunken(brain, 0.06 * width)
    midline, lean = (None, 0.0) if plane == "sagittal" else _midline(smooth, brain)
    found = Anatomy(head, {}, midline, width, lean=lean)
    if midline is not None:
        away = np.abs(found.off_midline(*np.indices(level.shape)[::-1]))
        dura, line = dura | (brain & (away < 0.12 * width)), line | (brain & (away < 0.04 * width))
    centre_x = midline if midline is not None else float(columns.mean())
    # Where the skull was taken away the sella is a hollow in the outline: inside the hull, not inside the head.
    # It lies before the middle of an axial slice; else at the lower border of the brain, which is about the middle
    # of a head that runs down into the neck. A sagittal slice may look left or right.
    neck = bool(head[-3:].any())
    depth = {"axial": 0.42, "coronal": 0.54 if neck else 0.8, "sagittal": 0.58 if neck else 0.72}.get(
        plane, 0.5
    )
    reach = {"axial": (0.16, 0.16), "coronal": (0.16, 0.2)}.get(plane, (0.2, 0.2))
    sella = ellipse(level.shape, (centre_x, rows[0] + depth * height), (reach[0] * width, reach[1] * height))
    found.regions.update(
        {
            "brain": brain,
            "vault": vault if vault.any() else brain,
            "dura": grow(dura, 0.012 * width) & grow(brain, 0.012 * width),
            "dural line": grow(line, 0.012 * width),
            "sella": sella & hull(head),
            "head": head,
        }
    )
    return found


def _background(smooth: Field, most: float) -> float:
    """Level of the darkest corner: some pictures were saved with a grey background."""
    side = max(1, smooth.shape[0] // 16)
    ends = (slice(None, side), slice(-side, None))
    corners = (smooth[rows, columns] for rows in ends for columns in ends)
    return min(most, *(float(np.median(corner)) for corner in corners))


def _inside_skull(level: Field, head: Mask) -> Mask:
    """What the inner table encloses: along each ray from the middle of the head, what lies inside the bone.

    Bone is black on every sequence, and scalp is brighter, however faint it may be: of all lines around the head that
    change little from ray to ray the one that is darkest against what lies on either side of it is the bone. Where few
    rays see one (skull stripped before), the brain is the head: a sulcus or a ventricle goes on over few rays.
    """
    deep = shrunken(head, 0.12 * float(head.any(axis=0).sum()))
    if not deep.any():
        return head
    ys, xs = np.nonzero(head)
    cx, cy = float(xs.mean()), float(ys.mean())
    core = float(np.median(level[deep]))
    reach = int(np.hypot(*level.shape))
    flags = cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS  # else rays beyond the picture keep what memory held
    inside = cv2.warpPolar(head.astype(np.float32), (reach, RAYS), (cx, cy), reach, flags) > 0.5
    edge = (reach - 1 - np.argmax(inside[:, ::-1], axis=1)).astype(np.float64)
    angles = np.arange(RAYS) * 2 * np.pi / RAYS
    shares = np.linspace(1 - OUTER_SHARE, 1, PLACES)
    x, y = (
        (middle + np.outer(edge * way, shares)).astype(np.float32)
        for middle, way in ((cx, np.cos(angles)), (cy, np.sin(angles)))
    )
    seen = cv2.remap(level, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE) / max(core, 1.0)
    outer = np.maximum.accumulate(seen[:, ::-1], axis=1)[:, ::-1]
    around = np.minimum(outer, np.maximum.accumulate(seen, axis=1))
    deeper = 1 - (seen + FAINT) / (around + FAINT)
    line = _steady_line(deeper - INWARD * (shares - 1 + OUTER_SHARE) / OUTER_SHARE)
    rays = np.arange(RAYS)
    bone = deeper[rays, line] > LEAST_DEEPER
    if bone.mean() < 0.5:
        return head
    rising = seen > (0.5 + 0.5 * seen[rays, line])[:, None]
    rising[np.arange(PLACES)[None, :] >= line[:, None]] = False
    back = PLACES - 1 - np.argmax(rising[:, ::-1], axis=1)
    inner = shares[np.where(rising.any(axis=1), back, 0)]
    ratio = np.interp(rays, np.flatnonzero(bone), inner[bone], period=RAYS)
    wrapped = np.concatenate([ratio[-7:], ratio, ratio[:7]])
    steady = np.array([np.median(wrapped[i : i + 15]) for i in range(RAYS)])
    points = np.stack([cx + steady * edge * np.cos(angles), cy + steady * edge * np.sin(angles)], axis=1)
    out = np.zeros(head.shape, np.uint8)
    cv2.fillPoly(out, [np.round(points).astype(np.int32)], 1)
    return out.astype(bool) & head


def _steady_line(worth: Field) -> npt.NDArray[np.intp]:
    """The place on each ray of the line around the head that is worth most, by dynamic programming (Viterbi).

    Args:
        worth: float (rays, places).
    """
    rays, places = worth.shape
    steps = np.arange(-STRIDE, STRIDE + 1)
    total, came = worth[0].astype(np.float64), np.zeros((3 * rays, places), np.intp)
    for ray in range(1, 3 * rays):  # thrice around, so that the middle round closes
        wide = np.pad(total, STRIDE, constant_values=-np.inf)
        choices = np.stack([wide[STRIDE + step : STRIDE + step + places] for step in steps])
        choices = choices - TURN * np.abs(steps)[:, None]
        best = choices.argmax(axis=0)
        came[ray] = np.arange(places) + steps[best]
        total = choices.max(axis=0) + worth[ray % rays]
    at = np.empty(3 * rays, np.intp)
    at[-1] = int(total.argmax())
    for ray in range(3 * rays - 1, 0, -1):
        at[ray - 1] = came[ray, at[ray]]
    return at[rays : 2 * rays]


def _above_face(head: Mask, half: float) -> Mask:
    """The ellipse that the vault of the skull spans; half of its height as a share of its width."""
    rows = np.flatnonzero(head.any(axis=1))
    top = int(rows[0])
    vault = head[top : top + max(4, int(0.4 * rows.size))]
    columns = np.flatnonzero(vault.any(axis=0))
    width = float(columns[-1] - columns[0] + 1)
    centre = (float(columns[0] + columns[-1]) / 2, top + half * width)
    return ellipse(head.shape, centre, (0.5 * width, half * width))


def _midline(smooth: Field, brain: Mask) -> tuple[float, float]:
    """The line about which the slice is most like its mirror image: column at the middle row, and its lean.

    A head may be turned in the plane; it is taken for upright unless another angle is clearly better.
    """
    columns = np.flatnonzero(brain.any(axis=0))
    if columns.size == 0:
        return float(smooth.shape[1]) / 2, 0.0
    mean = float(smooth[brain].mean())
    values = np.where(brain, smooth - mean, -mean).astype(np.float32)
    middle = (float(columns[0] + columns[-1]) / 2, (smooth.shape[0] - 1) / 2)
    width = int(columns[-1] - columns[0])
    tried = []
    for angle in TURNS:
        turn = cv2.getRotationMatrix2D(middle, angle, 1.0)
        turned = cv2.warpAffine(values, turn, values.shape[::-1], borderValue=-mean) if angle else values
        score, column = _mirrored(turned, middle[0], width)
        tried.append((score, column, angle))
    upright = next(score for score, _, angle in tried if angle == 0)
    score, column, angle = max(tried)
    if score < CLEARLY * upright:
        score, column, angle = next(one for one in tried if one[2] == 0)
    # Back from the turned picture: a point of its column at the middle row, and the direction down it.
    cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    lean = -sin / cos
    return float(middle[0] + (column - middle[0]) / cos), float(lean)


def _mirrored(values: Field, centre: float, width: int) -> tuple[float, float]:
    """How like its mirror image the picture is about the best column near the centre, and that column."""
    reach = max(2, int(0.08 * width))
    best, best_score = centre, -np.inf
    for twice in range(round(2 * (centre - reach)), round(2 * (centre + reach)) + 1):
        half = int(min(twice / 2, values.shape[1] - 1 - twice / 2, 0.6 * width))
        low = int(np.ceil(twice / 2 - half))
        high = twice - low
        window = values[:, low : high + 1]
        score = float((window * window[:, ::-1]).sum())
        if score > best_score:
            best, best_score = twice / 2, score
    return best_score, float(best)
