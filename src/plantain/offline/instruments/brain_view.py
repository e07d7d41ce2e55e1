"""The judge's map of a brain MR slice: head, inside of the skull, the band along the dura, midline."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import Anatomy, ellipse
from plantain.offline.instruments.pair import blur, filled, grow, hull, largest_part, shrunken
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.frame import without_frame

RAYS = 180
OUTER_SHARE = 0.28
"""Scalp and skull lie within this outer share of a ray from the middle of the head."""
VAULT, CORONAL_VAULT = 0.42, 0.46
"""Half of the height of the skull's vault, over its length on a sagittal slice and over its width on a coronal one."""


def brain_view(level: Field, plane: str) -> Anatomy:
    """Maps a slice of any sequence, with or without the skull.

    Args:
        level: float32 (h, w) grey levels on the small frame.
        plane: "axial", "coronal", "sagittal" or "unknown"; a sagittal slice has no sides.
    """
    smooth = blur(without_frame(level), 1.2)
    bright = float(np.percentile(smooth, 99))
    black = _background(smooth, 0.2 * bright)
    head = filled(largest_part(smooth > black + max(10.0, 0.12 * (bright - black))))
    brain = _inside_skull(smooth, head)
    if plane == "sagittal" and head[-3:].any():
        brain = brain & _above_face(head, VAULT)
    if not head.any():
        head[:] = True
    vault = brain & _above_face(head, CORONAL_VAULT) if plane == "coronal" else brain
    columns = np.flatnonzero(head.any(axis=0))
    rows = np.flatnonzero(head.any(axis=1))
    width, height = float(columns[-1] - columns[0] + 1), float(rows[-1] - rows[0] + 1)
    midline = None if plane == "sagittal" else _midline(smooth, brain)
    band = 0.17 * width
    dura = brain & ~shrunken(brain, band)
    if midline is not None:
        all_columns = np.arange(level.shape[1])[None, :]
        dura = dura | (brain & (np.abs(all_columns - midline) < 0.12 * width))
    line = brain & ~shrunken(brain, 0.06 * width)
    if midline is not None:
        line = line | (brain & (np.abs(all_columns - midline) < 0.04 * width))
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
    return Anatomy(
        head,
        {
            "brain": brain,
            "vault": vault if vault.any() else brain,
            "dura": grow(dura, 0.012 * width) & grow(brain, 0.012 * width),
            "dural line": grow(line, 0.012 * width),
            "sella": sella & hull(head),
            "head": head,
        },
        midline,
        width,
    )


def _background(smooth: Field, most: float) -> float:
    """Level of the darkest corner: some pictures were saved with a grey background."""
    side = max(1, smooth.shape[0] // 16)
    ends = (slice(None, side), slice(-side, None))
    corners = (smooth[rows, columns] for rows in ends for columns in ends)
    return min(most, *(float(np.median(corner)) for corner in corners))


def _inside_skull(smooth: Field, head: Mask) -> Mask:
    """What the inner table encloses: along each ray, inward from the skin, past the dark band of the skull.

    Where no dark band is found (skull stripped before), the brain is the head. A band counts only when most
    of the neighbouring rays see one, so that a sulcus or a ventricle is not taken for bone.
    """
    ys, xs = np.nonzero(head)
    if ys.size == 0:
        return head
    cx, cy = float(xs.mean()), float(ys.mean())
    reach = int(np.hypot(*smooth.shape))
    flags = cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS  # else rays beyond the picture keep what memory held
    polar = cv2.warpPolar(smooth, (reach, RAYS), (cx, cy), reach, flags)
    inside = cv2.warpPolar(head.astype(np.float32), (reach, RAYS), (cx, cy), reach, flags) > 0.5
    edge = reach - 1 - np.argmax(inside[:, ::-1], axis=1)
    deep = shrunken(head, 0.12 * float(head.any(axis=0).sum()))
    if not deep.any():
        return head
    core = float(np.median(smooth[deep]))
    inner = np.full(RAYS, np.nan)
    for ray in range(RAYS):
        outer = int(edge[ray])
        start = int(outer * (1 - OUTER_SHARE))
        profile = polar[ray, start : outer + 1]
        if profile.size < 6:
            continue
        scalp = int(np.argmax(profile[profile.size // 2 :])) + profile.size // 2
        low = int(np.argmin(profile[: scalp + 1]))
        if profile[low] < 0.55 * core and profile[scalp] > profile[low] + 0.25 * core:
            level_back = profile[low] + 0.5 * (core - profile[low])
            back = low
            while back > 0 and profile[back] < level_back:
                back -= 1
            inner[ray] = (start + back) / max(outer, 1)
    seen = np.isfinite(inner)
    if seen.mean() < 0.5:
        return head
    ratio = np.interp(np.arange(RAYS), np.flatnonzero(seen), inner[seen], period=RAYS)
    wrapped = np.concatenate([ratio[-7:], ratio, ratio[:7]])
    steady = np.array([np.median(wrapped[i : i + 15]) for i in range(RAYS)])
    angles = np.arange(RAYS) * 2 * np.pi / RAYS
    points = np.stack([cx + steady * edge * np.cos(angles), cy + steady * edge * np.sin(angles)], axis=1)
    out = np.zeros(head.shape, np.uint8)
    cv2.fillPoly(out, [np.round(points).astype(np.int32)], 1)
    return out.astype(bool) & head


def _above_face(head: Mask, half: float) -> Mask:
    """The ellipse that the vault of the skull spans; half of its height as a share of its width."""
    rows = np.flatnonzero(head.any(axis=1))
    top = int(rows[0])
    vault = head[top : top + max(4, int(0.4 * rows.size))]
    columns = np.flatnonzero(vault.any(axis=0))
    width = float(columns[-1] - columns[0] + 1)
    centre = (float(columns[0] + columns[-1]) / 2, top + half * width)
    return ellipse(head.shape, centre, (0.5 * width, half * width))


def _midline(smooth: Field, brain: Mask) -> float:
    """The column about which the slice is most like its mirror image."""
    columns = np.flatnonzero(brain.any(axis=0))
    if columns.size == 0:
        return float(smooth.shape[1]) / 2
    centre = (columns[0] + columns[-1]) / 2
    width = int(columns[-1] - columns[0])
    reach = max(2, int(0.08 * width))
    best, best_score = centre, -np.inf
    values = np.where(brain, smooth, 0.0).astype(np.float32)
    mean = float(values[brain].mean())
    values = np.where(brain, values - mean, -mean).astype(np.float32)
    for twice in range(round(2 * (centre - reach)), round(2 * (centre + reach)) + 1):
        half = int(min(twice / 2, values.shape[1] - 1 - twice / 2, 0.6 * width))
        low = int(np.ceil(twice / 2 - half))
        high = twice - low
        window = values[:, low : high + 1]
        score = float((window * window[:, ::-1]).sum())
        if score > best_score:
            best, best_score = twice / 2, score
    return float(best)
