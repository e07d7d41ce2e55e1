"""Structural plausibility: a finding in the anatomy that it belongs to, of a strength and size that it can have."""

from __future__ import annotations

import numpy as np

from plantain.offline.anatomy.maps import blur, enlarged, grow
from plantain.offline.judging.case import Case
from plantain.offline.judging.checks import Check, at_least, at_most
from plantain.offline.judging.shapes import sign_checks
from plantain.records import FailureCode

MOST_LEVEL = 150.0
"""Grey levels beyond which no finding changes its core."""


def plausibility(case: Case) -> list[Check]:
    """Check if an edit is anatomically plausible: in its organ, with a possible size and strength."""
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
