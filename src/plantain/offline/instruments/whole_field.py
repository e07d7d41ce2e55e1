"""Changes that no place holds: a haze over the whole field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plantain.offline.instruments.pair import ImagePair, blur, shrink
from plantain.pixels.arrays import Field, Mask

FACTOR = 2


@dataclass(frozen=True, slots=True)
class WholeField:
    """Structure of the whole field before and after.

    Attributes:
        contrast: contrast of vessel-sized structure after over before, in the whole field.
        least_quadrant, most_quadrant: the same in the quadrant where it is smallest and largest.
        alike: correlation of the structure after with the structure before, in [-1, 1].
        shift: mean change of level, in grey levels.
    """

    contrast: float
    least_quadrant: float
    most_quadrant: float
    alike: float
    shift: float


UNTOUCHED = WholeField(1.0, 1.0, 1.0, 1.0, 0.0)


def whole_field_of(pair: ImagePair, field: Mask) -> WholeField:
    """Compares structure of 3 to 12 pixels (in a 1024-pixel frame) inside the field.

    Args:
        pair: the two images.
        field: bool (h, w) at half size, well inside the aperture.
    """
    before = _structure(shrink(pair.before_level, FACTOR))
    after = _structure(shrink(pair.after_level, FACTOR))
    ys, xs = np.nonzero(field)
    if ys.size < 100:
        return UNTOUCHED
    rows, columns = np.arange(field.shape[0])[:, None], np.arange(field.shape[1])[None, :]
    cy, cx = float(np.median(ys)), float(np.median(xs))
    quadrants = [
        field & (rows < cy if upper else rows >= cy) & (columns < cx if left else columns >= cx)
        for upper in (True, False)
        for left in (True, False)
    ]
    ratios = [_spread(after[q]) / max(_spread(before[q]), 1e-3) for q in quadrants if q.any()]
    alike = float(np.corrcoef(before[field], after[field])[0, 1])
    shift = float(shrink(pair.delta, FACTOR)[field].mean())
    return WholeField(
        _spread(after[field]) / max(_spread(before[field]), 1e-3), min(ratios), max(ratios), alike, shift
    )


def _structure(plane: Field) -> Field:
    return blur(plane, 1.5) - blur(plane, 6.0)


def _spread(values: np.ndarray) -> float:
    return float(values.std()) if values.size else 0.0
