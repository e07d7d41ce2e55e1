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

_TAILS, _ONE_MIND = (0.002, 0.998), 6.0
"""Shares of what is told between which no level is beyond it, and grey levels between the quarters of those beyond."""

_WIDE, _BESIDE = 64.0, 1.25
"""Pixels of a 1024-pixel frame over which light may drift, and grey levels that it may lie off a smooth surface."""

_DARKEST, _BRIGHTEST = 3, 252
"""Levels of an edited picture from which on others may have been cut off."""


def match_tone(
    original: Image, edited: Image, reference: Mask, *, drift: bool = True, field: Mask | None = None
) -> Field:
    """The edited picture in the original's tones: a rising curve for each channel, then what drifts over the frame.

    Args:
        original, edited: uint8 (H, W, 3), one laid over the other.
        reference: bool (H, W): where the two should look alike, the change left out.
        drift: also take away what drifts; a change that is not left out would go with it.
        field: bool (H, W): what is image; within the change left out, too, levels tell that lie beyond all others in
            both pictures. The brightest and the darkest places are small, and a change beside them takes them along.

    Returns:
        float32 (H, W, 3), in grey levels, not cut to [0, 255].
    """
    before, after = (cv2.GaussianBlur(one.astype(np.float32), (0, 0), 1.5) for one in (original, edited))
    inside = (edited > _DARKEST) & (edited < _BRIGHTEST)
    told = reference[..., None] & inside
    surface = drifted = np.zeros_like(before)
    # With drift, once more by what does not drift: a level that is only in one place has that place's light.
    for _ in range(2 if drift and field is not None else 1):
        meant = before - surface
        planes = []
        for channel in range(edited.shape[2]):
            was, now, here = meant[..., channel], after[..., channel], told[..., channel]
            curve = tone_curve(now[here], was[here])
            if field is not None:
                spare = field & ~reference & inside[..., channel]
                curve = _prolonged(*curve, now[here], was[here], now[spare], was[spare])
            planes.append(_by_level(*curve)[edited[..., channel]])
        toned = np.stack(planes, axis=-1)
        if drift:
            surface, drifted = _drift(before - cv2.GaussianBlur(toned, (0, 0), 1.5), told)
    toned = toned + drifted
    # A level that was cut off tells only that it was at least that far.
    toned = np.where(edited >= _BRIGHTEST, np.maximum(toned, original), toned)
    return np.asarray(np.where(edited <= _DARKEST, np.minimum(toned, original), toned), np.float32)


def levels_left(original: Image, toned: Field, reference: Mask) -> float:
    """By how many grey levels two pictures of the same tones still differ, in the median, noise smoothed away.

    Args:
        original: uint8 (H, W, 3).
        toned: float32 (H, W, 3), see `match_tone`.
        reference: bool (H, W): where they should look alike.
    """
    apart = cv2.GaussianBlur(toned - original.astype(np.float32), (0, 0), 1.5).mean(axis=2)
    return float(np.median(np.abs(apart[reference]))) if reference.any() else 0.0


def _prolonged(
    levels: Floats, meant: Floats, after: Field, before: Field, spare_after: Field, spare_before: Field
) -> tuple[Floats, Floats]:
    """A curve of `tone_curve` with the levels that only spare places have, as far as those are of one mind.

    A finding makes ordinary levels bright or dark; what is brighter than all that told, or darker, in both pictures
    was so before, and tells how such levels moved.

    Args:
        levels, meant: the curve.
        after, before: float32 (N,), what it was made of.
        spare_after, spare_before: float32 (M,), levels of the other places.
    """
    if levels.size < 5 or not spare_after.size:
        return levels, meant
    (dim, bright), (low, high) = np.quantile(after, _TAILS), np.quantile(before, _TAILS)
    beyond = (spare_after > bright + _BIN) & (spare_before > high)
    beyond |= (spare_after < dim - _BIN) & (spare_before < low)
    now, was = spare_after[beyond], spare_before[beyond]
    which = (now / _BIN).astype(np.int64)
    more = []
    for number in np.unique(which):
        own = which == number
        if own.sum() >= _FEW and np.subtract(*np.percentile((was - now)[own], [75, 25])) <= _ONE_MIND:
            more.append((float(np.median(now[own])), float(np.median(was[own]))))
    if not more:
        return levels, meant
    kept = (levels >= dim) & (levels <= bright)
    found = np.array(sorted([*zip(levels[kept], meant[kept], strict=True), *more]))
    xs, ys = found[:, 0], np.maximum.accumulate(found[:, 1])
    xs, ys = np.array([-1.0, *xs, 256.0]), np.array([ys[0] - xs[0] - 1.0, *ys, ys[-1] + 256.0 - xs[-1]])
    return xs, ys


def _by_level(levels: Floats, meant: Floats) -> Field:
    """What each level from 0 to 255 was in the original, by a curve of `tone_curve`: float32 (256,).

    Beyond the levels that were seen, where only a finding may be, it goes on as steeply as a plain bend of the whole
    does there, no less than half as steep as levels rise and no more than twice.
    """
    every = np.arange(256.0)
    if levels.size < 5:
        return np.asarray(np.interp(every, levels, meant), np.float32)
    seen, were = levels[1:-1], meant[1:-1]
    nearest = np.clip(every, seen[0], seen[-1])
    steepness = np.polynomial.Polynomial.fit(seen, were, 2).deriv()(every - 0.5)  # between levels
    risen = np.cumsum(np.clip(steepness, 0.5, 2.0))
    beyond = risen - np.interp(nearest, every, risen)
    return np.asarray(np.interp(nearest, seen, were) + beyond, np.float32)


def tone_curve(after: Field, before: Field) -> tuple[Floats, Floats]:
    """Levels of the edited picture and what they were in the original: a smooth curve, rising.

    Levels that only a finding has do not lie on the curve of all others, and weigh less and less.

    Args:
        after, before: float32 (N,), smoothed levels of the same pixels, in grey levels.

    Returns:
        Levels of `after` from -1 to 256, rising, and what each was in `before`; between them it is straight.
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
    # Beyond what was seen, levels move as the nearest that was.
    meant = np.maximum.accumulate(levels + fit)
    xs = np.array([-1.0, *levels, 256.0])
    return xs, np.array([xs[0] + meant[0] - levels[0], *meant, xs[-1] + meant[-1] - levels[-1]])


def _drift(left: Field, reference: Mask) -> tuple[Field, Field]:
    """What is left of the difference over wide places: a surface that most agree on, and it with a little more.

    A soft finding is as wide as drifting light is. The surface is not diverted by it, since places that disagree weigh
    less and less; and what is smoothed beyond that is too little to take a finding away.

    Args:
        left: float32 (H, W, C), original minus toned, smoothed.
        reference: bool (H, W, C), what tells.
    """
    height, width, channels = reference.shape
    unit = max(height, width) / 1024
    coarse = max(1, round(8 * unit))
    size = (max(1, width // coarse), max(1, height // coarse))
    shape = (*size[::-1], channels)
    counted = reference.astype(np.float32)
    total = cv2.resize(np.clip(left, -24, 24) * counted, size, interpolation=cv2.INTER_AREA).reshape(shape)
    mass = cv2.resize(counted, size, interpolation=cv2.INTER_AREA).reshape(shape)
    level = total / np.maximum(mass, 1e-6)
    surface = np.stack([_surface(level[..., one], mass[..., one]) for one in range(channels)], axis=-1)
    rest = np.clip(level - surface, -_BESIDE, _BESIDE) * mass
    sigma = _WIDE * unit / coarse
    rest, mass = (cv2.GaussianBlur(one, (0, 0), sigma).reshape(shape) for one in (rest, mass))
    drift = surface + rest / (mass + 0.02)
    wide, whole = (
        np.asarray(cv2.resize(one, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
        for one in (surface.astype(np.float32), drift.astype(np.float32))
    )
    return wide.reshape(reference.shape), whole.reshape(reference.shape)


def _surface(level: Field, mass: Field) -> Field:
    """A polynomial of both coordinates, fitted to where `mass` is; places that are far off weigh less and less.

    Args:
        level: float32 (h, w), in grey levels.
        mass: float32 (h, w), how much each place tells, in [0, 1].
    """
    height, width = level.shape
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    powers = [(i, j) for i in range(_DEGREE + 1) for j in range(_DEGREE + 1 - i)]
    terms = np.stack([(x**i * y**j).ravel() for i, j in powers], axis=-1)
    told = mass.ravel() > 0.25
    if told.sum() < 4 * len(powers):
        return np.zeros_like(level)
    known, values, sure = terms[told], level.ravel()[told], np.sqrt(mass.ravel()[told].astype(np.float64))
    own = sure
    for _ in range(10):
        ridge = 1e-3 * (own**2).sum() * np.diag([0.0, *[1.0] * (len(powers) - 1)])
        weighed = own[:, None] * known
        fit = np.linalg.solve(weighed.T @ weighed + ridge, weighed.T @ (own * values))
        off = np.abs(values - known @ fit)
        own = sure / (1.0 + (off / max(0.5, 1.5 * float(np.median(off)))) ** 2)
    return np.asarray((terms @ fit).reshape(level.shape), np.float32)
