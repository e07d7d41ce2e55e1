"""Realism: no step along the outline, no texture from elsewhere, no colour in a grey image, no burnt area."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.anatomy.maps import blur, colour_of
from plantain.offline.judging.case import Case
from plantain.offline.judging.change import doubled, halved
from plantain.offline.judging.checks import Check, at_least, at_most
from plantain.pixels.arrays import Field, Mask
from plantain.records import FailureCode

STEP = 3.0
"""Grey levels within two pixels from which a rise is a step."""


def realism(case: Case) -> list[Check]:
    """Check if an edit looks real: no hard outline, foreign texture, false colour or saturated area."""
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
