"""Whether what was added is a plain hill, or several of one size: what anybody could draw who knows no disease."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plantain.offline.instruments.change import Change, ChangedPart
from plantain.offline.instruments.pair import grow
from plantain.pixels.arrays import Field, Mask

RINGS = 24
REACH = 3.2
"""Standard deviations of its own mass up to which a part is looked at."""
LEAST_AREA = 40
"""Half-size pixels of a part whose outline can be told."""


@dataclass(frozen=True, slots=True)
class Plainness:
    """How plain an addition is.

    Attributes:
        hill: share of its variance that one smooth elliptical hill explains, in [0, 1].
        parts: how many parts were looked at.
        alike: spread of the parts' radii over their mean; of at least `SEVERAL` parts, else infinite.
    """

    hill: float
    parts: int
    alike: float


NOT_PLAIN = Plainness(0.0, 0, float("inf"))

SEVERAL = 4


def plainness_of(change: Change, main: tuple[ChangedPart, ...]) -> Plainness:
    """Looks at the shape of the change itself, whatever lies under it.

    Each part is laid out by its distance from its centre, in units of its own spread along its own axes; a hill falls
    with that distance and depends on nothing else, a lesion has an outline and texture of its own.

    Args:
        change: the change map.
        main: the parts taken for the edit.
    """
    large = [part for part in main if part.area >= LEAST_AREA]
    if not large:
        return NOT_PLAIN
    total = sum(part.mass for part in large)
    hill = sum(part.mass * _explained(change, part) for part in large) / total
    radii = np.array([part.radius for part in large])
    alike = float(radii.std() / radii.mean()) if len(large) >= SEVERAL else float("inf")
    return Plainness(hill, len(large), alike)


def _explained(change: Change, part: ChangedPart) -> float:
    """Share of a part's variance that falls with the elliptical distance from its centre."""
    own: Mask = change.labels == part.label
    ys, xs = np.nonzero(own)
    margin = 4 + int(np.hypot(np.ptp(ys), np.ptp(xs)) / 4)
    box = (
        slice(max(0, int(ys.min()) - margin), int(ys.max()) + margin + 1),
        slice(max(0, int(xs.min()) - margin), int(xs.max()) + margin + 1),
    )
    near = grow(own[box], margin / 2)
    signed: Field = change.smooth[box] * np.float32(part.sign)
    rows, columns = np.nonzero(near)
    values = signed[near].astype(np.float64)
    weights = np.clip(signed * own[box], 0, None)[near].astype(np.float64)
    if weights.sum() <= 0:
        return 0.0
    points = np.stack([columns, rows]).astype(np.float64)
    middle = (points * weights).sum(axis=1, keepdims=True) / weights.sum()
    away = points - middle
    spread = (away * weights) @ away.T / weights.sum() + 0.25 * np.eye(2)
    distance = np.sqrt(np.einsum("in,ij,jn->n", away, np.linalg.inv(spread), away))
    inside = distance < REACH
    ring = np.minimum((distance[inside] / REACH * RINGS).astype(np.intp), RINGS - 1)
    seen = values[inside]
    count = np.maximum(np.bincount(ring, minlength=RINGS), 1)
    profile = np.minimum.accumulate(np.bincount(ring, seen, RINGS) / count)
    variance = float(((seen - seen.mean()) ** 2).sum())
    return max(0.0, 1.0 - float(((seen - profile[ring]) ** 2).sum()) / variance) if variance > 0 else 0.0
