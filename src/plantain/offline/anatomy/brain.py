"""Anatomy of a brain MR slice: head, inner table of the skull, midline, lobes, dura and sella.

Bone is black on every sequence and scalp is brighter. Of all closed lines around the head that change little from ray
to ray, the line that is darkest against both of its sides is the bone; it encloses the brain.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.anatomy.maps import (
    SIDE,
    AnatomyMap,
    CannotShow,
    blur,
    colour_of,
    ellipse,
    filled,
    hull,
    largest_part,
    reduced,
    shrink,
)
from plantain.pixels.arrays import Field, Floats, Mask, Pixels
from plantain.pixels.frame import without_frame

RAYS, STEPS = 180, 56
OUTER = 0.28
"""Scalp and skull are within this outer share of a ray from the middle of the head."""
LEAST_DEEPER = 0.35
"""Share by which bone is darker than scalp and brain."""
SELLA = {"axial": (0.42, 0.16), "coronal": (0.76, 0.16), "sagittal": (0.66, 0.16)}
"""Expected height of the sella below the top of the brain and radius of the search, in the brain's height and width."""


def brain_map(pixels: Pixels, plane: str) -> AnatomyMap:
    """Return the anatomy map of a brain slice of any sequence, with or without its skull.

    Args:
        pixels: uint8 (H, W, 3), nose up (axial), head up (coronal, sagittal).
        plane: "axial", "coronal", "sagittal" or "unknown", which is taken for axial.

    Raises:
        CannotShow: no head on a dark background was found.
    """
    small = reduced(pixels)
    level = without_frame(small[..., 1].astype(np.float32))
    if float(colour_of(small).mean()) > 4:
        raise CannotShow("not a brain MR slice: the image is in colour")
    smooth = blur(level, 1.2)
    bright, black = float(np.percentile(smooth, 99)), _background(smooth)
    head = filled(largest_part(smooth > black + max(10.0, 0.12 * (bright - black))))
    if bright < 25 or not 0.04 < float(head.mean()) < 0.9:
        raise CannotShow("not a brain MR slice: no head on a dark background")
    brain = _inside_skull(np.maximum(blur(level, 0.7) - black, 0), head)
    if plane in ("sagittal", "coronal"):
        vault = _vault(head, 0.42 if plane == "sagittal" else 0.46)
        brain = brain & vault if head[-3:].any() else brain  # face and neck run out of the image
    if brain.sum() < 0.02 * brain.size:
        raise CannotShow("the brain was not found in this slice")
    midline = None if plane == "sagittal" else _midline(smooth, brain)
    width = float(np.ptp(np.flatnonzero(brain.any(axis=0)))) + 1
    places, points = _places(smooth, brain, head, midline, plane, width)
    # Where the skull was taken off, the sella is a hollow in the outline.
    field = head | places.get("sella", head)
    return AnatomyMap(field, brain, places, width, midline, points)


def _places(
    smooth: Field, brain: Mask, head: Mask, midline: float | None, plane: str, width: float
) -> tuple[dict[str, Mask], dict[str, tuple[float, float]]]:
    ys, xs = np.mgrid[:SIDE, :SIDE]
    rows, columns = np.flatnonzero(brain.any(axis=1)), np.flatnonzero(brain.any(axis=0))
    centre = float(columns.mean()) if midline is None else midline
    down = (ys - rows[0]) / max(1, np.ptp(rows))
    across = np.abs(xs - centre) / width * 2
    forth = (xs - columns[0]) / max(1, np.ptp(columns))  # nose to image left on a sagittal slice
    deep = shrink(brain, 0.07 * width)
    if plane == "sagittal":
        lobes = {
            "frontal": (forth < 0.4) & (down < 0.6),
            "parietal": (forth > 0.45) & (forth < 0.8) & (down < 0.45),
            "temporal": (forth > 0.25) & (forth < 0.6) & (down > 0.5),
            "occipital": (forth > 0.72) & (down > 0.3) & (down < 0.7),
        }
    elif plane == "coronal":
        lobes = dict.fromkeys(("frontal", "parietal"), (down < 0.5) & (across > 0.15))
        lobes |= {"temporal": (down > 0.52) & (across > 0.35), "occipital": (down > 0.3) & (across > 0.15)}
    else:
        lobes = {
            "frontal": (down < 0.42) & (across > 0.12),
            "parietal": (down > 0.45) & (down < 0.8) & (across > 0.12),
            "temporal": (down > 0.35) & (down < 0.68) & (across > 0.45),
            "occipital": (down > 0.68) & (across > 0.1),
        }
    convexity = brain & ~shrink(brain, 0.2 * width)
    falx = brain & (np.abs(xs - centre) < 0.11 * width) if midline is not None else np.zeros_like(brain)
    if plane == "coronal":
        falx &= down < 0.4
        convexity &= down < 0.7
    elif plane == "axial":
        falx &= (down < 0.32) | (down > 0.72)
    if plane != "sagittal":
        convexity &= across > 0.3  # nearer to the midline the border is the falx
    places = {name: lobe & deep for name, lobe in lobes.items()}
    places |= {"brain": deep, "convexity": convexity, "falx": falx}
    points = {"centre": (centre, float(rows.mean()))}
    sella = _sella(smooth, brain, head, centre, plane, width)
    if sella is not None:
        points["sella"] = sella
        up = 0.0 if plane == "axial" else 0.03 * width
        places["sella"] = ellipse(sella, (0.13 * width, 0.13 * width))
        places["suprasellar"] = ellipse((sella[0], sella[1] - up), (0.13 * width, 0.15 * width))
        places["brain"] = deep & ~ellipse(sella, (0.11 * width, 0.11 * width))
    return places, points


def _background(smooth: Field) -> float:
    """Level of the darkest corner: some images have a grey background."""
    side = SIDE // 16
    ends = (slice(None, side), slice(-side, None))
    corners = [float(np.median(smooth[rows, columns])) for rows in ends for columns in ends]
    return min(0.2 * float(np.percentile(smooth, 99)), *corners)


def _vault(head: Mask, half: float) -> Mask:
    """The ellipse that the vault of the skull spans; half of its height as a share of its width."""
    rows = np.flatnonzero(head.any(axis=1))
    top = int(rows[0])
    columns = np.flatnonzero(head[top : top + max(4, int(0.4 * rows.size))].any(axis=0))
    width = float(np.ptp(columns)) + 1
    return ellipse((float(columns[0] + columns[-1]) / 2, top + half * width), (0.5 * width, half * width))


def _inside_skull(level: Field, head: Mask) -> Mask:
    """The area that the inner table encloses; the head itself where few rays cross bone (skull stripped)."""
    deep = shrink(head, 0.12 * float(head.any(axis=0).sum()))
    if not deep.any():
        return head
    ys, xs = np.nonzero(head)
    cx, cy = float(xs.mean()), float(ys.mean())
    reach = int(np.hypot(SIDE, SIDE))
    flags = cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS
    inside = cv2.warpPolar(head.astype(np.float32), (reach, RAYS), (cx, cy), reach, flags) > 0.5
    edge = (reach - 1 - np.argmax(inside[:, ::-1], axis=1)).astype(np.float64)
    angles = np.arange(RAYS) * 2 * np.pi / RAYS
    shares = np.linspace(1 - OUTER, 1, STEPS)
    x = (cx + np.outer(edge * np.cos(angles), shares)).astype(np.float32)
    y = (cy + np.outer(edge * np.sin(angles), shares)).astype(np.float32)
    seen = cv2.remap(level, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    seen = seen / max(float(np.median(level[deep])), 1.0) + 0.04
    outer = np.maximum.accumulate(seen[:, ::-1], axis=1)[:, ::-1]
    deeper = 1 - seen / np.minimum(outer, np.maximum.accumulate(seen, axis=1))
    line = _steady_line(deeper - 0.3 * (shares - 1 + OUTER) / OUTER)
    rays = np.arange(RAYS)
    bone = deeper[rays, line] > LEAST_DEEPER
    if bone.mean() < 0.5:
        return head
    # The inner table is where the level has risen half of the way on the inside of the line.
    rising = seen > (0.5 + 0.5 * seen[rays, line])[:, None]
    rising[np.arange(STEPS)[None, :] >= line[:, None]] = False
    back = STEPS - 1 - np.argmax(rising[:, ::-1], axis=1)
    inner = shares[np.where(rising.any(axis=1), back, 0)]
    ratio = np.interp(rays, np.flatnonzero(bone), inner[bone], period=RAYS)
    wrapped = np.concatenate([ratio[-7:], ratio, ratio[:7]])
    steady = np.array([np.median(wrapped[i : i + 15]) for i in range(RAYS)])
    points = np.stack([cx + steady * edge * np.cos(angles), cy + steady * edge * np.sin(angles)], axis=1)
    out = np.zeros(head.shape, np.uint8)
    cv2.fillPoly(out, [np.round(points).astype(np.int32)], 1)
    return out.astype(bool) & head


def _steady_line(worth: Floats) -> npt.NDArray[np.intp]:
    """The step on each ray of the closed line that is worth most, by dynamic programming (Viterbi)."""
    stride, turn = 2, 0.03
    steps = np.arange(-stride, stride + 1)
    total, came = worth[0].astype(np.float64), np.zeros((3 * RAYS, STEPS), np.intp)
    for ray in range(1, 3 * RAYS):  # three rounds, so that the middle one closes
        wide = np.pad(total, stride, constant_values=-np.inf)
        choices = np.stack([wide[stride + step : stride + step + STEPS] for step in steps])
        choices -= turn * np.abs(steps)[:, None]
        best = choices.argmax(axis=0)
        came[ray] = np.arange(STEPS) + steps[best]
        total = choices.max(axis=0) + worth[ray % RAYS]
    at = np.empty(3 * RAYS, np.intp)
    at[-1] = int(total.argmax())
    for ray in range(3 * RAYS - 1, 0, -1):
        at[ray - 1] = came[ray, at[ray]]
    return at[RAYS : 2 * RAYS]


def _midline(smooth: Field, brain: Mask) -> float:
    """The column about which the slice is most like its mirror image."""
    columns = np.flatnonzero(brain.any(axis=0))
    centre, width = float(columns[0] + columns[-1]) / 2, int(columns[-1] - columns[0])
    mean = float(smooth[brain].mean())
    values = np.where(brain, smooth - mean, -mean).astype(np.float32)
    reach = max(2, int(0.08 * width))
    best, best_score = centre, -np.inf
    for twice in range(round(2 * (centre - reach)), round(2 * (centre + reach)) + 1):
        half = int(min(twice / 2, SIDE - 1 - twice / 2, 0.6 * width))
        low = int(np.ceil(twice / 2 - half))
        window = values[:, low : twice - low + 1]
        score = float((window * window[:, ::-1]).sum())
        if score > best_score:
            best, best_score = twice / 2, score
    return float(best)


def _sella(
    smooth: Field, brain: Mask, head: Mask, centre: float, plane: str, width: float
) -> tuple[float, float] | None:
    """The middle of the dark pocket (fluid, air or bone) below the chiasm; None where there is none."""
    rows = np.flatnonzero(brain.any(axis=1))
    share, radius = SELLA.get(plane, SELLA["axial"])
    columns = np.flatnonzero(brain.any(axis=0))
    x = centre if plane != "sagittal" else float(columns[0]) + 0.48 * width
    expected = (x, rows[0] + share * np.ptp(rows))
    tissue = float(np.median(smooth[brain]))
    dark = (smooth < 0.6 * tissue) & hull(head)
    room = cv2.distanceTransform(dark.astype(np.uint8), cv2.DIST_L2, 5)
    reach = (0.13 if plane == "sagittal" else 0.022, radius)  # the horns of the ventricles are further out
    room = np.where(ellipse(expected, (reach[0] * width, reach[1] * width)), room, 0)
    y, x_ = np.unravel_index(int(np.argmax(room)), room.shape)
    pocket = ellipse((float(x_), float(y)), (0.8 * room[y, x_] + 1, 0.8 * room[y, x_] + 1))
    if room[y, x_] < 0.025 * width or float(smooth[pocket].mean()) > 0.33 * tissue:
        return None  # a ventricle is less dark
    # On sagittal and coronal slices the pocket is the sphenoid sinus, and the sella is on its roof.
    return float(x_), float(y) - (0.0 if plane == "axial" else 0.8 * float(room[y, x_]))
