"""Finds a mass of the sella from the pixels alone: an even body on the midline that dark or fluid surrounds."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.brain.anatomy import STEP, Brain
from plantain.offline.brain.protocol import Protocol
from plantain.offline.brain.sella import dark, expected, hull
from plantain.offline.brain.symmetry import find_midline, working
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate

RAYS = 96

REACH_MM = 19.0
"""No farther from its middle is the border of a mass looked for."""

SEED_MM = (1.4, 16.0)
"""Radius of the largest even disk in it, from and to."""

CANDIDATES = 16

STEEP = 3
"""By so many pixels may the border's distance differ between neighbouring rays."""

FREE = 0.6
"""Share of the outline that must be dark or fluid outside; what healthy slices show has at most 0.52."""

LARGE_MM, DARKER, UNEVEN = 8.0, 0.97, 0.05
"""Of a mass that fills the cistern: mean radius, level over that of grey matter, spread over its level."""

OFF_MIDLINE_MM = 4.5

SHADING = {"stripped": 0.07, "whole": 0.10}
"""By what share the level may drift inside a mass; a coil near the skull makes more of it."""

FRINGE_MM = 4.0
"""So far does the blurred border of a mass reach into the dark round it."""


def find_mass(brain: Brain, protocol: Protocol) -> Mask:
    """The body of a mass where the sella should be, with its blurred border.

    Returns:
        bool (H, W).

    Raises:
        CannotShow: there is none.
    """
    small = working(brain.gray)
    around = dark(small, protocol) | ~hull(brain).astype(np.bool_)
    if protocol.sequence == "T2":
        around |= np.abs(small - protocol.fluid) < 0.25 * abs(protocol.fluid - protocol.grey)
    slope = cv2.GaussianBlur(
        np.hypot(cv2.Sobel(small, cv2.CV_32F, 1, 0), cv2.Sobel(small, cv2.CV_32F, 0, 1)) / 8, (0, 0), 0.8
    )
    even = (~around) & (slope < 0.065 * protocol.grey)
    room = cv2.distanceTransform(even.astype(np.uint8), cv2.DIST_L2, 5)
    room = np.where(expected(brain, protocol), room, 0)
    gray = cv2.GaussianBlur(brain.gray, (0, 0), 1.5)
    free = cv2.resize(around.astype(np.uint8), gray.shape[::-1], interpolation=cv2.INTER_NEAREST) > 0
    y, x = np.mgrid[: small.shape[0], : small.shape[1]]
    for _ in range(CANDIDATES):
        row, column = (int(at) for at in np.unravel_index(int(np.argmax(room)), room.shape))
        radius = float(room[row, column])
        if not SEED_MM[0] <= radius * STEP * protocol.mm <= SEED_MM[1]:
            break
        disk = np.hypot(y - row, x - column) < radius
        room = np.where(disk, 0, room)
        if _is_no_mass(float(np.median(small[disk])), protocol):
            continue
        centre = ((column + 0.5) * STEP, (row + 0.5) * STEP)
        shading = SHADING["stripped" if brain.stripped else "whole"]
        body, bounded = _outlined(gray, free, centre, radius * STEP, protocol, shading)
        if not _on_midline(brain, body, protocol):
            continue
        if bounded >= FREE or _fills_the_cistern(gray, body, protocol):
            return _with_fringe(gray, body, protocol)
    raise CannotShow("no pituitary tumour found")


def _outlined(
    gray: Field,
    free: Mask,
    centre: tuple[float, float],
    radius: float,
    protocol: Protocol,
    shading: float,
) -> tuple[Mask, float]:
    """The body round an even disk, and the share of its outline that is free of brain.

    Along each ray the border lies where most of what is inside is of the disk's level and a step follows;
    neighbouring rays agree.
    """
    x, y = centre
    reach = np.arange(0, REACH_MM / protocol.mm, 1.0, dtype=np.float32)
    theta = np.linspace(0, 2 * np.pi, RAYS, endpoint=False, dtype=np.float32)
    body = np.zeros(gray.shape, np.uint8)
    ends = np.zeros((RAYS, 2), np.float32)
    level, spread = _level(gray, x, y, 0.8 * radius)
    tolerance = max(shading * level, 2.0 * spread)
    for _ in range(3):
        map_x = (x + reach[None, :] * np.cos(theta)[:, None]).astype(np.float32)
        map_y = (y + reach[None, :] * np.sin(theta)[:, None]).astype(np.float32)
        rays = cv2.remap(gray, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        like = np.clip(1 - np.abs(rays - level) / tolerance, -2.0, 1.0) * protocol.mm
        step = np.abs(np.roll(rays, -3, axis=1) - np.roll(rays, 3, axis=1)) / level
        step[:, :3], step[:, -3:] = 0, 0
        gain = np.cumsum(like, axis=1) + 2.0 * np.minimum(step, 0.5)
        at = _agreeing(gain.astype(np.float32))
        ends = np.column_stack([map_x[np.arange(RAYS), at], map_y[np.arange(RAYS), at]])
        body[:] = 0
        cv2.fillPoly(body, [np.rint(ends).astype(np.int32)], 1)
        ys, xs = np.nonzero(body)
        x, y = float(xs.mean()), float(ys.mean())
    outward = ends - np.array([x, y])
    outward /= np.maximum(np.hypot(outward[:, :1], outward[:, 1:]), 1e-3)
    seen = np.zeros(RAYS, np.bool_)
    for away in (1.0, 2.0, 3.0):
        px, py = np.rint(ends + outward * away / protocol.mm).astype(int).T
        inside = (px >= 0) & (py >= 0) & (px < gray.shape[1]) & (py < gray.shape[0])
        seen |= ~inside | free[np.clip(py, 0, gray.shape[0] - 1), np.clip(px, 0, gray.shape[1] - 1)]
    return body.astype(np.bool_), float(seen.mean())


def _level(gray: Field, x: float, y: float, radius: float) -> tuple[float, float]:
    rows, columns = np.mgrid[: gray.shape[0], : gray.shape[1]]
    values = gray[np.hypot(rows - y, columns - x) <= max(radius, 3.0)]
    level = float(np.median(values))
    return max(level, 1.0), 1.4826 * float(np.median(np.abs(values - level)))


def _agreeing(gain: Field) -> npt.NDArray[np.int64]:
    """Per ray the distance of greatest gain in total while neighbours differ little; the rays form a ring."""
    rays, length = gain.shape
    doubled = np.concatenate([gain, gain])
    total = doubled[0].copy()
    back = np.zeros((2 * rays, length), np.int64)
    offsets = np.arange(-STEEP, STEEP + 1)
    index = np.arange(length)
    for row in range(1, 2 * rays):
        padded = np.pad(total, STEEP, constant_values=-1e9)
        choices = np.stack([padded[STEEP + o : STEEP + o + length] for o in offsets])
        pick = np.argmax(choices, axis=0)
        back[row] = np.clip(index + offsets[pick], 0, length - 1)
        total = choices[pick, index] + doubled[row]
    path = np.zeros(2 * rays, np.int64)
    path[-1] = int(np.argmax(total))
    for row in range(2 * rays - 1, 0, -1):
        path[row - 1] = back[row, path[row]]
    half = rays // 2
    return np.concatenate([path[rays : rays + half], path[half:rays]])


def _on_midline(brain: Brain, body: Mask, protocol: Protocol) -> bool:
    """A thalamus beside the ventricles is even and bounded too, but lies to one side."""
    if protocol.plane == "sagittal":
        return True
    ys, xs = np.nonzero(body)
    x, y = (np.full(1, axis.mean(), np.float32) for axis in (xs, ys))
    return bool(abs(float(find_midline(brain).offset(x, y)[0])) * protocol.mm < OFF_MIDLINE_MM)


def _is_no_mass(level: float, protocol: Protocol) -> bool:
    """As bright as fluid on T2, or as the white matter of the brain stem on T1 without contrast medium."""
    if protocol.sequence == "T2":
        return level > 0.5 * (protocol.fluid + protocol.grey)
    limit = protocol.grey + max(0.3 * (protocol.white - protocol.grey), 0.08 * protocol.grey)
    return protocol.sequence == "T1" and not protocol.enhanced and level > limit


def _fills_the_cistern(gray: Field, body: Mask, protocol: Protocol) -> bool:
    """A large mass leaves no dark round it on an axial T1 slice; then it is known by being large, even and darker
    than the grey matter: in health that place is dark or holds the brighter stem."""
    if protocol.plane != "axial" or protocol.sequence != "T1" or protocol.enhanced:
        return False
    core = ~dilate(~body, 1.0 / protocol.mm) & body
    if np.sqrt(body.sum() / np.pi) * protocol.mm < LARGE_MM or not core.any():
        return False
    level = float(np.median(gray[core]))
    return level < DARKER * protocol.grey and float(gray[core].std()) < UNEVEN * level


def _with_fringe(gray: Field, body: Mask, protocol: Protocol) -> Mask:
    """The body and the ramp from it into dark or fluid; where it touches brain the border stands."""
    level = float(np.median(gray[body]))
    ramp = gray < 0.88 * level
    if protocol.sequence == "T2":
        ramp |= gray > 1.15 * level
    fringe = dilate(body, FRINGE_MM / protocol.mm) & ramp
    whole = cv2.morphologyEx((body | fringe).astype(np.uint8), cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    outlines, _ = cv2.findContours(whole, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(whole, outlines, -1, 1, cv2.FILLED)
    return np.asarray(whole, np.bool_)
