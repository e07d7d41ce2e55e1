"""Plane, sequence and view of a brain slice, estimated from its pixels; "unknown" where the estimate is uncertain.

Linear rules over measurements on a small copy: the outline of the head against its mirror image, where it is bright and
dark, and the levels of fluid, cortex, depth and scalp against each other. Their numbers were fitted to slices that were
labelled by eye; they are in brain_slice.json. They are for whole heads: without a skull nothing is estimated.
Contrast medium is not estimated: a bright lesion is not evidence of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np

from plantain.pixels.arrays import Field, Floats, Image, Mask
from plantain.pixels.frame import without_frame

RULES = Path(__file__).with_name("brain_slice.json")

UNKNOWN = "unknown"

PLANES = ("axial", "coronal", "sagittal")
STATED = ("T1", "T1+C", "T2", "FLAIR", "PD")
"""Sequences that may be stated of a slice; T1, T2 and FLAIR are estimated."""
WITH_SELLA, WITHOUT_SELLA = "sella", "without sella"
"""Views with and without the sella or the cistern above it."""

_SIDE = 192
_SKULL = 0.15
"""Fall of the level between scalp and brain, over the typical one, that shows a skull: 243 of 250 whole heads have
more; slices of an average brain without its skull have 0.11 at most."""
_SECTORS = 24
_CELLS, _FINE_CELLS = 6, 16
"""Rows and columns of mean levels in the head's box; the finer ones show at which level it was cut."""


@dataclass(frozen=True, slots=True)
class SliceEstimate:
    """The estimated plane, sequence and view of a brain slice.

    Attributes:
        plane: "axial", "coronal", "sagittal" or "unknown".
        sequence: "T1", "T2", "FLAIR" or "unknown".
        view: "without sella" or "unknown"; a visible sella is not recognised.
        plane_confidence, sequence_confidence, view_confidence: probability of the likeliest class; 0 without a head.
    """

    plane: str = UNKNOWN
    sequence: str = UNKNOWN
    plane_confidence: float = 0.0
    sequence_confidence: float = 0.0
    view: str = UNKNOWN
    view_confidence: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _LinearRule:
    """Softmax over a weighted sum of standardised measurements; `least` is the probability a class needs."""

    classes: tuple[str, ...]
    middle: Floats
    spread: Floats
    weights: Floats
    least: float

    def classify(self, measured: Floats) -> tuple[str, float]:
        """Return the likeliest class, "unknown" if it is not likely enough, and its probability."""
        scores = np.concatenate([[1.0], (measured - self.middle) / self.spread]) @ self.weights
        shares = np.exp(scores - scores.max())
        best = int(shares.argmax())
        likely = float(shares[best] / shares.sum())
        return (self.classes[best] if likely >= self.least else UNKNOWN), round(likely, 2)


def estimate_slice(pixels: Image) -> SliceEstimate:
    """Estimate a slice's plane, sequence and view, each with a confidence; "unknown" if uncertain.

    Args:
        pixels: uint8 (H, W, 3) or (H, W), a slice with dark air around the head.
    """
    measured = _measured(pixels)
    if measured is None:
        return SliceEstimate()
    rules, (coarse, fine) = _rules(), measured
    plane, sure_plane = rules["plane"].classify(coarse)
    sequence, sure_sequence = rules["sequence"].classify(coarse)
    view, sure_view = rules["view"].classify(fine)
    view = UNKNOWN if view == WITH_SELLA else view
    return SliceEstimate(plane, sequence, sure_plane, sure_sequence, view, sure_view)


@cache
def _rules() -> Mapping[str, _LinearRule]:
    rules = {}
    for name, rule in json.loads(RULES.read_text("utf-8")).items():
        middle, spread, weights = (np.array(rule[key]) for key in ("middle", "spread", "weights"))
        rules[name] = _LinearRule(tuple(rule["classes"]), middle, spread, weights, float(rule["least"]))
    return rules


def _measured(pixels: Image) -> tuple[Floats, Floats] | None:
    """Return measurements for plane and sequence, (F,), and for the view, (G,); None without a head with a skull."""
    height, width = pixels.shape[:2]
    scale = _SIDE / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    gray = small if small.ndim == 2 else cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    level = cv2.GaussianBlur(without_frame(gray.astype(np.float32)), (5, 5), 0)
    head = _head(level)
    if head is None or not _has_skull(level, head):
        return None
    rows, columns = np.flatnonzero(head.any(axis=1)), np.flatnonzero(head.any(axis=0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    touches = float(head[-1].mean())
    whole = np.concatenate([_outline(head[box], touches), _levels(level[box], head[box])])
    coarse, fine = (_map(level[box], head[box], cells) for cells in (_CELLS, _FINE_CELLS))
    return np.concatenate([whole, coarse]), np.concatenate([whole, fine])


def _head(level: Field) -> Mask | None:
    """Return the head, filled; None if it is not distinct from the air."""
    border = np.concatenate([level[0], level[-1], level[:, 0], level[:, -1]])
    air = float(np.percentile(border, 30))
    bright = float(np.percentile(level, 99))
    if air > 70 or bright - air < 40:
        return None
    lit = (level > air + 0.12 * (bright - air)).astype(np.uint8)
    lit = cv2.morphologyEx(lit, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    shapes, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    if not shapes:
        return None
    largest = max(shapes, key=cv2.contourArea)
    if cv2.contourArea(largest) < 0.1 * level.size:
        return None
    filled = np.zeros(level.shape, np.uint8)
    cv2.drawContours(filled, [largest], 0, 1, -1)
    return np.asarray(filled, np.bool_)


def _has_skull(level: Field, head: Mask) -> bool:
    """Return True if half of the directions have a dark band between a bright rim and a bright inside.

    By direction, since the rim's fat is as bright as a tumour or as dark as the band, and not everywhere so.
    """
    depth = cv2.distanceTransform(np.pad(head.astype(np.uint8), 1), cv2.DIST_L2, 3)[1:-1, 1:-1]
    typical = max(float(np.median(level[depth > 0.28 * float(depth.max())])), 1.0)
    rows, columns = np.nonzero(head & (depth >= 0.5) & (depth < 24.5))
    shell = ((depth[rows, columns] - 0.5) / 1.5).astype(np.intp)
    angle = np.arctan2(rows - np.nonzero(head)[0].mean(), columns - np.nonzero(head)[1].mean())
    sector = ((angle + np.pi) / (2 * np.pi) * _SECTORS).astype(np.intp) % _SECTORS
    values = level[rows, columns] / typical
    falls = []
    for one in range(_SECTORS):
        own = sector == one
        course = np.array([float(np.median(values[own & (shell == k)])) for k in np.unique(shell[own])])
        if course.size >= 4:
            outer = np.maximum.accumulate(course)
            inner = np.maximum.accumulate(course[::-1])[::-1]
            falls.append(float((np.minimum(outer, inner) - course).max()))
    return bool(falls) and float(np.median(falls)) > _SKULL


def _outline(head: Mask, touches: float) -> Floats:
    """Compare the outline with its mirror image and its ellipse; measure its proportions and its ends."""
    height, width = head.shape
    ellipse = np.zeros(head.shape, np.uint8)
    cv2.ellipse(ellipse, ((width / 2, height / 2), (width, height), 0.0), 1, -1)
    tall = max(1, round(0.15 * height))
    return np.array(
        [
            _overlap(head, head[:, ::-1]),
            _overlap(head, ellipse.astype(np.bool_)),
            np.log(height / width),
            float(head.mean()),
            float(head[-tall:].mean()),
            float(head[:tall].mean()),
            touches,
        ]
    )


def _levels(level: Field, head: Mask) -> Floats:
    """Return logarithms of the levels of fluid, cortex, depth and scalp over the typical one of the inside."""
    padded = np.pad(head.astype(np.uint8), 1)
    depth = cv2.distanceTransform(padded, cv2.DIST_L2, 3)[1:-1, 1:-1]
    depth /= float(depth.max())
    inner = level[depth > 0.28]
    typical = max(float(np.median(inner)), 1.0)

    def over(values: Field, *shares: float) -> list[float]:
        found = np.percentile(values, shares) if values.size else np.full(len(shares), typical)
        return [float(np.clip(np.log(max(value, 1.0) / typical), -3.0, 3.0)) for value in found]

    low, middle, high = np.percentile(inner, [3, 50, 97])
    return np.array(
        [
            *over(inner, 3, 25, 75, 97),
            *over(level[head & (depth < 0.12)], 50, 90),
            *over(level[(depth > 0.3) & (depth < 0.45)], 5, 50, 95),
            *over(level[(depth > 0.45) & (depth < 0.7)], 25, 50, 75),
            *over(level[depth > 0.7], 2, 50, 98),
            float(((high - middle) - (middle - low)) / max(high - low, 1.0)),
        ]
    )


def _map(level: Field, head: Mask, count: int) -> Floats:
    """Return levels of the cells of the head's box, both halves averaged, and the differences of the halves."""
    typical = max(float(np.median(level[head])), 1.0)
    cells = cv2.resize(level / np.float32(typical), (count, count), interpolation=cv2.INTER_AREA)
    cells = np.clip(cells, 0.0, 3.0).astype(np.float64)
    mirrored = cells[:, ::-1]
    half = count // 2
    together, apart = (cells + mirrored)[:, :half] / 2, np.abs(cells - mirrored)[:, :half]
    found: Floats = np.concatenate([together.ravel(), apart.ravel()])
    return found


def _overlap(one: Mask, other: Mask) -> float:
    """Return the intersection over union."""
    return float((one & other).sum() / max(1, (one | other).sum()))
