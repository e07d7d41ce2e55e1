"""Restores the original outside of an edit: `[loop] restore = "outside"`.

Editors that redraw a whole image move it by a pixel, shift its tones and draw its texture again. The answer is
registered to the original and given its tones; what then still differs by more than usual is the edit, and is blended
into the original. Where any of this fails the answer stays as it came, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from scipy.optimize import least_squares

from plantain.pixels.arrays import Field, Floats, Image, Mask, Pixels
from plantain.records import Finding

VERSION = "outside 6"
"""Frozen in a run; changes whenever an image could be restored otherwise."""

_SCALES = (1.5, 4.0, 9.0)
"""Widths of the smoothing under which changes are looked for, in half-size pixels of a 1024-pixel frame."""

_SURE, _FAINT = 5.0, 2.5
"""A change contains a place that differs by the first multiple of the usual, and extends to the second."""

_LEAST_LEVELS = 1.5
"""Grey levels, after smoothing, by which the strongest place of a change differs."""

_WORST_TONE = 2.5
"""Largest median difference in grey levels, smoothed, outside of the edit."""

_NEAR, _MARGIN, _SOFT = 24.0, 10.0, 8.0
"""Pixels of a 1024-pixel frame: kept around what turns changed and around a change, and over which a change fades."""

_MOST = 0.6
"""Largest share of the image that an edit may cover."""


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """An editor's answer in which the original is restored outside the edit.

    Attributes:
        pixels: uint8 (H, W, 3); the answer as it came where `why_not` is set.
        mask: bool (H, W), True where the image may differ from the original, in whole 8x8 blocks of a JPEG.
        share: share of the pixels that were restored, in [0, 1].
        residual: median displacement after registration, in pixels of a 1024-pixel frame.
        why_not: why nothing was restored; "" otherwise.
    """

    pixels: Pixels
    mask: Mask
    share: float
    residual: float
    why_not: str = ""


def restore_outside(original: Pixels, answer: Pixels, finding: Finding) -> Restored:
    """Restore the original wherever an answer differs from it by no more than redrawing explains.

    Args:
        original, answer: uint8 (H, W, 3), of one shape.
        finding: the requested one.
    """
    residual = 0.0  # until the answer is registered

    def unrestored(why: str) -> Restored:
        return Restored(answer, np.ones(answer.shape[:2], bool), 0.0, residual, why)

    if finding.support == "diffuse":
        return unrestored("the finding changes the whole image")
    toned, changed, residual, why_not = _compared(original, answer)
    if why_not:
        return unrestored(why_not)
    unit = max(original.shape[:2]) / 1024
    if not changed.any():
        return unrestored("it contains no coherent change")
    soft = feather(dilate(changed, _MARGIN * unit), _SOFT * unit)
    mask = _jpeg_blocks(soft > 0)
    if mask.mean() > _MOST:
        return unrestored(f"the change covers more than {_MOST:.0%} of the image")
    before = original.astype(np.float32)
    mixed = np.rint(before + soft[..., None] * (toned.astype(np.float32) - before))
    pixels = np.clip(mixed, 0, 255).astype(np.uint8)
    return Restored(pixels, mask, float(1.0 - mask.mean()), residual)


def changed_untouched(versions: Sequence[Pixels], findings: Sequence[Finding]) -> tuple[float, str]:
    """Return the share of the pixels that no turn meant to edit and that still differ after the last turn.

    Args:
        versions: uint8 (H, W, 3), of one shape: the original, then the result of each turn.
        findings: the finding of each turn.

    Returns:
        The share of the untouched pixels that differ by more than redrawing explains, in [0, 1]; the reason if no
        pixel is known to be untouched, else "".
    """
    for turn, finding in enumerate(findings, 1):
        if finding.support == "diffuse":
            return 0.0, f"turn {turn}: the finding changes the whole image"
    original, unit = versions[0], max(versions[0].shape[:2]) / 1024
    touched = np.zeros(original.shape[:2], bool)
    for turn, (before, after) in enumerate(pairwise(versions), 1):
        _, changed, _, why_not = _compared(before, after)
        if why_not:
            return 0.0, f"turn {turn}: {why_not}"
        touched |= changed
    untouched = ~dilate(touched, _NEAR * unit)
    if not untouched.any():
        return 0.0, "the turns changed the whole image"
    _, changed, _, why_not = _compared(original, versions[-1])
    return 1.0 if why_not else float(changed[untouched].mean()), ""


def _compared(original: Pixels, answer: Pixels) -> tuple[Pixels, Mask, float, str]:
    """Return an answer with its original's position and tones, where it differs, the residual, and why it cannot be."""
    registered, residual, why_not = register(original, answer)
    changed = np.zeros(original.shape[:2], bool)
    if why_not:
        return registered, changed, residual, why_not
    unit = max(original.shape[:2]) / 1024
    for _ in range(2):  # the second time without what changed
        unchanged = ~dilate(changed, _MARGIN * unit)
        toned = match_tone(original, registered, unchanged)
        changed = _changed(original, toned, unit)
    apart = np.abs(cv2.GaussianBlur(toned.astype(np.float32) - original, (0, 0), 1.5).mean(axis=2))
    left = float(np.median(apart[~changed])) if not changed.all() else 0.0
    if left > _WORST_TONE:
        why_not = f"its tones cannot be matched: {left:.1f} levels are left, at most {_WORST_TONE:g} may be"
    return toned, changed, residual, why_not


def _changed(original: Pixels, toned: Pixels, unit: float) -> Mask:
    """Return where two images differ by more than noise and redrawn texture explain, bool (H, W)."""
    size = (original.shape[1] // 2, original.shape[0] // 2)
    before, after = (
        cv2.resize(one, size, interpolation=cv2.INTER_AREA).astype(np.float32) for one in (original, toned)
    )
    texture = np.minimum(_texture(before, unit), _texture(after, unit))
    sure, faint = np.zeros((2, *size[::-1]), bool)
    for width in _SCALES:
        strength = np.abs(cv2.GaussianBlur(after - before, (0, 0), max(0.8, width * unit))).max(axis=2)
        usual = np.maximum(_usual(strength, texture), 0.2)
        sure |= strength > np.maximum(_SURE * usual, _LEAST_LEVELS)
        faint |= strength > np.maximum(_FAINT * usual, 0.7 * _LEAST_LEVELS)
    count, labels = cv2.connectedComponents(faint.astype(np.uint8), connectivity=8)
    kept = np.zeros(count, np.uint8)
    kept[labels[sure]] = 1
    whole = cv2.resize(kept[labels], original.shape[1::-1], interpolation=cv2.INTER_NEAREST)
    return np.asarray(whole > 0, bool)


def _texture(pixels: Field, unit: float) -> Field:
    """Return the strength of the detail around each place, in grey levels, float32 (h, w)."""
    fine = pixels - cv2.GaussianBlur(pixels, (0, 0), 2.0 * unit)
    return np.asarray(cv2.sqrt(cv2.GaussianBlur((fine**2).mean(axis=2), (0, 0), 3.0 * unit)), np.float32)


def _usual(strength: Field, texture: Field) -> Field:
    """Return the median difference of places with as much texture, a rising line of it, float32 (h, w)."""
    plain, rough = texture <= np.quantile(texture, 0.5), texture >= np.quantile(texture, 0.9)
    (low, at), (high, end) = (
        (1.4826 * float(np.median(strength[one])), float(np.median(texture[one]))) for one in (plain, rough)
    )
    slope = max(0.0, high - low) / max(end - at, 1e-3)
    return np.asarray(low + slope * np.maximum(texture - at, 0.0), np.float32)


def _jpeg_blocks(mask: Mask) -> Mask:
    """Return the 8x8 blocks that a mask touches: within them JPEG coding changes all pixels."""
    height, width = mask.shape
    padded = np.pad(mask, ((0, -height % 8), (0, -width % 8)))
    touched = padded.reshape(padded.shape[0] // 8, 8, padded.shape[1] // 8, 8).any(axis=(1, 3))
    return np.asarray(np.kron(touched, np.ones((8, 8), bool))[:height, :width], bool)


# Registration: tiles are compared by phase correlation, which neither brightness nor an edit that fills a few tiles
# misleads. A cubic displacement field is fitted to them robustly, so that edited tiles do not count.
TILE, STEP = 128, 64
"""Side of a tile and distance between tiles, in pixels of a 1024-pixel frame."""

WORST = 0.5
"""Largest median displacement after registration, in pixels of a 1024-pixel frame."""

STILL = 0.05
"""Median displacement in pixels up to which an image is left alone: resampling it would only blur it."""

_FEWEST, _AGREES = 0.5, 1.0
"""Least share of the tiles that must lie within this many pixels of the fitted field."""

_STRUCTURE = 2.0
"""Least standard deviation of a tile's normalised detail."""

_ROUNDS = 3


def register(original: Image, edited: Image) -> tuple[Image, float, str]:
    """Resample an edited image onto its original.

    Args:
        original, edited: uint8 (H, W, 3) or (H, W), of one shape.

    Returns:
        The image, uint8; the median displacement left, in pixels of a 1024-pixel frame; the reason if it cannot be
        registered, else "".

    Raises:
        ValueError: the shapes differ.
    """
    if original.shape != edited.shape:
        raise ValueError(f"original {original.shape[:2]} and edited {edited.shape[:2]} differ in size")
    unit = max(original.shape[:2]) / 1024
    fixed, moving = _structure(original), _structure(edited)
    ys, xs = np.mgrid[: fixed.shape[0], : fixed.shape[1]].astype(np.float32)
    field = np.zeros((*fixed.shape, 2), np.float32)
    tiles = _tiles(fixed, moving, unit)
    if tiles is not None and float(np.median(_lengths(tiles))) > STILL:
        for _ in range(_ROUNDS):
            if tiles is not None:
                field += _fitted(tiles, xs, ys)
                moved = cv2.remap(moving, xs + field[..., 0], ys + field[..., 1], cv2.INTER_LINEAR)
                tiles = _tiles(fixed, np.asarray(moved, np.float32), unit)
        maps = (xs + field[..., 0], ys + field[..., 1])
        edited = np.asarray(cv2.remap(edited, *maps, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE))
    if tiles is None:
        return edited, 0.0, "it has too little structure to be registered to the original"
    lengths = _lengths(tiles) / unit
    residual, agreed = float(np.median(lengths)), float((lengths <= _AGREES).mean())
    if residual <= WORST and agreed >= _FEWEST:
        return edited, residual, ""
    why = f"median displacement {residual:.2f} pixels, at most {WORST:g}; {agreed:.0%} of the tiles agree"
    return edited, residual, f"it cannot be registered to the original: {why}, at least {_FEWEST:.0%}"


def _structure(pixels: Image) -> Field:
    """Fine detail, normalised by its local strength and cut where that is low."""
    grey = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    plane = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 1.2)
    fine = plane - cv2.GaussianBlur(plane, (0, 0), 6.0)
    spread = cv2.sqrt(cv2.GaussianBlur(fine * fine, (0, 0), 16.0)) + 1.5
    return np.asarray(fine / spread * np.minimum(spread, 8.0), np.float32)


def _tiles(fixed: Field, moving: Field, unit: float) -> Floats | None:
    """Return rows (x, y, dx, dy, response) of the tiles with structure, (N, 5); None where fewer than six have."""
    side, step = max(32, round(TILE * unit)), max(16, round(STEP * unit))
    side = min(side, *fixed.shape)
    window = cv2.createHanningWindow((side, side), cv2.CV_32F)
    rows: list[tuple[float, float, float, float, float]] = []
    for top in range(0, fixed.shape[0] - side + 1, step):
        for left in range(0, fixed.shape[1] - side + 1, step):
            place = np.s_[top : top + side, left : left + side]
            first, second = np.ascontiguousarray(fixed[place]), np.ascontiguousarray(moving[place])
            if float(first.std()) < _STRUCTURE or float(second.std()) < _STRUCTURE / 2:
                continue
            (dx, dy), response = cv2.phaseCorrelate(first, second, window)
            rows.append((left + side / 2, top + side / 2, dx, dy, response))
    return np.array(rows) if len(rows) >= 6 else None


def _lengths(tiles: Floats) -> Floats:
    return np.asarray(np.hypot(tiles[:, 2], tiles[:, 3]))


def _fitted(tiles: Floats, xs: Field, ys: Field) -> Field:
    """Fit a polynomial displacement field (H, W, 2) with a loss that edited tiles hardly influence."""
    number = 10 if len(tiles) >= 30 else 3
    terms, weight = _terms(tiles[:, 0], tiles[:, 1], xs.shape, number), np.sqrt(tiles[:, 4:].clip(0.01, 1))

    def apart(solved: Floats) -> Floats:
        return np.asarray((weight * (terms @ solved.reshape(number, 2) - tiles[:, 2:4])).ravel())

    first = np.zeros((number, 2))
    first[0] = np.median(tiles[:, 2:4], axis=0)
    solved = least_squares(apart, first.ravel(), loss="cauchy", f_scale=0.1).x.reshape(number, 2)
    return np.asarray(_terms(xs, ys, xs.shape, number) @ solved, np.float32)


def _terms(x: Floats | Field, y: Floats | Field, shape: tuple[int, ...], number: int) -> Floats:
    """Return the first terms of a cubic polynomial of x and y, each scaled to [-1, 1], as the last axis."""
    x, y = 2 * x / shape[1] - 1, 2 * y / shape[0] - 1
    terms = [x**i * y ** (degree - i) for degree in range(4) for i in range(degree + 1)]
    return np.stack(terms[:number], axis=-1)


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
    """Adapt the tone and lighting of an edited image to the original's, by one curve per channel: uint8 (H, W, 3).

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
    # The slowly varying rest is light that drifts over the frame.
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
        Levels of `after` from -1 to 256, rising, and the corresponding levels of `before`; interpolate linearly.
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


def dilate(mask: Mask, radius_px: float) -> Mask:
    """Return a mask, bool (H, W), grown to every pixel within `radius_px` (Euclidean) of it."""
    if radius_px <= 0 or not mask.any():
        return mask.copy()
    grown: Mask = _distance_to(mask) <= radius_px
    return grown


def feather(mask: Mask, radius_px: float) -> Field:
    """Return a soft version of a mask: float32 (H, W) in [0, 1].

    Rises from 0 at `radius_px` outside the border through 0.5 on it to 1 at `radius_px` inside, without
    a kink at either end (smoothstep of the signed Euclidean distance). A structure thinner than twice
    the radius does not reach 1: dilate it first to keep its full strength.
    """
    if radius_px <= 0 or mask.all() or not mask.any():
        return mask.astype(np.float32)
    # Distances count from pixel centres; half a pixel puts zero on the edge between two pixels.
    signed = np.where(mask, _distance_to(~mask) - 0.5, 0.5 - _distance_to(mask))
    ramp = np.clip((signed + radius_px) / (2 * radius_px), 0.0, 1.0)
    return (ramp * ramp * (3.0 - 2.0 * ramp)).astype(np.float32)


def _distance_to(mask: Mask) -> Field:
    """Euclidean distance in pixels to the nearest True of a mask that has one: float32 (H, W)."""
    distance: Field = cv2.distanceTransform((~mask).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return distance
