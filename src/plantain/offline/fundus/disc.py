"""The optic disc: where bright tissue and converging vessels meet, and the ellipse round its edge."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.fundus.aperture import Aperture
from plantain.offline.fundus.vessels import Vessels
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Field, Pixels

TYPICAL = 0.125
"""Disc diameter as a share of the field's diameter, in a 45 to 50 degree photograph."""

ANGLES = 72


@dataclass(frozen=True, slots=True)
class Disc:
    """The optic disc as an ellipse.

    Attributes:
        x, y: centre in pixels.
        width, height: horizontal and vertical diameters in pixels.
        contrast: how much brighter it is than the retina beside it, as a share of the latter.
        seen: share of its edge that was measured; the rest was fitted (it may be cut by the field's border).
    """

    x: float
    y: float
    width: float
    height: float
    contrast: float
    seen: float

    @property
    def diameter(self) -> float:
        """Mean diameter in pixels."""
        return float(np.sqrt(self.width * self.height))

    def distance(self, shape: tuple[int, ...]) -> Field:
        """float32 (H, W): 0 at the centre, 1 on the edge, growing outside."""
        ys, xs = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float32)
        return np.asarray(
            np.hypot((xs - self.x) / (self.width / 2), (ys - self.y) / (self.height / 2)), dtype=np.float32
        )


def find_disc(pixels: Pixels, aperture: Aperture, vessels: Vessels) -> Disc:
    """Finds the optic disc.

    Raises:
        CannotShow: nothing in the field is bright, of a disc's size, and where vessels converge.
    """
    step = 4
    height, width = pixels.shape[:2]
    small = cv2.resize(pixels, (width // step, height // step), interpolation=cv2.INTER_AREA)
    inside = aperture.depth[::step, ::step] > 0
    expected = 2 * aperture.radius * TYPICAL / step
    bright = _disc_brightness(small, inside, expected)
    meeting = _convergence(vessels, aperture, step, expected)
    ys, xs = np.mgrid[0 : small.shape[0], 0 : small.shape[1]].astype(np.float32) * step
    level = np.exp(-0.5 * ((ys - aperture.y) / (0.30 * aperture.radius)) ** 2)
    aside = 0.25 + 0.75 * np.clip(np.abs(xs - aperture.x) / (0.45 * aperture.radius), 0, 1)
    score = np.where(inside, np.maximum(bright, 0.0) * (0.15 + meeting) * level * aside, 0.0)
    best = int(np.argmax(score))
    y, x = divmod(best, score.shape[1])
    if score[y, x] < 0.004:
        raise CannotShow("the optic disc was not found")
    disc = Disc(float(xs[y, x]), float(ys[y, x]), expected * step, expected * step, 0.0, 0.0)
    for _ in range(3):
        disc = _fit_edge(pixels, aperture, disc, expected * step)
    if disc.contrast < 0.05 or disc.seen < 0.35:
        raise CannotShow("the optic disc was not found: no bright disc with an edge where the vessels meet")
    return disc


def _disc_brightness(small: Pixels, inside: npt.NDArray[np.bool_], expected: float) -> Field:
    """Local brightness at the disc's size against a wider surround, relative; vessels closed over first."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (7, 7))
    closed = cv2.morphologyEx(small, cv2.MORPH_CLOSE, kernel).astype(np.float32)
    weight_map = inside.astype(np.float32)
    total = np.zeros(inside.shape, np.float32)
    for channel, share in ((0, 0.45), (1, 0.55)):
        near = _blur_inside(closed[..., channel], weight_map, expected * 0.28)
        around = _blur_inside(closed[..., channel], weight_map, expected * 1.3)
        total += np.float32(share) * (near - around) / np.maximum(around, 15.0)
    return total


def _blur_inside(image: Field, weight: Field, sigma: float) -> Field:
    below = np.maximum(cv2.GaussianBlur(weight, (0, 0), sigma), 1e-3)
    return np.asarray(cv2.GaussianBlur(image * weight, (0, 0), sigma) / below, dtype=np.float32)


def _convergence(vessels: Vessels, aperture: Aperture, step: int, expected: float) -> Field:
    """Where the lines through the vessels meet, in [0, 1]: each vessel pixel votes along its own direction."""
    half = 2
    ys, xs = np.nonzero(vessels.mask[::half, ::half])
    shape = (vessels.mask.shape[0] // step, vessels.mask.shape[1] // step)
    votes = np.zeros(shape, np.float32)
    if len(ys) < 50:
        return votes
    every = max(len(ys) // 4000, 1)
    ys, xs = ys[::every] * half, xs[::every] * half
    angle = vessels.angle[ys, xs]
    weight = np.minimum(vessels.ridge[ys, xs], 0.08) * vessels.scale[ys, xs]
    reach = np.arange(-0.5, 0.5, 0.012, dtype=np.float32) * aperture.radius
    px = ((xs[:, None] + reach * np.cos(angle)[:, None]) / step).astype(np.int64)
    py = ((ys[:, None] + reach * np.sin(angle)[:, None]) / step).astype(np.int64)
    valid = (px >= 0) & (px < shape[1]) & (py >= 0) & (py < shape[0])
    flat = (py * shape[1] + px)[valid]
    counts = np.bincount(
        flat, weights=np.broadcast_to(weight[:, None], px.shape)[valid], minlength=votes.size
    )
    votes = cv2.GaussianBlur(counts.reshape(shape).astype(np.float32), (0, 0), expected * 0.25)
    return np.asarray(votes / max(float(votes.max()), 1e-6), dtype=np.float32)


def _fit_edge(pixels: Pixels, aperture: Aperture, disc: Disc, expected: float) -> Disc:
    """One refinement: the steepest outward fall of brightness on each ray, then an ellipse through it."""
    radii = np.arange(0.26 * expected, 0.86 * expected, 1.0, dtype=np.float32)
    theta = np.linspace(0, 2 * np.pi, ANGLES, endpoint=False, dtype=np.float32)
    map_x = disc.x + radii[None, :] * np.cos(theta)[:, None]
    map_y = disc.y + radii[None, :] * np.sin(theta)[:, None]
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (17, 17))
    x0, y0 = (max(int(value - 1.3 * expected), 0) for value in (disc.x, disc.y))
    x1, y1 = int(disc.x + 1.3 * expected), int(disc.y + 1.3 * expected)
    patch = cv2.morphologyEx(pixels[y0:y1, x0:x1], cv2.MORPH_CLOSE, kernel).astype(np.float32)
    tone = cv2.GaussianBlur(0.5 * patch[..., 0] + 0.5 * patch[..., 1], (0, 0), 2.0)
    rays = cv2.remap(tone, map_x - x0, map_y - y0, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    lit = cv2.remap(aperture.depth, map_x, map_y, cv2.INTER_LINEAR) > 4
    fall = cv2.GaussianBlur(rays[:, :-6] - rays[:, 6:], (1, 7), sigmaX=0.1, sigmaY=1.5)
    middle = radii[3:-3]
    prior = np.exp(-0.5 * ((middle - 0.5 * expected) / (0.2 * expected)) ** 2)
    cost = np.where(lit[:, 6:], np.maximum(fall, 0.0) * prior, 0.0)
    path = _smooth_path(cost)
    strength = cost[np.arange(ANGLES), path]
    good = strength > 0.25 * float(np.quantile(strength, 0.8)) + 1e-3
    radius = middle[path]
    if good.sum() < ANGLES // 4:
        return Disc(disc.x, disc.y, disc.width, disc.height, 0.0, float(good.mean()))
    edge_x = disc.x + radius[good] * np.cos(theta[good])
    edge_y = disc.y + radius[good] * np.sin(theta[good])
    x, y, wide, high = _axis_ellipse(edge_x, edge_y, disc, expected)
    inner = float(np.median(rays[:, : max(int(0.1 * expected), 2)][lit[:, : max(int(0.1 * expected), 2)]]))
    outer_ray = rays[:, -max(int(0.12 * expected), 2) :]
    outer_lit = lit[:, -max(int(0.12 * expected), 2) :]
    # A crescent or a halo may lie along half of it.
    outer = float(np.quantile(outer_ray[outer_lit], 0.35)) if outer_lit.any() else inner
    return Disc(x, y, wide, high, inner / max(outer, 1.0) - 1.0, float(good.mean()))


def _smooth_path(cost: Field) -> npt.NDArray[np.int64]:
    """The radius per ray that maximises edge strength while neighbouring rays differ by at most two pixels."""
    rays, length = cost.shape
    doubled = np.concatenate([cost, cost])
    total = doubled[0].copy()
    back = np.zeros((2 * rays, length), dtype=np.int64)
    offsets = np.arange(-2, 3)
    index = np.arange(length)
    for row in range(1, 2 * rays):
        padded = np.pad(total, 2, constant_values=-1e9)
        choices = np.stack([padded[2 + o : 2 + o + length] - 0.15 * abs(int(o)) for o in offsets])
        pick = np.argmax(choices, axis=0)
        back[row] = np.clip(index + offsets[pick], 0, length - 1)
        total = choices[pick, index] + doubled[row]
    path = np.zeros(2 * rays, dtype=np.int64)
    path[-1] = int(np.argmax(total))
    for row in range(2 * rays - 1, 0, -1):
        path[row - 1] = back[row, path[row]]
    half = rays // 2
    return np.concatenate([path[rays : rays + half], path[half:rays]])


def _axis_ellipse(
    edge_x: Field, edge_y: Field, disc: Disc, expected: float
) -> tuple[float, float, float, float]:
    """Upright ellipse through edge points by robust least squares, kept within a disc's proportions."""
    u, v = (edge_x - disc.x) / expected, (edge_y - disc.y) / expected
    chosen = np.ones(len(u), dtype=bool)
    cx = cy = 0.0
    a = b = 0.5
    for _ in range(4):
        design = np.column_stack([u, v, u * 0 + 1, v**2])[chosen]
        solution, *_ = np.linalg.lstsq(design, -(u[chosen] ** 2), rcond=None)
        d, e, f, c = (float(value) for value in solution)
        c = float(np.clip(c, 0.55, 1.8))
        cx, cy = -d / 2, -e / (2 * c)
        square = cx**2 + c * cy**2 - f
        if square <= 0:
            break
        a, b = float(np.sqrt(square)), float(np.sqrt(square / c))
        error = np.abs(np.hypot((u - cx) / a, (v - cy) / b) - 1)
        chosen = error < max(0.12, 1.5 * float(np.median(error)))
    wide = float(np.clip(2 * a, 0.6, 1.6)) * expected
    high = float(np.clip(2 * b, 0.6, 1.6)) * expected
    x = disc.x + float(np.clip(cx, -0.5, 0.5)) * expected
    y = disc.y + float(np.clip(cy, -0.5, 0.5)) * expected
    return x, y, wide, high
