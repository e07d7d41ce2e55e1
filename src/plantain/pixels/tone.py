"""Gives an edited picture the tones of its original again: editors brighten, flatten and tint what they redraw."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.pixels.arrays import Field, Floats, Image, Mask

_BIN = 6
"""Grey levels that are taken together."""

_FEW = 60
"""So many pixels must have a level for it to say anything."""

_DEGREE = 4

_WIDE = 64.0
"""Pixels of a 1024-pixel frame over which light may drift; a finding is smaller, or is left out."""


def match_tone(original: Image, edited: Image, reference: Mask, *, drift: bool = True) -> Field:
    """The edited picture in the original's tones: a rising curve for each channel, then what drifts over the frame.

    Args:
        original, edited: uint8 (H, W, 3), one laid over the other.
        reference: bool (H, W): where the two should look alike, the change left out.
        drift: also take away what drifts; a change that is not left out would go with it.

    Returns:
        float32 (H, W, 3), in grey levels, not cut to [0, 255].
    """
    before, after = (cv2.GaussianBlur(one.astype(np.float32), (0, 0), 1.5) for one in (original, edited))
    toned = np.empty(edited.shape, np.float32)
    for channel in range(edited.shape[2]):
        curve = tone_curve(after[..., channel][reference], before[..., channel][reference])
        values = np.interp(np.arange(256), *curve).astype(np.float32)
        toned[..., channel] = values[edited[..., channel]]
    if not drift:
        return toned
    return toned + _drift(before - cv2.GaussianBlur(toned, (0, 0), 1.5), reference)


def tone_curve(after: Field, before: Field) -> tuple[Floats, Floats]:
    """Levels of the edited picture and what they were in the original: a smooth curve, rising.

    Levels that only a finding has do not lie on the curve of all others, and weigh less and less.

    Args:
        after, before: float32 (N,), smoothed levels of the same pixels, in grey levels.

    Returns:
        Levels of `after` from -1 to 256, rising, and what each was in `before`; between them it is straight.
    """
    which = np.clip(after / _BIN, 0, 255 // _BIN).astype(np.int64)
    counts = np.bincount(which, minlength=255 // _BIN + 1)
    found = np.flatnonzero(counts >= _FEW)
    if found.size < 2:
        return np.array([0.0, 255.0]), np.array([0.0, 255.0])
    order = np.argsort(which, kind="stable")
    groups = np.split(order, np.cumsum(counts)[:-1])
    levels = np.array([float(np.median(after[groups[number]])) for number in found])
    moved = np.array([float(np.median(before[groups[number]])) for number in found]) - levels
    terms = np.vander((levels - 128) / 128, min(_DEGREE, found.size - 1) + 1, increasing=True)
    sure = np.sqrt(counts[found])
    own = sure.copy()
    for _ in range(10):
        ridge = 1e-3 * own.sum() * np.diag([0.0, *[1.0] * (terms.shape[1] - 1)])
        fit = terms @ np.linalg.solve(terms.T @ (own[:, None] * terms) + ridge, terms.T @ (own * moved))
        off = np.abs(moved - fit)
        own = sure / (1.0 + (off / max(0.5, 1.5 * float(np.median(off)))) ** 2) ** 2
    # Beyond what was seen, levels move as the nearest that was.
    meant = np.maximum.accumulate(levels + fit)
    xs = np.array([-1.0, *levels, 256.0])
    return xs, np.array([xs[0] + meant[0] - levels[0], *meant, xs[-1] + meant[-1] - levels[-1]])


def _drift(left: Field, reference: Mask) -> Field:
    """What is left of the difference, smoothed over wide places; where nothing tells, what the surroundings say."""
    height, width = reference.shape
    unit = max(height, width) / 1024
    coarse = max(1, round(8 * unit))
    size = (max(1, width // coarse), max(1, height // coarse))
    counted = reference.astype(np.float32)[..., None]
    total = cv2.resize(np.clip(left, -24, 24) * counted, size, interpolation=cv2.INTER_AREA)
    mass = cv2.resize(counted, size, interpolation=cv2.INTER_AREA)
    sigma = _WIDE * unit / coarse
    total, mass = cv2.GaussianBlur(total, (0, 0), sigma), cv2.GaussianBlur(mass, (0, 0), sigma)
    drift = total / (mass.reshape(*size[::-1], 1) + 0.02)
    return np.asarray(cv2.resize(drift, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
