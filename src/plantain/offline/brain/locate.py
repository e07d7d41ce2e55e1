"""Finds a tumour from the pixels alone: by what the other hemisphere lacks, or by what healthy tissue never shows.

Fine structure (sulci, cortical ribbon, vessels) is taken out first by a grey-level closing or opening, so
that only what is broad and of the wrong brightness is left; then each place is compared with the whole range of
levels that the mirrored half shows within a few millimetres. Healthy asymmetry stays below the bar.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.brain.anatomy import STEP, Brain
from plantain.offline.brain.protocol import Protocol
from plantain.offline.brain.symmetry import Midline, working
from plantain.offline.brain.zones import zone_weight
from plantain.offline.language import Intent
from plantain.pixels.arrays import Field, Mask

_TOLERANCE = {"stripped": 3, "whole": 4}
"""Working pixels by which two healthy hemispheres may differ in place."""

_BAR = {"stripped": 22.0, "whole": 55.0, "alone": 80.0}
"""Least evidence (excess contrast times area, in working pixels) to call something a tumour: skull taken off
(its border is certain), skull in place, and slices that have no other half. Set above the strongest false alarm on
healthy slices of each kind (9, 68 with a near equal beside it, 63)."""

_BAR_SIDE_GIVEN = 10.0
"""The same for a stripped slice whose side the instruction names: just above the strongest false alarm (9)."""

_TOO_MUCH = 0.10
"""A larger share of the brain that looks wrong on its own says that the slice is unusual, not that it is ill."""

_SIGN = {"right": -1.0, "left": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class Suspect:
    """What was found.

    Attributes:
        mask: bool (H, W), the tumour with what surrounds it.
        x, y: centre in full pixels.
        evidence: excess contrast times area, in working pixels.
    """

    mask: Mask
    x: float
    y: float
    evidence: float


def find_tumour(
    brain: Brain, protocol: Protocol, midline: Midline | None, intent: Intent, *, extra_axial: bool
) -> Suspect | None:
    """The strongest suspect of the asked kind and side, or None.

    Args:
        brain: the analysed slice.
        protocol: its sequence and tissue levels.
        midline: None on sagittal slices, where there is no other half to compare with.
        intent: side and zone narrow the search where the instruction gave them.
        extra_axial: look at the border (meningioma) rather than inside the tissue (glioma).
    """
    small = working(brain.gray)
    inside = brain.inside[::STEP, ::STEP]
    excess = _alone(small, inside, brain, protocol) if midline is None else None
    if excess is None and midline is not None:
        excess = _against_mirror(small, inside, brain, protocol, midline)
    if excess is None:
        return None
    everywhere = excess
    excess = excess * _prior(brain, protocol, midline, intent, small.shape, extra_axial)
    if midline is None and float((excess > 0.4).sum()) > _TOO_MUCH * float(inside.sum()):
        return None
    kind = "alone" if midline is None else "stripped" if brain.stripped else "whole"
    side_given = kind == "stripped" and intent.side in _SIGN
    best = _strongest(excess, 0.4, _BAR_SIDE_GIVEN if side_given else _BAR[kind])
    if best is None:
        return None
    seed, evidence = best
    if midline is None and not _whole(everywhere, excess, seed):
        return None
    grown = _grown(excess, seed, 0.9 if extra_axial else 0.5)
    ys, xs = np.nonzero(seed)
    weight = excess[ys, xs]
    mask = cv2.resize(
        grown.astype(np.float32), (brain.gray.shape[1], brain.gray.shape[0]), interpolation=cv2.INTER_CUBIC
    )
    x, y = float(np.average(xs, weights=weight)) * STEP, float(np.average(ys, weights=weight)) * STEP
    region = np.asarray((mask > 0.5) & brain.inside, np.bool_)
    if midline is not None:
        region &= _same_side(midline, x, y, region.shape, 2.0 / protocol.mm)
    return Suspect(region, x, y, evidence)


def _whole(everywhere: Field, allowed: Field, seed: Mask) -> bool:
    """Whether what was found ends by itself, not where the search was told to end: no halves are removed."""
    _, labels = cv2.connectedComponents((everywhere > 0.4).astype(np.uint8))
    body = np.isin(labels, np.unique(labels[seed]))
    return bool((body & (allowed > 0.4)).sum() > 0.85 * body.sum())


def _same_side(midline: Midline, x: float, y: float, shape: tuple[int, ...], past: float) -> Mask:
    """The half in which (x, y) lies: only there can the other half say what belongs."""
    gy, gx = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    nx, ny = midline.normal
    sign = np.sign((x - midline.x) * nx + (y - midline.y) * ny) or 1.0
    return np.asarray(midline.offset(gx, gy) * np.float32(sign) > -past, np.bool_)


def _disk(radius: int) -> npt.NDArray[np.uint8]:
    return np.asarray(
        cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), np.uint8
    )


def _gap(protocol: Protocol) -> float:
    return max(abs(protocol.white - protocol.grey), 0.18 * protocol.grey, 4.0)


def _against_mirror(small: Field, inside: Mask, brain: Brain, protocol: Protocol, midline: Midline) -> Field:
    """How far each place lies outside what the other half shows nearby, in units of grey-white contrast."""
    size = (brain.gray.shape[1], brain.gray.shape[0])
    other_inside = midline.mirrored_mask(brain.inside)[::STEP, ::STEP]
    both = inside & other_inside
    flat = np.where(inside, small, np.float32(protocol.grey)).astype(np.float32)
    other = cv2.resize(
        midline.mirrored(cv2.resize(flat, size)), small.shape[::-1], interpolation=cv2.INTER_AREA
    )
    # A coil that sees one side better makes a slow difference which is no finding.
    weight = cv2.GaussianBlur(both.astype(np.float32), (0, 0), 24) + np.float32(1e-3)
    drift = cv2.GaussianBlur(np.where(both, np.clip(flat - other, -30, 30), 0).astype(np.float32), (0, 0), 24)
    flat = flat - np.float32(0.5) * drift / weight
    other = other + np.float32(0.5) * drift / weight
    other = np.where(other_inside, other, np.float32(protocol.grey)).astype(np.float32)
    fine, near = _disk(4), _disk(_TOLERANCE["stripped" if brain.stripped else "whole"])
    darker = cv2.erode(cv2.morphologyEx(other, cv2.MORPH_CLOSE, fine), near) - cv2.morphologyEx(
        flat, cv2.MORPH_CLOSE, fine
    )
    brighter = cv2.morphologyEx(flat, cv2.MORPH_OPEN, fine) - cv2.dilate(
        cv2.morphologyEx(other, cv2.MORPH_OPEN, fine), near
    )
    if protocol.enhanced or protocol.either:
        wrong = np.maximum(brighter, 0.6 * darker) * _stranger(flat, other, inside)
    else:
        wrong = darker if protocol.sequence == "T1" else brighter
    excess: Field = (np.maximum(wrong, 0) * both / np.float32(_gap(protocol))).astype(np.float32)
    return excess


def _stranger(flat: Field, other: Field, inside: Mask) -> Field:
    """1 where the slice departs further from the brain's usual level than its other half does, 0 where less far.

    Where a tumour may be bright or dark, a healthy half differs from a bright one as a dark one does from it: which of
    the two is ill is told by what the rest of the brain looks like.
    """
    low, usual, high = np.percentile(flat[inside], (25, 50, 75))
    spread = np.float32(max(high - low, 4.0))
    own, opposite = (
        np.abs(cv2.GaussianBlur(one, (0, 0), 3) - np.float32(usual)) / spread for one in (flat, other)
    )
    return np.asarray(np.clip(0.5 + 2.0 * (own - opposite), 0, 1), np.float32)


def _alone(small: Field, inside: Mask, brain: Brain, protocol: Protocol) -> Field:
    """Without another half: broad, even tissue of a level that healthy brain does not show over such a width."""
    depth = brain.depth[::STEP, ::STEP] / STEP
    flat = np.where(inside, small, np.float32(protocol.grey)).astype(np.float32)
    fine = _disk(4)
    gap = np.float32(_gap(protocol))
    if protocol.sequence == "T1" and not protocol.enhanced:
        closed = cv2.morphologyEx(flat, cv2.MORPH_CLOSE, fine)
        wrong = np.float32(protocol.grey) + np.float32(0.35) * gap - closed
        half = 0.12 * protocol.grey + 0.88 * protocol.fluid
        wrong = np.where(closed < half, 0, wrong)
    else:
        opened = cv2.morphologyEx(flat, cv2.MORPH_OPEN, fine)
        wrong = opened - np.float32(1.08 * max(protocol.grey, protocol.white))
    mean = cv2.blur(flat, (9, 9))
    uneven = np.sqrt(np.maximum(cv2.blur(flat * flat, (9, 9)) - mean * mean, 0))
    even = np.clip(1.6 - uneven / (0.35 * gap), 0, 1)
    excess: Field = (np.maximum(wrong, 0) / gap * even * (depth > 2)).astype(np.float32)
    return excess


def _prior(
    brain: Brain,
    protocol: Protocol,
    midline: Midline | None,
    intent: Intent,
    shape: tuple[int, ...],
    extra_axial: bool,
) -> Field:
    y, x = (axis.astype(np.float32) * STEP for axis in np.mgrid[: shape[0], : shape[1]])
    depth = brain.depth[::STEP, ::STEP] * np.float32(protocol.mm)
    prior = (depth > (1.0 if extra_axial else 3.0)).astype(np.float32)
    if midline is not None and intent.side in _SIGN:
        prior *= midline.offset(x, y) * np.float32(_SIGN[intent.side]) > -0.03 * brain.width
    if not extra_axial and intent.zone:
        prior *= np.clip(0.25 + zone_weight(intent.zone, x, y, brain, protocol.plane), 0, 1)
    if midline is None:
        # Deep nuclei, brain stem and cerebellum are broad and grey in health.
        middle_x, middle_y = brain.centre_of_box
        across, down = (x - middle_x) / brain.width + 0.5, (y - middle_y) / brain.height + 0.5
        nuclei = (np.abs(across - 0.47) < 0.17) & (np.abs(down - 0.55) < 0.2)
        prior = np.where(nuclei | (down > 0.62), 0, prior)
        edge = np.float32(4.0 if extra_axial else 9.0)
        prior = np.where(depth < edge, 0, prior) if not extra_axial else np.where(depth > 35, 0, prior)
    return prior.astype(np.float32)


def _strongest(excess: Field, threshold: float, bar: float) -> tuple[Mask, float] | None:
    """The part with most evidence, if it clears the bar and stands out from the next."""
    count, labels, _, _ = cv2.connectedComponentsWithStats((excess > threshold).astype(np.uint8))
    if count < 2:
        return None
    total = np.bincount(labels.ravel(), weights=excess.ravel().astype(np.float64), minlength=count)
    total[0] = 0
    order = np.argsort(total)[::-1]
    best = int(order[0])
    rest = [float(total[k]) for k in order[1:4] if k != 0]
    noise = rest[1] if len(rest) > 1 else 0.0
    if total[best] < max(bar, 2.0 * noise):
        return None
    return np.asarray(labels == best, np.bool_), float(total[best])


def _grown(excess: Field, seed: Mask, share: float) -> Mask:
    """The seed with the fainter excess that hangs on it, and the rim that the comparison's tolerance hid."""
    _, labels = cv2.connectedComponents((excess > 0.12).astype(np.uint8))
    kept = np.isin(labels, np.unique(labels[seed & (labels > 0)])).astype(np.uint8)
    near = cv2.dilate(seed.astype(np.uint8), _disk(14))
    kept = np.asarray(kept & near | seed.astype(np.uint8), np.uint8)
    # Big tumours push and soak more of what is around them.
    reach = int(np.clip(6 + share * np.sqrt(float(seed.sum()) / np.pi), 6, 24))
    return np.asarray(cv2.dilate(cv2.morphologyEx(kept, cv2.MORPH_CLOSE, _disk(6)), _disk(reach)), np.bool_)
