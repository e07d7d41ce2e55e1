"""Finds the lungs, their borders and the heart on a frontal chest radiograph by classical means.

Image left is the patient's right. Everything that a renderer needs to know of a picture stands in one `Chest`.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.chest.drawing import exposed_field, local_contrast, locate
from plantain.offline.chest.outline import Lung, trace_lung
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Field, Mask, Pixels

LEAST_AGREEMENT = 0.715
"""Below this correlation no frontal chest is believed; real ones reach 0.74 and more."""

STEEPEST_NODULE = 24.0
"""Grey levels a pixel: a nodule's border is blurred by its roundness, that of an electrode or a letter is not."""


@dataclass(frozen=True, slots=True, eq=False)
class Chest:
    """What is found on one frontal radiograph. Lungs are named by the patient's side.

    Attributes:
        right, left: the lungs.
        field: bool (H, W), the exposed field: neither padding nor collimated border.
        protected: bool (H, W), markers, text, tubes and wires, to be left as they are.
        midline: x of the spine.
        agreement: correlation of the drawing with the picture, at most 1.
    """

    right: Lung
    left: Lung
    field: Mask
    protected: Mask
    midline: float
    agreement: float

    def lung(self, side: str) -> Lung:
        return self.left if side == "left" else self.right

    @property
    def thoracic_width(self) -> float:
        """Largest inner width of the thorax at one height, in pixels."""
        rows = np.arange(max(self.left.top, self.right.top), min(self.left.bottom, self.right.bottom))
        return float((self.left.wall_at(rows) - self.right.wall_at(rows)).max())

    @property
    def heart_rows(self) -> tuple[float, float]:
        """y of the upper and lower end of the heart's borders: from below the hila to the diaphragm."""
        top = (self.right.top + self.left.top) / 2
        low = min(self.right.medial[-1, 1], self.left.medial[-1, 1])
        return float(top + 0.52 * (low - top)), float(low)

    @property
    def heart_borders(self) -> tuple[float, float]:
        """x of the heart's outermost borders: the patient's right one (small x) and left one (large x)."""
        rows = np.arange(*self.heart_rows)
        return float(self.right.medial_at(rows).min()), float(self.left.medial_at(rows).max())

    @property
    def cardiothoracic_ratio(self) -> float:
        low, high = self.heart_borders
        return (high - low) / self.thoracic_width


def _bright_structures(gray: Field, field: Mask) -> Mask:
    """Markers, text, tubes and wires: far brighter than what lies around them within a few pixels."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (25, 25))
    hat = cv2.morphologyEx(gray, cv2.MORPH_TOPHAT, kernel)
    level = np.percentile(hat[field], 99.0) if field.any() else 255.0
    seeds = hat > max(70.0, 2.0 * level)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(
        (hat > max(40.0, 1.2 * level)).astype(np.uint8), connectivity=8
    )
    keep = np.zeros(count, bool)
    keep[np.unique(labels[seeds])] = True
    keep[0] = False
    keep &= stats[:, cv2.CC_STAT_AREA] >= 120
    keep &= ~_soft_and_round(gray, labels, stats)
    grown: Mask = cv2.dilate(keep[labels].astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    return grown


def _soft_and_round(gray: Field, labels: npt.NDArray[np.int32], stats: npt.NDArray[np.int32]) -> Mask:
    """Which parts are nodules rather than metal or print: compact, and no edge as steep as theirs."""
    soft = cv2.GaussianBlur(gray, (0, 0), 0.8)
    steep = np.hypot(cv2.Sobel(soft, cv2.CV_32F, 1, 0), cv2.Sobel(soft, cv2.CV_32F, 0, 1)) / 8.0
    steepest = np.zeros(len(stats))
    np.maximum.at(steepest, labels.ravel(), steep.ravel())
    wide, high = stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]
    compact = stats[:, cv2.CC_STAT_AREA] > 0.6 * wide * high
    found: Mask = compact & (wide < 1.7 * high) & (high < 1.7 * wide) & (steepest < STEEPEST_NODULE)
    return found


def _find(gray: Field) -> Chest:
    field = exposed_field(gray)
    if field.mean() < 0.2 or gray[field].std() < 12:
        raise CannotShow("no chest found: the picture is nearly empty")
    agreement, box = locate(local_contrast(gray, field))
    if agreement < LEAST_AGREEMENT:
        raise CannotShow(f"no pair of lungs found (agreement {agreement:.2f})")
    right = trace_lung(gray, box, "right")
    # Fluid lifts the base of one lung and tells nothing of the other.
    level = right.bottom if right.bottom > box[1] + 0.8 * box[3] else None
    lungs = {"right": right, "left": trace_lung(gray, box, "left", level)}
    _check(gray, lungs["right"], lungs["left"], field)
    rows = np.linspace(box[1] + 0.1 * box[3], box[1] + 0.35 * box[3], 20)
    middle = (lungs["right"].medial_at(rows).mean() + lungs["left"].medial_at(rows).mean()) / 2
    return Chest(
        lungs["right"], lungs["left"], field, _bright_structures(gray, field), float(middle), agreement
    )


def _check(gray: Field, right: Lung, left: Lung, field: Mask) -> None:
    """Lungs must be darker than what lies between them, both of them, and of comparable size."""
    rows = slice(int(max(right.top, left.top)), int(min(right.bottom, left.bottom)))
    between = np.zeros(gray.shape, bool)
    a, b = int(np.median(right.medial[:, 0])), int(np.median(left.medial[:, 0]))
    between[rows, a:b] = True
    between &= field & ~right.mask & ~left.mask
    sizes = sorted((int(right.mask.sum()), int(left.mask.sum())))
    if not between.any() or sizes[0] < 0.03 * gray.size or sizes[0] < 0.35 * sizes[1]:
        raise CannotShow("no pair of lungs found: the two sides differ too much in size")
    centre = float(np.median(gray[between]))
    for name, lung in (("right", right), ("left", left)):
        if float(np.median(gray[lung.mask])) > centre - 8:
            raise CannotShow(f"no pair of lungs found: the {name} side is no darker than the mediastinum")


_CACHE: OrderedDict[bytes, Chest | CannotShow] = OrderedDict()
_KEPT = 8


def find_chest(pixels: Pixels) -> Chest:
    """The anatomy of a frontal chest radiograph; a pure function of its pixels, the last few kept.

    Args:
        pixels: uint8 (H, W, 3) or (H, W), square, as prepared.

    Raises:
        CannotShow: no pair of lungs can be found.
    """
    plane = np.ascontiguousarray(pixels[..., 0] if pixels.ndim == 3 else pixels)
    key = hashlib.blake2b(plane.tobytes(), digest_size=16).digest()
    if key not in _CACHE:
        try:
            _CACHE[key] = _find(plane.astype(np.float32))
        except CannotShow as reason:
            _CACHE[key] = reason
        while len(_CACHE) > _KEPT:
            _CACHE.popitem(last=False)
    found = _CACHE[key]
    if isinstance(found, CannotShow):
        raise CannotShow(str(found))
    return found
