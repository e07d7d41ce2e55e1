"""Everything the instruments say of one edit, as numbers; the criteria read it and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.metrics.ssim import masked_ssim
from plantain.offline.instruments.anatomy import MAP_SIDE, Anatomy
from plantain.offline.instruments.border import NO_BORDER, Border, border_of
from plantain.offline.instruments.brain_view import brain_view
from plantain.offline.instruments.change import FACTOR, Change, ChangedPart, change_of
from plantain.offline.instruments.chest_view import chest_view
from plantain.offline.instruments.fundus_view import fundus_view
from plantain.offline.instruments.grain import NOTHING, Grain, grain_of
from plantain.offline.instruments.handling import UNHANDLED, Handling
from plantain.offline.instruments.leftover import Leftover, leftover_of
from plantain.offline.instruments.marks import Stray, beyond_field, strays_of
from plantain.offline.instruments.outline import mass_of, outline_of
from plantain.offline.instruments.pair import ImagePair, blur, grow, shrink
from plantain.offline.instruments.plainness import Plainness, plainness_of
from plantain.offline.instruments.presentation import Presentation
from plantain.offline.instruments.removal import Removal, removal_of
from plantain.offline.instruments.repetition import Repetition, repetition_of
from plantain.offline.instruments.target import candidates, target_parts
from plantain.offline.instruments.whole_field import UNTOUCHED, WholeField, whole_field_of
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.records import Direction, SourceImage

SEAM_LEVELS = 3.5
COLOURED = 12
"""Grey levels between channels over a tenth of the frame: the original is a colour picture."""
BLACK = 4.0
"""Grey levels up to which there is background, which has no grain to keep."""
SULCUS, LEAST_MASS = 3.0, 0.3
"""Pixels of the small frame (two millimetres of a head), and share of the strongest that is left after that mean."""
STRAY_AREA = 60
STRAY_PEAK, STRAY_PEAK_HANDLED = 2.5, 4.0
"""Grey levels; of a picture that was encoded or resampled as a whole, faint changes mean nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What was measured. Lengths are in pixels of the image, levels in grey levels of 0 to 255.

    Attributes:
        presentation: what to expect of the finding.
        anatomy: the judge's own map.
        change: the change map.
        main: the parts taken for the edit itself.
        mass: float32 (h, w) at half size, how much of the edit lies where; see `_mass`.
        area: pixels of the edit.
        region_share: area of the edit over the area of the region where the finding lies.
        in_region: share of the edit's mass inside that region.
        touching: share of the edit's mass along the line that its region follows, 1 where it follows none.
        at: share of the edit's mass at the structure that the finding lies at, 1 where it lies at none.
        left, right: share of the change in that region on the patient's left and right; None without sides.
        height: middle of the edit between top (0) and bottom (1) of the region.
        level: mean absolute change in the core of the edit.
        visibility: that level over the local texture of the original.
        balance: (brightening - darkening) / both, over the edit, in [-1, 1].
        plainness: whether the edit is a plain hill, or several of one size.
        leftover: for a removal, what of the pattern taken away is still there.
        strays: changes away from the edit.
        outside_ssim: strict masked SSIM outside the edit inside the field; None where nothing is outside.
        border, grain, repetition: see their modules.
        whole: structure of the whole field; looked at only where the finding has no place of its own.
        colour: largest channel spread gained by a grey image, in grey levels (99.9th percentile); 0 for
            colour.
        burnt: share of the edit that became white or black.
        checker: share of the change's energy in a pixel checkerboard.
        outline: steepness of an added mass's outline in the brain, see `outline_of`; 0 elsewhere.
        removal: of a removal that the halves of the brain can tell, what they tell; None elsewhere.
        handling: what happened to the whole picture and was taken out before anything was measured.
    """

    presentation: Presentation
    anatomy: Anatomy
    change: Change
    main: tuple[ChangedPart, ...]
    mass: Field
    area: int
    region_share: float
    in_region: float
    touching: float
    at: float
    left: float | None
    right: float | None
    height: float
    level: float
    visibility: float
    balance: float
    plainness: Plainness
    leftover: Leftover
    strays: tuple[Stray, ...]
    outside_ssim: float | None
    border: Border
    grain: Grain
    repetition: Repetition
    whole: WholeField
    colour: float
    burnt: float
    checker: float
    outline: float
    removal: Removal | None
    handling: Handling

    def lies_in(self, region: str) -> float:
        """Share of the edit's mass in a region of the map; 0 where the map has none of that name."""
        if region not in self.anatomy.regions:
            return 0.0
        size = (self.mass.shape[1], self.mass.shape[0])
        return _share(self.mass, enlarged(self.anatomy.regions[region], size))


def anatomy_of(pixels: Pixels, image: SourceImage) -> Anatomy:
    """Maps the anatomy on whichever of the two images should be free of the finding, as it came."""
    small = cv2.resize(pixels, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA)
    if image.modality == "fundus":
        return fundus_view(small)
    level = small.astype(np.float32).mean(axis=2)
    if image.modality == "chest_xray":
        return chest_view(level)
    if image.modality == "brain_mri":
        return brain_view(level, image.plane)
    return Anatomy(np.ones(level.shape, bool), {}, None, float(MAP_SIDE))


def measure(
    pair: ImagePair,
    image: SourceImage,
    presentation: Presentation,
    direction: Direction,
    *,
    side: str | None,
    handling: Handling = UNHANDLED,
    anatomy: Anatomy | None = None,
) -> Evidence:
    """Takes every measurement of one edit.

    Args:
        pair: the two images.
        image: what is known of the original.
        presentation: what to expect of the finding.
        direction: add or remove.
        side: the side that the instruction names, or None.
        handling: what was done to the original so that it came the same way.
        anatomy: the map, where it was made on the original before that was done; else it is made here.
    """
    anatomy = anatomy or anatomy_of(pair.before if direction is Direction.ADD else pair.after, image)
    size = (pair.shape[1] // FACTOR, pair.shape[0] // FACTOR)
    field = enlarged(anatomy.field, size)
    region = enlarged(anatomy.region(presentation.region), size)
    change = change_of(pair, field, region)
    main = target_parts(change, presentation, anatomy, direction, side)
    where = change.mask(main)
    clean = pair.before_level if direction is Direction.ADD else pair.after_level
    rest = tuple(part for part in change.parts if part not in main)
    unit_area = pair.unit**2
    strays = strays_of(
        pair,
        change,
        rest,
        least_area=max(6, round(STRAY_AREA * unit_area)),
        least_peak=STRAY_PEAK_HANDLED if handling.touched else STRAY_PEAK,
        touched=handling.touched,
    )
    # A moved border has one part on either side, each of which reaches beyond the structure: all of the edit counts.
    lying = main if presentation.parts == "warp" else candidates(change)
    signed, all_signed = (_mass(change, parts, image.modality) for parts in (main, lying))
    mass, all_mass = np.abs(signed), np.abs(all_signed)
    diffuse = presentation.parts == "diffuse"
    left, right = _sides(all_mass, anatomy, size)
    roi = grow(where, pair.px(20) / FACTOR)
    border, grain = _close_up(pair, change, where, clean, diffuse, handling.quality)
    level, visibility = (
        _line_strength(pair, change, where, clean)
        if presentation.hairline
        else _strength(change, where, clean, 90 if presentation.mixed else 50)
    )
    return Evidence(
        presentation=presentation,
        anatomy=anatomy,
        change=change,
        main=main,
        mass=mass,
        area=int(where.sum()) * FACTOR**2,
        region_share=float(((mass > 0) & where).sum() / max(1, int(region.sum()))),
        in_region=_share(mass, region),
        touching=_share(mass, enlarged(anatomy.region(presentation.base), size))
        if presentation.base
        else 1.0,
        at=_share(mass, enlarged(anatomy.region(presentation.at), size)) if presentation.at else 1.0,
        left=left,
        right=right,
        height=_height(change.smooth, where, region),
        level=level,
        visibility=visibility,
        balance=_balance(signed, where),
        plainness=plainness_of(change, main),
        leftover=leftover_of(pair, change, where, region)
        # A pattern as wide as both lungs fits nowhere else, so there is no chance to compare it with.
        if direction is Direction.REMOVE and side != "bilateral"
        else Leftover(0.0, 0.0),
        strays=beyond_field(pair, field) if diffuse else strays,
        outside_ssim=None if diffuse else _outside(pair, roi, field),
        border=border,
        grain=grain,
        repetition=repetition_of(pair, field if diffuse else change.labels > 0),
        whole=whole_field_of(pair, enlarged(anatomy.region("retina"), size)) if diffuse else UNTOUCHED,
        colour=_colour(pair, image.modality),
        burnt=_burnt(pair, where, field & ~region if presentation.region == "sella" else field),
        checker=_checker(pair, where),
        outline=_outline(pair, anatomy)
        if image.modality == "brain_mri" and direction is Direction.ADD
        else 0.0,
        removal=removal_of(pair, anatomy.region("vault"))
        if presentation.halves and direction is Direction.REMOVE
        else None,
        handling=handling,
    )


def enlarged(mask: Mask, size: tuple[int, int]) -> Mask:
    """A mask at another size (width, height)."""
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST), bool)


def _mass(change: Change, parts: tuple[ChangedPart, ...], modality: str) -> Field:
    """How much of the given parts lies where, with its sign.

    What a mass in the brain presses aside changes as well, as far as the other side, but brightens and darkens by turns
    within the width of a sulcus: a mean over that width leaves the mass.
    """
    changed = change.smooth * change.mask(parts)
    if modality != "brain_mri":
        return changed
    calm = blur(changed, SULCUS * changed.shape[1] / MAP_SIDE)
    return np.asarray(np.where(np.abs(calm) > LEAST_MASS * np.abs(calm).max(), calm, 0), np.float32)


def _share(mass: Field, place: Mask) -> float:
    total = float(mass.sum())
    return float(mass[place].sum() / total) if total > 0 else 0.0


def _sides(mass: Field, anatomy: Anatomy, size: tuple[int, int]) -> tuple[float | None, float | None]:
    left, right = anatomy.side("left"), anatomy.side("right")
    if left is None or right is None or not mass.any():
        return None, None
    return _share(mass, enlarged(left, size)), _share(mass, enlarged(right, size))


def _height(smooth: Field, where: Mask, region: Mask) -> float:
    rows = np.flatnonzero(region.any(axis=1))
    mass = (np.abs(smooth) * where).sum(axis=1)
    if rows.size < 2 or mass.sum() <= 0:
        return 0.5
    middle = float((mass * np.arange(mass.size)).sum() / mass.sum())
    return float((middle - rows[0]) / (rows[-1] - rows[0]))


def _strength(change: Change, where: Mask, clean: Field, beyond: float) -> tuple[float, float]:
    """Mean absolute change in the core (above a percentile), and that over the texture it has to stand out from."""
    values = np.abs(change.smooth[where])
    if values.size == 0:
        return 0.0, 0.0
    core = float(values[values >= np.percentile(values, beyond)].mean())
    small = shrink(clean, FACTOR)
    texture = (blur(small, 1.5) - blur(small, 12.0))[where]
    return core, core / (float(np.median(np.abs(texture))) * 1.4826 + 1.0)


def _line_strength(pair: ImagePair, change: Change, where: Mask, clean: Field) -> tuple[float, float]:
    """The same of a line of a few pixels: its darkest or brightest twentieth at full size, over the fine texture."""
    full = enlarged(where, (pair.shape[1], pair.shape[0]))
    if not full.any():
        return 0.0, 0.0
    values = np.abs(blur(pair.delta - np.float32(change.shift), 0.8)[full])
    core = float(values[values >= np.percentile(values, 95)].mean())
    texture = (clean - blur(clean, 4.0))[full]
    # A line of a hundred pixels is seen where a dot of the same contrast would not be.
    return core, core / (3.0 * (float(np.median(np.abs(texture))) * 1.4826 + 1.0))


def _balance(smooth: Field, where: Mask) -> float:
    values = smooth[where]
    total = float(np.abs(values).sum())
    return float(values.sum() / total) if total > 0 else 0.0


def _outside(pair: ImagePair, roi: Mask, field: Mask) -> float | None:
    before, after = (
        np.clip(np.round(shrink(level, FACTOR)), 0, 255).astype(np.uint8)
        for level in (pair.before_level, pair.after_level)
    )
    return masked_ssim(before, after, roi, field=field).value


def _close_up(
    pair: ImagePair, change: Change, where: Mask, clean: Field, diffuse: bool, quality: int | None
) -> tuple[Border, Grain]:
    """Border and grain, measured at full size in the box around the edit."""
    ys, xs = np.nonzero(where)
    if ys.size == 0:
        return NO_BORDER, NOTHING
    margin = pair.px(24)
    top, left = max(0, int(ys.min()) * FACTOR - margin), max(0, int(xs.min()) * FACTOR - margin)
    bottom, right = int(ys.max()) * FACTOR + margin, int(xs.max()) * FACTOR + margin
    box = (slice(top, bottom), slice(left, right))
    size = (pair.shape[1], pair.shape[0])
    # Grain is a matter of the whole changed place, between the foci as well as in them.
    place = enlarged(_closed(where, pair.px(24) // FACTOR), size)[box]
    place &= pair.after_level[box] > BLACK
    delta = pair.delta[box] - np.float32(change.shift)
    tau = max(2.0, 3.0 * change.noise)
    border = NO_BORDER
    if not diffuse:
        border = border_of(
            delta,
            clean[box],
            pair.after_level[box],
            tau=tau,
            step_levels=SEAM_LEVELS,
            smallest=15.0 * pair.unit,
            unit=pair.unit,
        )
    reach = 24.0 * pair.unit
    return border, grain_of(pair.before_level[box], pair.after_level[box], place, reach, quality)


def _closed(mask: Mask, radius: int) -> Mask:
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    padded = np.pad(mask.astype(np.uint8), radius)
    closed = cv2.morphologyEx(padded, cv2.MORPH_CLOSE, kernel)
    return np.asarray(closed[radius:-radius, radius:-radius], bool)


def _colour(pair: ImagePair, modality: str) -> float:
    if modality == "fundus":
        return 0.0
    spread, old = (_spread(image[::2, ::2]) for image in (pair.after, pair.before))
    if float(np.percentile(old, 90)) > COLOURED:
        return 0.0
    return float(np.percentile(spread - old, 99.9))


def _spread(image: Pixels) -> npt.NDArray[np.int16]:
    """Largest minus smallest channel."""
    red, green, blue = cv2.split(image)
    spread = cv2.max(cv2.max(red, green), blue).astype(np.int16) - cv2.min(cv2.min(red, green), blue)
    return np.asarray(spread, np.int16)


def _outline(pair: ImagePair, anatomy: Anatomy) -> float:
    before, after = (
        cv2.resize(level, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA)
        for level in (pair.before_level, pair.after_level)
    )
    return outline_of(after, mass_of(after - before), anatomy.region("vault"))


def _burnt(pair: ImagePair, where: Mask, field: Mask) -> float:
    """Black counts inside the field alone: a mass taken from a hollow in a head without its skull leaves black."""
    if not where.any():
        return 0.0
    before, after = shrink(pair.before_level, FACTOR), shrink(pair.after_level, FACTOR)
    burnt = ((after > 250) & (before < 245)) | (field & (after < 3) & (before > 12))
    return float(burnt[where].mean())


def _checker(pair: ImagePair, where: Mask) -> float:
    """Energy of the change in the finest checkerboard, over its energy in the finest octave."""
    size = (pair.shape[1], pair.shape[0])
    fine = pair.delta - blur(pair.delta, 1.0)
    coherent = fine.copy()
    coherent[::2, 1::2] *= -1
    coherent[1::2, ::2] *= -1
    coherent = blur(coherent, 4.0)
    full = enlarged(where, size)
    energy = float((fine[full] ** 2).mean()) if full.any() else 0.0
    return float((coherent[full] ** 2).mean()) / energy if energy > 1.0 else 0.0
