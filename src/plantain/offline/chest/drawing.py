"""Finds roughly where the lungs are: a drawn pair of lungs matched to the picture over sizes and places.

The match is a masked correlation at low resolution against local contrast, so that exposure, window and
disease move it little; its height says whether there is a frontal chest at all.
"""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Field, Floats, Mask

# The drawing: corners of each border in units of the lungs' bounding box, apex to base. Image-left lung first.
_RIGHT = {
    "medial": [
        (0.27, 0.0), (0.345, 0.03), (0.39, 0.09), (0.405, 0.20), (0.41, 0.35), (0.40, 0.45),
        (0.385, 0.55), (0.37, 0.65), (0.37, 0.75), (0.39, 0.845),
    ],
    "diaphragm": [(0.39, 0.845), (0.32, 0.80), (0.24, 0.79), (0.15, 0.82), (0.08, 0.89), (0.025, 0.98)],
    "lateral": [
        (0.025, 0.98), (0.005, 0.85), (0.0, 0.7), (0.015, 0.55), (0.04, 0.4), (0.08, 0.25),
        (0.135, 0.12), (0.20, 0.03), (0.27, 0.0),
    ],
}  # fmt: skip
_LEFT = {
    "medial": [
        (0.73, 0.0), (0.655, 0.03), (0.61, 0.09), (0.59, 0.20), (0.595, 0.29), (0.585, 0.37), (0.61, 0.47),
        (0.65, 0.57), (0.70, 0.67), (0.745, 0.77), (0.765, 0.85),
    ],
    "diaphragm": [(0.765, 0.85), (0.82, 0.825), (0.88, 0.85), (0.93, 0.90), (0.975, 0.99)],
    "lateral": [
        (0.975, 0.99), (0.995, 0.85), (1.0, 0.7), (0.985, 0.55), (0.96, 0.4), (0.92, 0.25),
        (0.865, 0.12), (0.80, 0.03), (0.73, 0.0),
    ],
}  # fmt: skip
_COUNTS = {"medial": 44, "diaphragm": 26, "lateral": 50}
_SIDES = {"right": _RIGHT, "left": _LEFT}


def _sample(corners: list[tuple[float, float]], count: int) -> Floats:
    """`count` points evenly along a Catmull-Rom curve through the corners."""
    knots = np.array([corners[0], *corners, corners[-1]], dtype=np.float64)
    t = np.linspace(0, 1, 12, endpoint=False)[:, None]
    pieces = [
        0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
        for a, b, c, d in zip(knots, knots[1:], knots[2:], knots[3:], strict=False)
    ]
    curve = np.vstack([*pieces, knots[-1:]])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(curve, axis=0).T))])
    at = np.linspace(0, along[-1], count)
    return np.stack([np.interp(at, along, curve[:, 0]), np.interp(at, along, curve[:, 1])], axis=1)


@cache
def outline(side: str) -> Floats:
    """The drawn lung as one closed outline: medial down, diaphragm outwards, lateral up; corners once."""
    drawn = _SIDES[side]
    parts = [_sample(drawn[name], _COUNTS[name] + 1)[:-1] for name in ("medial", "diaphragm", "lateral")]
    return np.vstack(parts)


def exposed_field(gray: Field) -> Mask:
    """Where film was exposed: not the black padding or collimation that touches the picture's edge."""
    small = cv2.resize(gray, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
    dark = (cv2.GaussianBlur(small, (0, 0), 1.0) < 6).astype(np.uint8)
    framed = cv2.copyMakeBorder(dark, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=1)
    filled = np.zeros((framed.shape[0] + 2, framed.shape[1] + 2), np.uint8)
    cv2.floodFill(framed, filled, (0, 0), 2)
    field = (framed[1:-1, 1:-1] != 2).astype(np.uint8)
    exposed: Mask = cv2.resize(field, gray.shape[::-1], interpolation=cv2.INTER_NEAREST) > 0
    return exposed


def local_contrast(gray: Field, field: Mask) -> Field:
    """Local contrast: each place against its neighbourhood, so that exposure, window and trends do not matter."""
    side = 128
    small = cv2.resize(gray, (side, side), interpolation=cv2.INTER_AREA)
    inside = cv2.resize(field.astype(np.float32), (side, side), interpolation=cv2.INTER_AREA)
    spread = 25.0
    weight = np.maximum(cv2.GaussianBlur(inside, (0, 0), spread), 1e-3)
    mean = cv2.GaussianBlur(small * inside, (0, 0), spread) / weight
    variance = cv2.GaussianBlur(inside * (small - mean) ** 2, (0, 0), spread) / weight
    flat = (small - mean) / np.sqrt(variance + 64.0)
    wide: Field = cv2.resize(flat.astype(np.float32), gray.shape[::-1], interpolation=cv2.INTER_LINEAR)
    return wide


@cache
def _template(width: int, height: int) -> tuple[Field, Field]:
    """The drawing as a picture and its weights: lungs dark, mediastinum, wall and abdomen bright."""
    margin_x, margin_y = max(1, round(0.07 * width)), max(1, round(0.05 * height))
    below = round(0.18 * height)
    canvas = np.ones((height + margin_y + below, width + 2 * margin_x), np.float32)
    weight = np.zeros_like(canvas)
    scale = np.array([width, height])
    for side in _SIDES:
        lung = np.round(outline(side) * scale + (margin_x, margin_y)).astype(np.int32)
        cv2.fillPoly(canvas, [lung], 0.0)
    hull = np.vstack([outline("right"), outline("left")]) * scale + (margin_x, margin_y)
    cv2.fillConvexPoly(weight, cv2.convexHull(np.round(hull).astype(np.int32)), 1.0)
    weight = cv2.dilate(weight, np.ones((2 * margin_y + 1, 2 * margin_x + 1), np.uint8))
    weight[margin_y + round(0.85 * height) :, 2 * margin_x : -2 * margin_x] = 1.0
    weight[: margin_y + round(0.03 * height)] *= 0.3
    return cv2.GaussianBlur(canvas, (0, 0), max(0.8, 0.02 * width)), weight


def locate(flat: Field) -> tuple[float, npt.NDArray[np.float64]]:
    """Best place of the drawing: (correlation, box x, y, width, height in pixels of `flat`)."""
    side = 72
    factor = flat.shape[0] / side
    small = cv2.resize(flat, (side, side), interpolation=cv2.INTER_AREA)
    # A picture may end at the diaphragm: below its last rows the abdomen is assumed to go on.
    small = cv2.copyMakeBorder(small, 6, 12, 6, 6, cv2.BORDER_REPLICATE)
    best, found, box = -1.0, -1.0, np.zeros(4)
    for width in range(28, 70, 3):
        for aspect in (0.66, 0.76, 0.86, 0.96, 1.08, 1.22):
            height = round(width * aspect)
            picture, weight = _template(width, height)
            if picture.shape[0] > small.shape[0] or picture.shape[1] > small.shape[1]:
                continue
            match = cv2.matchTemplate(small, picture, cv2.TM_CCOEFF_NORMED, mask=weight)
            match[~np.isfinite(match)] = -1.0
            _, score, _, (x, y) = cv2.minMaxLoc(match)
            # A small drawing fits part of a lung; of near ties the larger explains more of the picture.
            if score + 0.0008 * (width + height) > best:
                best, found = score + 0.0008 * (width + height), score
                left, top = x + max(1, round(0.07 * width)) - 6, y + max(1, round(0.05 * height)) - 6
                box = np.array([left, top, width, height]) * factor
    return found, box
