"""The instrument judge on MedEBench's three scales: measurements from 0 to 10, with their numbers.

With the real result, editing accuracy is the share of the way from the image before to that result; without it, but
with a finding of ours, it follows from the checks of that finding; with neither it is unscored.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import cv2
import numpy as np

from plantain.metrics.pixelwise import masked_ssim
from plantain.offline.anatomy.maps import CannotShow, blur, grow
from plantain.offline.judging.case import Case, case_of, unmapped
from plantain.offline.judging.change import doubled
from plantain.offline.judging.checks import Check
from plantain.offline.judging.compliance import compliance
from plantain.offline.judging.realism import realism
from plantain.offline.language import read_instruction
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.pixels.decode import BadImage, decode
from plantain.records import (
    BUILD_DIRECTIONS,
    CriterionResult,
    FailureCode,
    Observations,
    Outcome,
    OutcomeKind,
    Rubric,
    RubricCriterion,
    Score,
    unscored,
)
from plantain.roles import JudgeRequest

MEASURED = ("editing_accuracy", "context_preservation", "visual_quality")
"""The criteria that are measured on a scale."""
BROKEN = 0.6
"""Most that a scale can have once a check fails; further from its threshold it falls to 0."""
LEAST_LEVELS, NOISES = 6.0, 4.0
"""Real images differ where they do so by this many grey levels and times the spread of their difference."""
LEAST_ALIKE = 0.5
"""Correlation of fine structure below which the real result is not aligned with the image before."""
LOST, KEPT, MORE, NOISY = 0.3, 0.85, 1.3, 2.5
"""Fine detail over the original's: quality is 0 up to the first and from the last, whole between the middle two."""


@dataclass(frozen=True, slots=True, eq=False)
class TrueChange:
    """The true change: a mask, bool (H, W), of where two real images differ, and how well they are aligned."""

    where: Mask
    alike: float


def scaled(request: JudgeRequest) -> Observations | Outcome:
    """Score an edit from 0 to 10 on MedEBench's criteria; `malformed` if an image is damaged or sizes differ."""
    try:
        before, after = decode(request.original.data), decode(request.edited.data)
        real = decode(request.truth.data) if request.truth is not None else None
        if real is not None and real.shape != before.shape:
            raise ValueError(
                f"the real result {real.shape[:2]} and the image before {before.shape[:2]} differ"
            )
        return _measured(_case(before, after, request), real, request.rubric)
    except (BadImage, ValueError, cv2.error) as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))


def _case(before: Pixels, after: Pixels, request: JudgeRequest) -> Case:
    """The case of a finding of ours, else one of which nothing is known but its two images."""
    finding, direction = request.finding, request.direction
    if finding is not None and direction in BUILD_DIRECTIONS:
        intent = read_instruction(request.instruction, [finding])
        with suppress(CannotShow):
            return case_of(before, after, intent, request.image, finding, direction)
    return unmapped(before, after, request.image, None, added=True)


def _measured(case: Case, truth: Pixels | None, rubric: Rubric) -> Observations:
    pair = case.pair
    wanted = true_change(pair.before, truth) if truth is not None else None
    checks = [
        check for check in realism(case) if case.finding.name or check.code is not FailureCode.REPETITION
    ]
    if wanted is not None and truth is not None:
        ea = accuracy(pair.before, pair.after, truth, wanted)
        why = f"share of the way to the real result, over {wanted.where.mean():.1%} of the frame"
    elif case.finding.name:
        ea, why = _by_checks(compliance(case))
    else:
        ea, why = unscored("no real result and no finding to measure the change against"), "not measured"
    cp = _context(case, wanted)
    vq, worst = _by_checks(checks)
    detail = _detail(case)
    kept = float(np.clip(min((detail - LOST) / (KEPT - LOST), (NOISY - detail) / (NOISY - MORE)), 0, 1))
    if vq.value is None or kept < vq.value:
        vq, worst = Score(kept), f"fine detail at {detail:.2f} of the original's"
    shares = dict(zip(MEASURED, (ea, cp, vq), strict=True))
    results = {c.name: _on_scale(shares[c.name], c, rubric) for c in rubric.criteria}
    return Observations(
        results,
        {},
        None,
        f"Instrument reading, not an expert's opinion. EA: {why}. VQ: {worst}.",
        _differences(case),
    )


def _on_scale(share: Score, criterion: RubricCriterion, rubric: Rubric) -> CriterionResult:
    if share.value is None or criterion.scale is None:
        return CriterionResult(None, evidence=share.reason)
    least, most = criterion.scale
    value = round(least + (most - least) * share.value, 2)
    return CriterionResult(rubric.passes(criterion.name, value), value=value)


def _by_checks(checks: Sequence[Check]) -> tuple[Score, str]:
    """Return 1 if no check fails, else a score that falls with the worst check's distance from its threshold."""
    worst = max(
        (check for check in checks if check.passed is False), key=lambda check: check.margin, default=None
    )
    if worst is None:
        return Score(1.0), "no check fails"
    return Score(BROKEN * (1 - worst.margin)), worst.text


def true_change(before: Pixels, truth: Pixels) -> TrueChange:
    """Find where two real images, uint8 (H, W, 3), differ, and how well their fine structure correlates."""
    unit = _unit(before)
    difference = np.abs(_smooth(truth, unit) - _smooth(before, unit)).max(axis=2)
    spread = 1.4826 * float(np.median(np.abs(difference - np.median(difference))))
    size = 2 * max(1, round(4 * unit)) + 1
    far = (difference > max(LEAST_LEVELS, NOISES * spread)).astype(np.uint8)
    closed = cv2.morphologyEx(
        far, cv2.MORPH_CLOSE, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    )
    first, second = _structure(before, unit).ravel(), _structure(truth, unit).ravel()
    if min(first.std(), second.std()) < 1e-3:
        return TrueChange(closed > 0, float(np.abs(first - second).max(initial=0.0) < 1e-3))
    return TrueChange(closed > 0, float(np.corrcoef(first, second)[0, 1]))


def accuracy(before: Pixels, edited: Pixels, truth: Pixels, wanted: TrueChange) -> Score:
    """Measure how much of the true change an edit made, in [0, 1].

    1 - sum |edited - truth| / sum |before - truth|, of smoothed levels over all channels where the real images
    differ, cut at 0: an unchanged output scores 0, the real result 1. It is unscored if the real images are not aligned
    or do not differ. `wanted` is the result of `true_change` for them.
    """
    if wanted.alike < LEAST_ALIKE:
        return unscored(
            f"the real result is not aligned with the image before (structure correlates {wanted.alike:.2f})"
        )
    if not wanted.where.any():
        return unscored("the real result shows no difference that could be measured")
    first, second, third = (_smooth(image, _unit(before))[wanted.where] for image in (before, edited, truth))
    return Score(float(np.clip(1 - np.abs(second - third).sum() / np.abs(first - third).sum(), 0, 1)))


def _context(case: Case, wanted: TrueChange | None) -> Score:
    """Strict SSIM outside the real change where it is known, else outside the output's own main change."""
    pair = case.pair
    if np.array_equal(pair.before, pair.after):
        return Score(1.0)
    if wanted is not None and wanted.alike >= LEAST_ALIKE:
        around = grow(wanted.where, 12 * pair.unit)
    elif case.change is not None and not case.whole_field:
        around = grow(doubled(case.change.mask, pair), 12 * pair.unit)
    else:
        around = np.zeros(pair.clean.shape, bool)
    if float(around.mean()) > (0.95 if wanted is not None else 0.5):
        around = np.zeros(pair.clean.shape, bool)
    return Score(max(0.0, masked_ssim(pair.before, pair.after, around).value or 0.0))


def _detail(case: Case) -> float:
    """Root mean square of the finest octave after over before; 1 where the original has none."""
    first, second = (
        float(np.sqrt(np.mean(np.square(plane - blur(plane, 1.0)))))
        for plane in (image.astype(np.float32).mean(axis=2) for image in (case.pair.before, case.pair.after))
    )
    return second / first if first > 0.2 else 1.0


def _differences(case: Case) -> str:
    if case.change is None:
        return "No visible difference."
    ys, xs = np.nonzero(case.change.mask)
    return (
        f"{case.change.parts} changed part(s) around x {2 * xs.mean():.0f}, y {2 * ys.mean():.0f}, by "
        f"{case.change.level:.1f} grey levels."
    )


def _unit(image: Pixels) -> float:
    return float(max(image.shape[:2])) / 1024


def _smooth(image: Pixels, unit: float) -> Field:
    return blur(image.astype(np.float32), max(0.8, 3.0 * unit))


def _structure(image: Pixels, unit: float) -> Field:
    """Return band-pass structure over its local strength, so that an outline counts no more than texture."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    band = blur(grey, max(0.8, 1.5 * unit)) - blur(grey, max(2.0, 6.0 * unit))
    return np.asarray(
        band / (np.sqrt(blur(band * band, max(4.0, 12.0 * unit))) + np.float32(0.5)), np.float32
    )
