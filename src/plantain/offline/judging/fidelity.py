"""Fidelity preservation: outside the edit nothing changed, and inside it the image's grain is still there."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.metrics.pixelwise import masked_ssim
from plantain.offline.anatomy.maps import grow, largest_channel
from plantain.offline.judging.case import Case
from plantain.offline.judging.change import doubled
from plantain.offline.judging.checks import Check, at_least, at_most
from plantain.pixels.arrays import Field, Mask
from plantain.records import FailureCode

BLOCK = 8
LAPLACIAN = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32) / 6.0
"""Blind to slopes, with gain 1 for white noise (Immerkaer 1996)."""
CODING = 0.15
"""Power that rounding and JPEG at quality 95 leave in it, in grey levels squared."""


def fidelity(case: Case) -> list[Check]:
    """Check if an edit preserved the image outside its change, and the grain inside."""
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
