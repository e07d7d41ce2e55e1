"""The inner table as a line to build on: its points, where bone surely lies over it, and how smooth it is."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
from scipy.ndimage import uniform_filter1d

from plantain.offline.brain.anatomy import Brain
from plantain.offline.brain.protocol import Protocol
from plantain.pixels.arrays import Field

BONE_MM = 9.0
"""So far outside the inner table lies the scalp, at most."""


def outline(brain: Brain) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Points on the inner table every 4 pixels or so, and the smoothed unit normal into the brain."""
    contours, _ = cv2.findContours(brain.inside.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    line = max(contours, key=cv2.contourArea)[:, 0, :].astype(np.float64)
    kernel = np.hanning(81)
    kernel /= kernel.sum()
    smooth = np.column_stack(
        [np.convolve(np.r_[c[-40:], c, c[:40]], kernel, "valid") for c in (line[:, 0], line[:, 1])]
    )
    tangent = np.roll(smooth, -6, axis=0) - np.roll(smooth, 6, axis=0)
    tangent /= np.maximum(np.hypot(tangent[:, 0], tangent[:, 1]), 1e-6)[:, None]
    normal = np.column_stack([-tangent[:, 1], tangent[:, 0]])
    inward = brain.centre - smooth
    if float((normal * inward).sum(axis=1).mean()) < 0:
        normal = -normal
    return line[::4], normal[::4]


def under_bone(
    brain: Brain,
    protocol: Protocol,
    line: npt.NDArray[np.float64],
    normal: npt.NDArray[np.float64],
    half: float,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Whether the dark line of the bone lies along a base at each point, and on how much of it that is surely bone.

    Surely is with scalp beyond it, for the air around a head is dark as well, and with nothing as dark further in.
    """
    gray = cv2.GaussianBlur(brain.gray, (0, 0), 1.5)

    def seen(low: float, high: float) -> Field:
        steps = np.arange(low / protocol.mm, high / protocol.mm, 2.0)
        x, y = (line[:, i : i + 1] + normal[:, i : i + 1] * steps for i in (0, 1))
        found: Field = cv2.remap(gray, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR)
        return found

    def share(where: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        reach = max(int(half / 4), 4)
        return np.asarray(uniform_filter1d(where.astype(np.float64), 2 * reach + 1, mode="wrap"), np.float64)

    dark, bone = seen(-5.0, 1.0).min(axis=1), seen(-BONE_MM, 1.0).min(axis=1)
    scalp, within = seen(-2 * BONE_MM, -2.0).max(axis=1), seen(1.5, BONE_MM).min(axis=1)
    surely = scalp > bone + 0.15 * protocol.grey
    surely &= within > np.minimum(bone + 0.1 * protocol.grey, protocol.fluid)
    return share(dark < 0.45 * protocol.grey) > 0.85, share(surely)


def roughness(
    line: npt.NDArray[np.float64], normal: npt.NDArray[np.float64], half: float
) -> npt.NDArray[np.float64]:
    """How far the inner table under a base at each point strays from one smooth arc, in pixels."""
    reach = max(int(half / 4), 4)
    arc = np.arange(-reach, reach + 1, max(reach // 4, 1))
    result = np.empty(len(line))
    for index in range(len(line)):
        near = line[(index + arc) % len(line)] - line[index]
        nx, ny = normal[index]
        t, q = near[:, 0] * -ny + near[:, 1] * nx, near[:, 0] * nx + near[:, 1] * ny
        basis = np.column_stack([np.ones_like(t), t, t * t])
        fit, *_ = np.linalg.lstsq(basis, q, rcond=None)
        bend = -float(fit[2]) * half * half
        result[index] = np.abs(basis @ fit - q).max() + max(bend, 0.0)
    return result
