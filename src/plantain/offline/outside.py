"""Puts back what an edit should not have touched: the change that was asked for stays, all else is the original again.

Editors that redraw a whole picture also move it by a pixel, shift its tones and draw its texture anew. The answer is
laid over the original, given its tones, and what then still differs coherently, where the instruction and the finding's
anatomy (or a region that is given) say that it belongs, is blended into the original. Where any of this cannot be
told, the answer stays as it came, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import Anatomy
from plantain.offline.instruments.change import FACTOR, Change, ChangedPart, parts_of
from plantain.offline.instruments.evidence import anatomy_of, enlarged
from plantain.offline.instruments.pair import ImagePair, blur, grow, pair_of, shrink
from plantain.offline.instruments.presentation import Presentation, presentation_of
from plantain.offline.instruments.target import CLOSE, TOUCHING, on_side, stroke
from plantain.offline.language import read_instruction
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.pixels.blend import composite, feather
from plantain.pixels.registration import register
from plantain.pixels.tone import levels_left, match_tone
from plantain.records import Direction, Finding, SourceImage

VERSION = "outside 5"
"""What a run freezes; changes whenever a picture could be restored otherwise."""

SURE, FAINT = 5.0, 2.5
"""A change begins where it is this many times the usual difference, and reaches as far as it is this many times."""

LEAST_LEVELS = 1.0
"""Grey levels, after smoothing, that a change has at least."""

SCALES = (1.5, 4.0, 9.0)
"""Widths in half-size pixels of a 1024-pixel frame at which changes are looked for."""

SLACK = 0.35
"""Pixels by which borders may still lie apart: a difference there counts from this share of their steepness on."""

INSIDE = 0.3
"""Share of a change that lies where the finding may; the rest is its margin."""

MOSTLY = 0.5
"""The same of a fine line, which has next to no margin: what reaches further is a marker at the film's edge."""

BANDS, OVER = (1.0, 2.5, 6.0), 1.5
"""Widths in pixels of a 1024-pixel frame that part the bands of a change, and how many times the usual power of a band
is taken for noise."""

LINE, TURNS, AROUND = 12.0, 12, 16.0
"""Pixels of a 1024-pixel frame over which fine lines are followed, in how many directions, and over which the answer's
tone beside them is taken."""

BEYOND = 40.0
"""Pixels of a 1024-pixel frame by which a change may reach beyond where the finding lies; further on something else has
run into it."""

SHARES = (0.0, 0.25, 0.5, 0.7, 0.8, 0.87, 0.92, 0.96, 0.985, 1.0)
"""Shares of a picture, from its plainest places to those with most texture, that each say what is usual there."""

WORST_TONE = 2.5
"""Grey levels (median, smoothed) by which the two may differ where nothing was changed; a picture that was painted
over differs by more."""

MARGIN, SOFT = 10.0, 8.0
"""Pixels of a 1024-pixel frame that are kept around the change, and over which it fades into the original."""

MOST = 0.8
"""Share of the picture's field that a change may cover; more is no local edit, and next to nothing lies outside."""


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """What became of an answer.

    Attributes:
        pixels: uint8 (H, W, 3); the answer as it came where `why_not` says why.
        mask: bool (H, W), True where the picture may differ from the original; all of it where nothing was put back.
        share: share of the pixels that were put back, in [0, 1].
        residual: median displacement left after registration, in pixels of a 1024-pixel frame.
        why_not: why nothing was put back; "" where something was.
    """

    pixels: Pixels
    mask: Mask
    share: float
    residual: float
    why_not: str = ""


def put_back(
    original: Pixels,
    answer: Pixels,
    instruction: str,
    image: SourceImage,
    finding: Finding | None,
    direction: Direction | None,
    region: Mask | None = None,
) -> Restored:
    """Restores the original outside the change that was asked for.

    Args:
        original, answer: uint8 (H, W, 3), of one size.
        instruction: what the editor was told; a side that it names is kept to.
        image: what is known of the original.
        finding: what was asked for; None where the taxonomy does not know it.
        direction: add or remove; None where it is neither.
        region: bool (H, W), True where the change belongs, where somebody said so.
    """
    known = finding is not None and direction in (Direction.ADD, Direction.REMOVE)
    if not known and region is None:
        return _as_it_came(answer, 0.0, "neither a known finding nor a region says where the change belongs")
    presentation = (
        presentation_of(finding, image) if finding is not None else Presentation("", 0, "many", 1.0)
    )
    if region is None and presentation.parts == "diffuse":
        return _as_it_came(answer, 0.0, "the finding changes the whole field, so nothing lies outside of it")
    laid = register(original, answer)
    if laid.why_not:
        return _as_it_came(answer, laid.residual, laid.why_not)
    toned, core = _found(original, laid.pixels, instruction, image, presentation, finding, direction, region)
    if isinstance(core, str):
        return _as_it_came(answer, laid.residual, core)
    unit = max(original.shape[:2]) / 1024
    soft = feather(_full(grow(core, MARGIN * unit / FACTOR), original.shape), SOFT * unit)
    above = _lines_above_noise if presentation.hairline else _above_noise
    changed = original.astype(np.float32) + above(original.astype(np.float32), toned, soft > 0)
    pixels = composite(original, np.clip(np.rint(changed), 0, 255).astype(np.uint8), soft)
    mask = _blocks(soft > 0)
    return Restored(pixels, mask, float(1.0 - mask.mean()), laid.residual)


def _found(
    original: Pixels,
    laid: Pixels,
    instruction: str,
    image: SourceImage,
    presentation: Presentation,
    finding: Finding | None,
    direction: Direction | None,
    region: Mask | None,
) -> tuple[Field, Mask | str]:
    """The answer in the original's tones, float32 and the change, bool at half size, or why there is none."""
    way = Direction.REMOVE if direction is Direction.REMOVE else Direction.ADD
    size = (original.shape[1] // FACTOR, original.shape[0] // FACTOR)
    toned, change = laid.astype(np.float32), None
    for turn in range(3):
        pair = pair_of(original, np.clip(np.rint(toned), 0, 255).astype(np.uint8), image.modality)
        anatomy = anatomy_of(pair.before if way is Direction.ADD else pair.after, image)
        field = enlarged(anatomy.field, size)
        place = enlarged(anatomy.region(presentation.region), size)
        if region is not None:
            place = enlarged(region, size)
        reference = field
        if turn:
            change = coherent_change(pair, field, place)
            if turn == 2:
                break
            apart = ~grow(change.labels > 0, pair.px(12) / FACTOR)
            reference = field & apart if (field & apart).sum() > 0.2 * field.sum() else field
        toned = match_tone(
            original,
            laid,
            _full(reference, original.shape),
            drift=turn > 0,
            field=_full(field, original.shape),
        )
    assert change is not None
    left = levels_left(original, toned, _full(reference, original.shape))
    if left > WORST_TONE:
        return (
            toned,
            f"its tones cannot be given back: {left:.1f} levels are left, at most {WORST_TONE:g} may be",
        )
    if region is not None:
        near = grow(place, pair.px(24) / FACTOR)
        core = change.mask(tuple(part for part in change.parts if part.inside > 0.1)) & near
    else:
        side = read_instruction(instruction, [finding]).side if finding is not None else None
        core = change.mask(_asked_for(change, presentation, anatomy, side))
        if presentation.parts != "warp":
            core &= grow(place, pair.px(BEYOND) / FACTOR)
    if not core.any():
        return toned, "no coherent change lies where it belongs"
    if core.sum() > MOST * field.sum():
        return toned, f"the change covers more than {MOST:.0%} of the picture"
    return toned, core


def _above_noise(original: Field, toned: Field, near: Mask) -> Field:
    """The difference without what it also has elsewhere, band by band: the original's own texture stays in its place.

    Args:
        original, toned: float32 (H, W, 3), the latter the answer in the original's place and tones.
        near: bool (H, W), the change and its margin; the rest of the picture says what is usual where there is as much
            texture.
    """
    unit = max(near.shape) / 1024
    elsewhere = ~near
    delta = toned - original
    kept, coarse, own, other = np.zeros_like(delta), delta, original, toned
    for width in BANDS:
        bands = []
        for plane in (coarse, own, other):
            smooth = cv2.GaussianBlur(plane, (0, 0), width * unit)
            bands.append((plane - smooth, smooth))
        (band, coarse), (_, own), (_, other) = bands
        power, *texture = (
            blur(np.asarray((fine**2).mean(axis=2), np.float32), 2.0 * width * unit) for fine, _ in bands
        )
        noise = usual_at(power, np.minimum(*texture), elsewhere, middle=np.mean)
        gain = np.sqrt(np.clip(1.0 - OVER * noise / np.maximum(power, 1e-3), 0.0, 1.0))
        kept += gain[..., None] * band
    return np.asarray(kept + coarse, np.float32)


def _lines_above_noise(original: Field, toned: Field, near: Mask) -> Field:
    """The same for lines of a few pixels, which are as fine as noise: along a line noise averages out, and it does not.

    Args:
        original, toned, near: see `_above_noise`.
    """
    unit = max(near.shape) / 1024
    elsewhere = ~near
    delta = toned - original
    # A line is no matter of what its surroundings are off by.
    known = elsewhere.astype(np.float32)[..., None]
    width = AROUND * unit
    around = blur(np.asarray(delta * known, np.float32), width)
    delta -= around / (blur(known[..., 0], width)[..., None] + np.float32(1e-3))
    power = _strongest_along(delta.mean(axis=2), unit) ** 2
    # Whatever the texture: a border that is drawn anew differs no less than a fracture does.
    noise = float(np.median(power[elsewhere])) if elsewhere.any() else 0.0
    gain = np.sqrt(np.clip(1.0 - OVER * noise / np.maximum(power, 1e-3), 0.0, 1.0))
    return np.asarray(gain[..., None] * delta, np.float32)


def _strongest_along(level: Field, unit: float) -> Field:
    """The largest mean along a line through each place, of what is finer than its surroundings; in grey levels."""
    fine = level - blur(level, 3.0 * unit)
    side = 2 * round(LINE * unit / 2) + 1
    strongest = np.zeros_like(fine)
    for turn in np.arange(TURNS) * np.pi / TURNS:
        x, y = (round(side / 2 * float(part)) for part in (np.cos(turn), np.sin(turn)))
        kernel = np.zeros((side, side), np.float32)
        cv2.line(kernel, (side // 2 - x, side // 2 - y), (side // 2 + x, side // 2 + y), 1.0)
        np.maximum(strongest, np.abs(cv2.filter2D(fine, -1, kernel / kernel.sum())), out=strongest)
    return strongest


def usual_at(
    strength: Field, texture: Field, where: Mask, middle: Callable[[Field], np.floating[Any]] = np.median
) -> Field:
    """What strength a difference usually has at places with as much texture, by the picture itself; rising with it.

    Args:
        strength, texture: float32 (h, w), not negative.
        where: bool (h, w), the places that say what is usual.
        middle: mean or median of the places with about one texture.

    Returns:
        float32 (h, w), for every place.
    """
    known, values = texture[where], strength[where]
    if not known.size:
        return np.zeros_like(strength)
    edges = np.quantile(known, SHARES)
    which = np.clip(np.searchsorted(edges, known, side="right") - 1, 0, len(SHARES) - 2)
    levels, usual = [], []
    for number in np.unique(which):
        of = which == number
        levels.append(float(known[of].mean()))
        usual.append(float(middle(values[of])))
    # A border steeper than nearly all others, as a marker's is, differs by as much more where it is drawn anew.
    steeper = np.maximum(1.0, texture / max(levels[-1], 1e-3))
    return np.asarray(np.interp(texture, levels, np.maximum.accumulate(usual)) * steeper, np.float32)


def _asked_for(
    change: Change, presentation: Presentation, anatomy: Anatomy, side: str | None
) -> tuple[ChangedPart, ...]:
    """The coherent changes that lie where the finding may, on the side that the instruction names."""
    least = TOUCHING if presentation.parts == "warp" else MOSTLY if presentation.hairline else INSIDE
    pool = tuple(part for part in change.parts if part.inside >= least and not stroke(part))
    pool = on_side(pool, anatomy, side, change.smooth.shape[1])
    if presentation.parts != "single" or side == "bilateral" or not pool:
        return pool
    near = grow(change.mask(pool[:1]), CLOSE * change.smooth.shape[1] * FACTOR / 1024)
    own = set(np.unique(change.labels[near]).tolist())
    return tuple(part for part in change.parts if part.label in own)


def coherent_change(pair: ImagePair, field: Mask, place: Mask) -> Change:
    """What differs by more than noise, a texture drawn anew, or borders that lie a fraction of a pixel apart explain.

    Differences are smoothed at several widths: what is coherent stays, noise and texture average out. What is usual is
    taken from the picture itself, by place, since bone and edges are redrawn less exactly than lungs.

    Args:
        pair: the two images, registered and toned.
        field: bool (h, w) at half size, what is image.
        place: bool (h, w) at half size, where the finding may lie.
    """
    delta = shrink(pair.delta, FACTOR)
    within = delta[field] if field.any() else delta.ravel()
    shift = float(np.median(within))
    delta = np.where(field, delta - shift, 0.0).astype(np.float32)
    steep = blur(pair.before_level, 1.0)
    edges = cv2.magnitude(
        cv2.Sobel(steep, cv2.CV_32F, 1, 0, scale=1 / 8), cv2.Sobel(steep, cv2.CV_32F, 0, 1, scale=1 / 8)
    )
    spare = (SLACK * pair.unit) * shrink(np.asarray(edges, np.float32), FACTOR)
    firm = np.asarray(np.sign(delta) * np.maximum(np.abs(delta) - spare, 0.0), np.float32)
    grain = np.abs(delta - blur(delta, 1.0))
    # Cut, so that a finding of small spots does not pass for a place with coarse grain.
    grain = np.minimum(grain, 3.0 * float(np.median(grain[field])) if field.any() else 0.0)
    rough = cv2.sqrt(blur(np.asarray(grain**2, np.float32), 12.0 * pair.unit)) + np.float32(0.1)
    texture = np.minimum(*(_texture(level, pair.unit) for level in (pair.before_level, pair.after_level)))
    sure = np.zeros(field.shape, bool)
    faint = np.zeros(field.shape, bool)
    for number, width in enumerate(SCALES):
        smooth = blur(firm, max(0.8, width * pair.unit))
        strength = np.abs(smooth)
        usual = float(1.4826 * np.median(strength[field])) if field.any() else 0.0
        share = float(np.median((strength / rough)[field])) * 1.4826 if field.any() else 0.0
        here = np.clip(share * rough, 0.7 * usual, 2.5 * usual)
        here = np.maximum(here, 1.4826 * usual_at(strength, texture, field))
        sure |= strength > np.maximum(SURE * here, LEAST_LEVELS)
        faint |= strength > np.maximum((FAINT + number * 0.5) * here, 0.7 * LEAST_LEVELS)
    joined = cv2.morphologyEx((faint & field).astype(np.uint8), cv2.MORPH_CLOSE, _disc(pair.px(4)))
    count, labels = cv2.connectedComponents(joined, connectivity=8)
    kept = np.zeros(count, bool)
    kept[np.unique(labels[sure & field])] = True
    kept[0] = False
    labels = np.where(kept[labels], labels, 0).astype(np.int32)
    smooth = blur(firm, 1.5)
    changed = (labels > 0) & (joined > 0)
    parts = parts_of(
        labels, count, np.abs(smooth) * changed, place, changed, smooth, shrink(pair.before_level, FACTOR)
    )
    noise = float(1.4826 * np.median(np.abs(within - shift)))
    return Change(shift, noise, smooth, labels, parts, float(changed.sum() / max(1, int(field.sum()))))


def _texture(level: Field, unit: float) -> Field:
    """How much fine structure a picture has around each place, at half size: borders and grain alike."""
    fine = level - blur(level, 2.0 * unit)
    return np.asarray(cv2.sqrt(blur(shrink(fine**2, FACTOR), 3.0 * unit)), np.float32)


def _as_it_came(answer: Pixels, residual: float, why: str) -> Restored:
    return Restored(answer, np.ones(answer.shape[:2], bool), 0.0, residual, why)


def _full(mask: Mask, shape: tuple[int, ...]) -> Mask:
    return enlarged(mask, (shape[1], shape[0]))


def _blocks(mask: Mask) -> Mask:
    """The 8x8 blocks of a JPEG that a mask touches: within them coding changes the neighbours too."""
    height, width = mask.shape
    padded = np.pad(mask, ((0, -height % 8), (0, -width % 8)))
    touched = padded.reshape(padded.shape[0] // 8, 8, padded.shape[1] // 8, 8).any(axis=(1, 3))
    return np.asarray(np.kron(touched, np.ones((8, 8), bool))[:height, :width], bool)


def _disc(radius: int) -> np.ndarray:
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)))
