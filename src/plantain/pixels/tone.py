"""Gives an edited image the tones of its original: editors brighten, flatten and tint what they redraw."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.pixels.arrays import Field, Floats, Mask, Pixels

_BIN = 6
"""Width in grey levels of the bins of a tone curve."""

_FEW = 60
"""Least number of pixels of a bin."""

_DEGREE = 4

_LIGHT, _MOST_LIGHT = 8.0, 8.0
"""Width of the smoothing that separates drifting light from an edit, in pixels of a 128-pixel frame, and its largest
difference in grey levels."""

_DARKEST, _BRIGHTEST = 3, 252
"""Levels at and beyond which an edited image may be clipped."""


def match_tone(original: Pixels, edited: Pixels, reference: Mask) -> Pixels:
    """Return the edited image in the original's tones, uint8 (H, W, 3): one monotone curve per channel, and its light.

    Args:
        original, edited: uint8 (H, W, 3), registered.
        reference: bool (H, W), where the two should look alike.
    """
    before, after = (cv2.GaussianBlur(one.astype(np.float32), (0, 0), 1.5) for one in (original, edited))
    known = reference[..., None] & (edited > _DARKEST) & (edited < _BRIGHTEST)
    toned = np.empty_like(after)
    for channel in range(edited.shape[2]):
        here = known[..., channel]
        curve = tone_curve(after[..., channel][here], before[..., channel][here])
        toned[..., channel] = np.interp(np.arange(256), *curve)[edited[..., channel]]
    # What is left and varies slowly is light that drifts over the frame.
    scale = 128 / max(edited.shape[:2])
    apart, weight = (
        cv2.GaussianBlur(
            cv2.resize(one, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), (0, 0), _LIGHT
        )
        for one in (np.clip(toned - original, -_MOST_LIGHT, _MOST_LIGHT) * known, known.astype(np.float32))
    )
    toned -= cv2.resize(apart / (weight + 0.02), edited.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    # A clipped level was at least that bright, or dark, in the original too.
    toned = np.where(edited >= _BRIGHTEST, np.maximum(toned, original), toned)
    toned = np.where(edited <= _DARKEST, np.minimum(toned, original), toned)
    return np.asarray(np.clip(np.rint(toned), 0, 255), np.uint8)


def tone_curve(after: Field, before: Field) -> tuple[Floats, Floats]:
    """Fit a smooth monotone curve from the levels of an edited image to those of its original.

    Bins that lie off the curve, as the levels of a finding do, are weighted down (iteratively reweighted polynomial).

    Args:
        after, before: float32 (N,), smoothed levels of the same pixels, in grey levels.

    Returns:
        Levels of `after` from -1 to 256, rising, and the level of each in `before`; interpolate linearly.
    """
    which = np.clip(after / _BIN, 0, 255 // _BIN).astype(np.uint8)  # numpy sorts bytes in one pass
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
    # Beyond the levels that were seen, the nearest displacement applies.
    meant = np.maximum.accumulate(levels + fit)
    xs = np.array([-1.0, *levels, 256.0])
    return xs, np.array([xs[0] + meant[0] - levels[0], *meant, xs[-1] + meant[-1] - levels[-1]])
