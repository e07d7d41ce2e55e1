"""Instruction compliance: a change that is seen, in its place, on its side, of the finding's sign and shape."""

from __future__ import annotations

import numpy as np

from plantain.offline.anatomy.maps import blur, enlarged, shrink
from plantain.offline.judging.case import Case
from plantain.offline.judging.change import Change
from plantain.offline.judging.checks import Check, at_least, at_most
from plantain.offline.judging.shapes import shape_checks, sign_checks
from plantain.records import FailureCode

LEAST_LEVEL = 10.0
"""Grey levels of the core from which a change is seen."""


def compliance(case: Case) -> list[Check]:
    """Check if an edit complies with its instruction: visible, with the right place, side, sign and shape."""
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
