"""Med-Banana's four criteria, each as a list of measurements against thresholds."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.metrics.ssim import masked_ssim
from plantain.offline.anatomy.maps import blur, colour_of, enlarged, grow, largest_channel, shrink
from plantain.offline.judging.case import Case
from plantain.offline.judging.change import Change, doubled, halved
from plantain.offline.judging.checks import Check, at_least, at_most
from plantain.offline.judging.shapes import shape_checks, sign_checks
from plantain.pixels.arrays import Field, Mask
from plantain.records import FailureCode

LEAST_LEVEL = 10.0
"""Grey levels of the core from which a change is seen."""


def compliance(case: Case) -> list[Check]:
    """Return the checks of the criterion."""
    if case.whole_field:
        return _hazed(case)
    if case.change is None:
        return [Check(False, 1.0, "no change found", FailureCode.TOO_SUBTLE)]
    change = case.change
    visible = change.level / max(change.texture, 1.0)
    seen = f"core changed by {change.level:.1f} grey levels"
    texture = f"{visible:.1f} times the local texture"
    there = f"{change.inside:.0%} of the change is in its place"
    return [
        at_least(change.level, LEAST_LEVEL, LEAST_LEVEL, seen, FailureCode.TOO_SUBTLE),
        at_least(visible, 0.6, 0.4, texture, FailureCode.TOO_SUBTLE),
        at_least(change.inside, 0.65, 0.5, there, FailureCode.WRONG_LOCATION),
        *_side(case, change),
        *sign_checks(case, change),
        *shape_checks(case, change),
    ]


def _side(case: Case, change: Change) -> list[Check]:
    if case.anatomy.midline is None:
        return []
    side = case.intent.side or (case.finding.sides[0] if len(case.finding.sides) == 1 else None)
    if side in ("left", "right"):
        share = change.left if side == "left" else change.right
        text = f"{share:.0%} of the change is on the patient's {side}"
        return [at_least(share, 0.8, 0.65, text, FailureCode.WRONG_LOCATION)]
    if side == "bilateral":
        lesser = min(change.left, change.right)
        text = f"the lesser side has {lesser:.0%} of the change"
        return [at_least(lesser, 0.15, 0.08, text, FailureCode.WRONG_LOCATION)]
    return []


def _hazed(case: Case) -> list[Check]:
    """Contrast of fine structure with the haze over that without it, in each quarter of the field."""
    ratios = [_contrast(case, rows, columns) for rows in (0, 1) for columns in (0, 1)]
    text = f"contrast {min(ratios):.2f} to {max(ratios):.2f} of the clear image's"
    return [
        at_most(float(np.mean(ratios)), 0.85, 0.93, text, FailureCode.TOO_SUBTLE),
        at_most(max(ratios), 1.0, 1.05, text, FailureCode.WRONG_LOCATION),
    ]


def _contrast(case: Case, rows: int, columns: int) -> float:
    height, width = (side // 2 for side in case.pair.clean.shape)
    box = (slice(rows * height, (rows + 1) * height), slice(columns * width, (columns + 1) * width))
    first, second = (
        blur(plane, 2.0)[box] - blur(plane, 12.0)[box] for plane in (case.pair.clean, case.pair.shown)
    )
    inner = shrink(case.anatomy.organ, 6)
    lit = enlarged(inner, (2 * height, 2 * width))[box] > 0.5
    return float(second[lit].std() / max(float(first[lit].std()), 0.1)) if lit.any() else 1.0


MOST_LEVEL = 150.0
"""Grey levels beyond which no finding changes its core."""


def plausibility(case: Case) -> list[Check]:
    """Return the checks of the criterion."""
    if case.whole_field:
        first, second = (blur(plane, 4.0) for plane in (case.pair.clean, case.pair.shown))
        alike = float(np.corrcoef(first.ravel()[::7], second.ravel()[::7])[0, 1])
        text = f"structure correlates {alike:.2f} with the clear image's"
        return [at_least(alike, 0.85, 0.7, text, FailureCode.DISTORTION)]
    if case.change is None:
        return []
    change = case.change
    shape = (change.mask.shape[0], change.mask.shape[1])
    inside = enlarged(grow(case.anatomy.field, 2), shape) > 0.5
    organ = float(inside[change.mask].mean())
    share = float(change.mask.sum()) / max(1.0, float((enlarged(case.anatomy.organ, shape) > 0.5).sum()))
    covers = f"the change covers {share:.0%} of the organ"
    there = f"{change.inside:.0%} of the change is in its place"
    level = f"core changed by {change.level:.0f} grey levels"
    return [
        at_least(organ, 0.95, 0.85, f"{organ:.0%} of the change is in the body", FailureCode.WRONG_LOCATION),
        *sign_checks(case, change),
        at_least(change.inside, 0.6, 0.45, there, FailureCode.WRONG_LOCATION),
        at_most(change.level, MOST_LEVEL, 1.3 * MOST_LEVEL, level, FailureCode.OVERCORRECTED),
        at_most(share, 0.9, 1.2, covers, FailureCode.OVERCORRECTED),
    ]


STEP = 3.0
"""Grey levels within two pixels from which a rise is a step."""


def realism(case: Case) -> list[Check]:
    """Return the checks of the criterion."""
    pair = case.pair
    blending = FailureCode.BLENDING_ARTEFACT
    checks = []
    if case.image.modality != "fundus":
        colour = float(np.percentile(colour_of(pair.after).astype(np.int16) - colour_of(pair.before), 99.95))
        checks.append(at_most(colour, 8, 14, f"colour in a grey image: {colour:.0f} levels", blending))
    if case.change is None or case.whole_field:
        return checks
    mask = doubled(case.change.mask, pair)
    white = np.all(pair.after[mask] > 252, axis=1) & ~np.all(pair.before[mask] > 252, axis=1)
    burnt = f"{white.mean():.0%} of the change became white"
    checks.append(at_most(float(white.mean()), 0.1, 0.2, burnt, FailureCode.OVERCORRECTED))
    if any(stroke.shape in ("border", "line") for stroke in case.strokes):
        return checks  # structure moves along with the border; a line is all border
    seam = _seam(pair.shown - pair.clean, mask)
    checks.append(at_most(seam, 0.3, 0.5, f"{seam:.0%} of the outline is one even step", blending))
    if not case.added or any(stroke.shape == "spots" for stroke in case.strokes):
        return checks  # tissue under a removed finding is new; spots replace all fine structure
    kept = _own_texture(case, case.change.mask)
    if kept is not None:
        text = f"fine structure under the change has correlation {kept:.2f} with the original's"
        checks.append(at_least(kept, 0.3, 0.15, text, FailureCode.REPETITION))
    return checks


def _seam(delta: Field, mask: Mask) -> float:
    """Share of the outline where the change rises within four pixels to one even height, as pasting leaves it."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    points = np.concatenate([c[:, 0, :] for c in contours if len(c) > 80] or [np.zeros((0, 2), int)])
    if len(points) < 60:
        return 0.0
    smooth = blur(delta, 0.8)
    rise = np.zeros_like(smooth)
    for axis in (0, 1):
        rise = np.maximum(rise, np.abs(np.roll(smooth, 2, axis) - np.roll(smooth, -2, axis)))
    near, within = (
        cv2.dilate(plane, np.ones((size, size), np.uint8))[points[:, 1], points[:, 0]]
        for plane, size in ((rise, 11), (np.abs(blur(delta, 2.0)), 23))
    )
    step = (near > STEP) & (near > 0.85 * within)
    even = np.abs(near - np.median(near)) < 0.25 * np.median(near)
    return float((step & even).mean())


def _own_texture(case: Case, mask: Mask) -> float | None:
    """Correlation of fine structure before and after where it changed; None where there is none to compare."""
    bands = [halved(blur(plane, 0.6) - blur(plane, 3.0)) for plane in (case.pair.clean, case.pair.shown)]
    first, second = (band[mask] for band in bands)
    if mask.sum() < 300 or min(first.std(), second.std()) < 0.5:
        return None
    return float(np.corrcoef(first, second)[0, 1])


BLOCK = 8
LAPLACIAN = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32) / 6.0
"""Blind to slopes, with gain 1 for white noise (Immerkaer 1996)."""
CODING = 0.15
"""Power that rounding and JPEG at quality 95 leave in it, in grey levels squared."""


def fidelity(case: Case) -> list[Check]:
    """Return the checks of the criterion."""
    pair, change = case.pair, case.change
    excess = FailureCode.EXCESS_CHANGE
    if case.whole_field:
        beyond = doubled(~grow(case.anatomy.field, 3), pair)
        moved = largest_channel(cv2.absdiff(pair.after, pair.before))
        worst = float(np.percentile(moved[beyond], 99.9)) if beyond.any() else 0.0
        return [at_most(worst, 12, 20, f"outside the field up to {worst:.0f} levels", excess)]
    checks = [at_most(abs(pair.brighter), 6, 8, f"whole image {pair.brighter:+z.1f} grey levels", excess)]
    if change is None:
        return checks
    if change.strays:
        first = change.strays[0]
        what = "mark or text" if first.mark else "change"
        text = (
            f"{len(change.strays)} change(s) elsewhere, the largest a {what} at x {first.x}, y {first.y}: "
            f"{first.area} pixels, up to {first.peak:.0f} grey levels"
        )
        checks.append(Check(False, min(1.0, first.peak / 20), text, excess))
    mask = doubled(change.mask, pair)
    share = float(mask.mean())
    checks.append(at_most(share, 0.6, 0.75, f"{share:.0%} of the image changed", excess))
    score = masked_ssim(pair.before, pair.after, grow(mask, 14 * pair.unit)).value
    if score is not None:
        checks.append(at_least(score, 0.93, 0.88, f"SSIM outside the edit {score:.3f}", excess))
    kept = _grain(pair.clean, pair.shown, mask)
    if kept is not None:
        text = f"grain {kept:.2f} of the original's"
        checks += [
            at_least(kept, 0.6, 0.45, text, FailureCode.LOST_GRAIN),
            at_most(kept, 1.6, 2.2, text, FailureCode.BLENDING_ARTEFACT),
        ]
    return checks


def _grain(clean: Field, shown: Field, mask: Mask) -> float | None:
    """Grain with the finding over grain without it, relative to the surroundings; None where there is none."""
    first, second = (_texture(plane) for plane in (clean, shown))
    cover = cv2.resize(mask.astype(np.float32), first.shape[::-1], interpolation=cv2.INTER_AREA)
    around = cv2.resize(grow(mask, 60).astype(np.float32), first.shape[::-1], interpolation=cv2.INTER_AREA)
    inside, ring = cover > 0.7, (around > 0.7) & (cover == 0)
    grainy = first > 0.3
    if (inside & grainy).sum() < max(20, 0.5 * inside.sum()) or (ring & grainy).sum() < 6:
        return None
    ratios = [
        float(np.median(second[part] / np.maximum(first[part], 0.3)))
        for part in (inside & grainy, ring & grainy)
    ]
    return ratios[0] / max(ratios[1], 0.1)


def _texture(plane: Field) -> Field:
    """Root mean square of the finest structure in each block, without what coding leaves."""
    fine = cv2.filter2D(plane, cv2.CV_32F, LAPLACIAN)
    size = (max(1, plane.shape[1] // BLOCK), max(1, plane.shape[0] // BLOCK))
    power = cv2.resize(fine * fine, size, interpolation=cv2.INTER_AREA)
    return np.asarray(np.sqrt(np.clip(power - CODING, 0, None)), np.float32)
