"""What happened to the whole picture on its way, and means nothing: a shift, other tones, resampling, a codec.

Editors return pictures a pixel off, a little brighter, resampled and encoded anew. Here the original is taken the same
way: what then still differs from the edited picture is the edit, and grain is compared as it came, never resampled.
Whole pixels are moved back at last, which resamples nothing, so that blocks and maps lie where they would have lain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.offline.instruments.pair import blur, shrink
from plantain.pixels.arrays import Field, Floats, Image, Mask, Pixels
from plantain.pixels.registration import STILL, whole_shift
from plantain.pixels.tone import tone_curve

MOST_MOVED = 1.5
"""Pixels of a 1024-pixel frame up to which a shift of the whole picture is taken out."""

WHOLE = 0.12
"""Pixels within which a shift counts as one by whole pixels, which needs no interpolation."""

LEAST_TONE, MOST_TONE = 0.8, 12.0
"""Grey levels by which tones must have moved to be taken out, and up to which they are."""

BLACK = 4
"""Grey levels up to which there is background, which programs that brighten leave alone or not."""

NEAR = 2.5
"""Grey levels from the curve of all others beyond which a place does not tell the tones."""

QUALITIES = (92, 90, 85, 80, 75, 70, 60, 50, 40)
BETTER = 0.88
"""What is left of the difference, over what was left before, from which a codec is believed."""

LOST_DETAIL = 0.85
"""Share of the finest detail below which a picture was resampled; plantain's own encoding keeps 0.92 and more."""

REST = 0.2
"""Mean difference in grey levels, away from the edit, below which nothing happened to the picture."""

CROP = 512
BEYOND = 16
"""Pixels by which a plane is continued beyond its borders before it is resampled."""
RINGS = 24
COARSE = 4
"""Rings of frequencies, and how many of them, the lowest, a resampling leaves alone."""


@dataclass(frozen=True, slots=True)
class Handling:
    """What happened to a picture as a whole.

    Attributes:
        moved: (dx, dy), pixels to the right and down; (0, 0) where it lies right or could not be told.
        brighter: mean change of level over the content, in grey levels.
        toned: largest change of a level that the content has, in grey levels, with its sign.
        detail: share of the finest detail that was kept; 1 where it was not resampled.
        quality: of the JPEG that it went through; None where none can be told.
        touched: something happened to it as a whole, whether it could be told what or not.
    """

    moved: tuple[float, float] = (0.0, 0.0)
    brighter: float = 0.0
    toned: float = 0.0
    detail: float = 1.0
    quality: int | None = None
    touched: bool = False

    @property
    def words(self) -> str:
        """What happened, or "" where nothing did."""
        changes = []
        if self.toned:
            how = "brighter" if self.brighter >= 0 else "darker"
            changes.append(
                f"{abs(self.brighter):.1f} grey levels {how}, no level by more than {abs(self.toned):.1f}"
            )
        if self.moved != (0.0, 0.0):
            changes.append(f"moved by {self.moved[0]:+z.1f}, {self.moved[1]:+z.1f} pixels")
        if self.detail < 1.0:
            changes.append(f"resampled, with {self.detail:.0%} of its finest detail")
        if self.quality is not None:
            changes.append(f"encoded as by JPEG {self.quality}")
        return f"came back {', '.join(changes)}" if changes else ""


UNHANDLED = Handling()


def handled(original: Pixels, edited: Pixels, *, whole_field: bool) -> tuple[Pixels, Pixels, Handling]:
    """The original as it would have come back without the edit, and the edited picture in the original's place.

    Args:
        original, edited: uint8 (H, W, 3), of one shape.
        whole_field: the finding itself changes tones and detail everywhere, so these are left alone.

    Returns:
        Both, uint8 (H, W, 3), to half a pixel where the original lay, and what had happened.
    """
    same = _same_places(original, edited)
    if _at_rest(original, edited, same):
        return original, edited, UNHANDLED
    taken, handling = _shifted(original, edited)
    if handling.moved != UNHANDLED.moved:
        same = _same_places(taken, edited)
    if not whole_field and same.mean() > 0.1:
        taken, handling, same = _toned(taken, edited, same, handling)
    taken, handling = _encoded(taken, edited, same, handling, whole_field)
    dx, dy = (-round(value) for value in handling.moved)
    if (dx, dy) != (0, 0) and _may_be(handling.moved, original):
        taken, edited = (_moved(one, dx, dy) for one in (taken, edited))
    return taken, edited, replace(handling, touched=True)


def _at_rest(original: Pixels, edited: Pixels, same: Mask) -> bool:
    """Whether nothing but an edit and plantain's own encoding tells the two apart."""
    before, after = (_level(one)[::2, ::2] for one in (original, edited))
    where = same[: before.shape[0], : before.shape[1]]
    away = np.abs(after - before)[: where.shape[0], : where.shape[1]]
    return not where.any() or float(np.minimum(away[where], 4.0).mean()) < REST


def _shifted(original: Pixels, edited: Pixels) -> tuple[Pixels, Handling]:
    unit = max(original.shape[:2]) / 1024
    shift = whole_shift(original, edited)
    if shift is None or not float(np.hypot(*shift)) / unit > STILL:
        return original, UNHANDLED
    shift = _refined(original, edited, shift) if float(np.hypot(*shift)) / unit <= 2 * MOST_MOVED else shift
    dx, dy = (round(value) if abs(value - round(value)) < WHOLE else value for value in shift)
    if (dx, dy) == (0, 0):
        return original, UNHANDLED
    handling = Handling(moved=(float(dx), float(dy)))
    return _moved(original, dx, dy) if _may_be(handling.moved, original) else original, handling


def _may_be(moved: tuple[float, float], pixels: Pixels) -> bool:
    """Whether a shift is so small that it means nothing."""
    return bool(np.hypot(*moved) * 1024 / max(pixels.shape[:2]) <= MOST_MOVED)


def _moved(pixels: Pixels, dx: float, dy: float) -> Pixels:
    """The picture moved to the right and down, without interpolation where by whole pixels; borders are repeated."""
    matrix = np.array([[1, 0, dx], [0, 1, dy]], np.float32)
    flags = cv2.INTER_NEAREST if dx == round(dx) and dy == round(dy) else cv2.INTER_CUBIC
    size = (pixels.shape[1], pixels.shape[0])
    moved = cv2.warpAffine(pixels, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(moved, np.uint8)


def _refined(original: Pixels, edited: Pixels, shift: tuple[float, float]) -> tuple[float, float]:
    """The shift that leaves the least difference near a first one: phases of smooth pictures tell too much.

    Gauss-Newton on the levels (Lucas and Kanade 1981), differences beyond a few levels weighing less.
    """
    before, after = (blur(_level(one), 1.5) for one in (original, edited))
    size = (before.shape[1], before.shape[0])
    found = np.array(shift, np.float64)
    for _ in range(4):
        matrix = np.array([[1, 0, found[0]], [0, 1, found[1]]], np.float32)
        moved = cv2.warpAffine(before, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        left = (after - moved)[::2, ::2]
        left -= np.float32(np.median(left))
        slopes = [
            cv2.Sobel(moved, cv2.CV_32F, *way, ksize=3, scale=1 / 8)[::2, ::2] for way in ((1, 0), (0, 1))
        ]
        weight = 1.0 / (1.0 + (left / NEAR) ** 2) ** 2
        (xx, xy), (_, yy) = [[float((weight * a * b).sum()) for b in slopes] for a in slopes]
        x, y = (float((weight * slope * left).sum()) for slope in slopes)
        least = xx * yy - xy * xy
        if least <= 1e-3 * (xx + yy) ** 2:
            break
        step = -np.array([yy * x - xy * y, xx * y - xy * x]) / least
        found += np.clip(step, -0.5, 0.5)
    return float(found[0]), float(found[1])


def _level(pixels: Pixels) -> Field:
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.float32)


def _same_places(original: Pixels, edited: Pixels) -> Mask:
    """Bool (h, w) at half size: content whose difference is what most of the content has."""
    before, after = shrink(_level(original), 2), shrink(_level(edited), 2)
    delta = blur(after - before, 2.0)
    lit = before > BLACK
    if not lit.any():
        return lit
    counts, edges = np.histogram(delta[lit], bins=np.arange(-30.25, 30.5, 0.5))
    usual = float(edges[int(counts.argmax())] + 0.25)
    return np.asarray(lit & (np.abs(delta - usual) < 2 * NEAR), bool)


def _toned(taken: Pixels, edited: Pixels, same: Mask, handling: Handling) -> tuple[Pixels, Handling, Mask]:
    """The picture in the edited one's tones, by one rising curve for all channels."""
    before, after = (blur(shrink(_level(one), 2), 1.0) for one in (taken, edited))
    curve = tone_curve(before[same], after[same])
    for _ in range(2):
        near = same & (np.abs(after - np.interp(before, *curve)) < NEAR)
        if near.sum() < 0.3 * same.sum():
            break
        curve = tone_curve(before[near], after[near])
    steps: Floats = np.interp(np.arange(256), *curve) - np.arange(256)
    low, high = np.percentile(before[same], [2, 98])
    seen = steps[round(float(low)) : round(float(high)) + 1]
    if seen.size == 0 or not LEAST_TONE <= float(np.abs(seen).max()) <= MOST_TONE:
        worst = float(seen[np.abs(seen).argmax()]) if seen.size else 0.0
        handling = replace(handling, toned=worst, brighter=worst) if abs(worst) > MOST_TONE else handling
        return taken, handling, same
    values = np.clip(np.rint(np.arange(256) + steps), 0, 255).astype(np.uint8)
    dark = taken.max(axis=2) <= BLACK
    toned = cv2.LUT(taken, values)
    if dark.any():
        own = round(float(np.median(edited[dark].astype(np.int16) - taken[dark])))
        toned[dark] = np.clip(taken[dark].astype(np.int16) + own, 0, 255).astype(np.uint8)
    mean = float(steps[np.clip(np.rint(before[same]), 0, 255).astype(int)].mean())
    handling = replace(handling, brighter=mean, toned=float(seen[np.abs(seen).argmax()]))
    return toned, handling, _same_places(toned, edited)


def _encoded(
    taken: Pixels, edited: Pixels, same: Mask, handling: Handling, whole_field: bool
) -> tuple[Pixels, Handling]:
    """The picture resampled and encoded as the edited one seems to be."""
    box = _box(same, taken.shape)
    first, second = (_level(one)[box] for one in (taken, edited))
    where = cv2.resize(same.astype(np.uint8), taken.shape[1::-1], interpolation=cv2.INTER_NEAREST)[box] > 0
    if where.sum() < 0.02 * where.size:
        return taken, handling
    left = _left(first, second, where)
    by_quality = {quality: _left(_jpeg(first, quality), second, where) for quality in QUALITIES}
    best = min(by_quality, key=lambda quality: by_quality[quality])
    if by_quality[best] < BETTER * left:
        return _jpeg_pixels(taken, best), replace(handling, quality=best)
    kept = _kept_by_ring(first, second, where)
    finest = float(kept[-RINGS // 3 :].mean())
    if whole_field or finest > LOST_DETAIL or _left(_through(first, kept), second, where) > 1.15 * left:
        return taken, handling
    channels = [_through(taken[..., channel].astype(np.float32), kept) for channel in range(3)]
    resampled = np.stack(channels, axis=2).astype(np.uint8)
    return resampled, replace(handling, detail=max(0.0, finest))


def _box(same: Mask, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """The square of the frame, on the grid of JPEG's blocks, in which most of what is the same lies."""
    side = min(CROP, shape[0] // 8 * 8, shape[1] // 8 * 8)
    share = cv2.boxFilter(same.astype(np.float32), cv2.CV_32F, (side // 2, side // 2), anchor=(0, 0))
    rows, columns = (shape[0] - side) // 8 + 1, (shape[1] - side) // 8 + 1
    y, x = np.unravel_index(int(share[: 4 * rows : 4, : 4 * columns : 4].argmax()), (rows, columns))
    return slice(8 * int(y), 8 * int(y) + side), slice(8 * int(x), 8 * int(x) + side)


def _left(first: Field, second: Field, where: Mask) -> float:
    """Mean difference where both show the same; large ones count as 4 levels."""
    return float(np.minimum(np.abs(second - first)[where], 4.0).mean())


def _jpeg(plane: Field, quality: int) -> Field:
    """The plane encoded and decoded."""
    return _jpeg_pixels(np.clip(np.rint(plane), 0, 255).astype(np.uint8), quality).astype(np.float32)


def _jpeg_pixels(pixels: Image, quality: int) -> Image:
    """uint8 (H, W, 3) or (H, W), encoded and decoded with the colour subsampling of most programs."""
    grey = pixels.ndim == 2
    _, data = cv2.imencode(".jpg", pixels if grey else pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    back = np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR), np.uint8)
    return back if grey else np.asarray(back[..., ::-1], np.uint8).copy()


def _rings(shape: tuple[int, ...]) -> np.ndarray:
    """For each frequency of a real transform which of the rings it lies in; the corners count to the last."""
    rows, columns = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None, :]
    found = (np.maximum(np.abs(rows), columns) * 2 * RINGS).astype(int)
    return np.asarray(np.minimum(found, RINGS - 1))


def _kept_by_ring(first: Field, second: Field, where: Mask) -> Floats:
    """By how much each ring of frequencies of the first comes back in the second, 1 for the lowest."""
    window = blur(where.astype(np.float32), 4.0)
    one, other = (np.fft.rfft2((plane - plane[where].mean()) * window) for plane in (first, second))
    rings = _rings(first.shape).ravel()
    both = np.bincount(rings, (one.conj() * other).real.ravel(), RINGS)
    own = np.bincount(rings, (np.abs(one) ** 2).ravel(), RINGS)
    kept: Floats = np.clip(both / np.maximum(own, 1e-9), 0.0, 1.5)
    kept[:COARSE] = 1.0
    return kept


def _through(plane: Field, kept: Floats) -> Field:
    """The plane with each ring of frequencies at its share, in whole levels.

    It goes on beyond its borders as its mirror image: a transform alone would let opposite borders run into each other.
    """
    wide = cv2.copyMakeBorder(plane, *(4 * (BEYOND,)), cv2.BORDER_REFLECT_101)
    passed = np.fft.irfft2(np.fft.rfft2(wide) * kept[_rings(wide.shape)], wide.shape)
    return np.asarray(np.clip(np.rint(passed[BEYOND:-BEYOND, BEYOND:-BEYOND]), 0, 255), np.float32)
