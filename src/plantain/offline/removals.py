"""When a removal from the brain is certified: by the halves of the slice, before and after; else it is left open.

What nothing here can tell is left unscored: no certificate is better than a wrong one. Limits were set on the
development half of real slices that were looked at one by one (`benchmarks/removals_by_eye.py`).
"""

from __future__ import annotations

from plantain.offline.checks import COMPLIANCE, Check
from plantain.offline.instruments.evidence import Evidence
from plantain.offline.instruments.removal import Removal
from plantain.records import FailureCode

LEAST_ALIKE = 0.955
"""Correlation of a slice with its mirror image: a slanted or sagittal slice has no halves to compare."""
LEAST_EVIDENCE = 600.0
"""Spreads times pixels: below that healthy halves differ as much (by a bright place up to 584, on 71 slices)."""
LEAST_REACHED, LEAST_COVERED = 0.95, 0.97
TOUCHED, HALF_LEFT = 0.1, 0.8
"""Of the odd place, and of the lesion's extent: where some changed and less than that of the extent, some is left.
An extent holds up to a fifth that is no tumour (`benchmarks/lesion_extents.py`), so above that a removal stays open."""
MOST_STILL_ODD = 0.25
MOST_LEFT, MOST_LEFT_INSIDE = 0.4, 0.15
"""Of the lesion's evidence: anywhere in the slice, and where it was."""
MOST_SPOT = 0.015
"""Of the lesion's area."""
MOST_STRIP = 1
"""Pixels: at the midline the halves say nothing, and what a mirror leaves of a lesion there is a thin line."""
MOST_AWAY, AWAY_SLACK = 0.7, 0.15
"""What came may be as far from the brain's usual level as this share of what was, or as the other half is."""
MADE_ODD, MADE_ODD_LEAST = 2.0, 150.0


def certified(evidence: Evidence) -> list[Check]:
    """The checks of a removal from the brain; nothing is asked elsewhere, nor proof that a drawn lesion is gone.

    A drawing is fainter than most tumours, and that its maker takes it away again shows self-consistency and no more.
    """
    removal, shown = evidence.removal, evidence.presentation
    if not shown.halves or not evidence.main:
        return []
    if removal is not None and (why := broken(removal)):
        return [Check(COMPLIANCE, False, 1.0, why, FailureCode.TOO_SUBTLE)]
    if shown.drawn:
        return []
    if removal is None:
        return [_open("no lesion in which the halves of the original differ")]
    if found := doubts(removal, dark_may_be=shown.dark_may_be):
        return [_open(found[0])]
    text = f"the lesion's extent changed to {removal.covered:.0%}, and {removal.left:.0%} as much is odd now"
    return [Check(COMPLIANCE, True, 1.0, text, FailureCode.TOO_SUBTLE)]


def _open(why: str) -> Check:
    return Check(COMPLIANCE, None, 0.0, f"the removal cannot be certified: {why}", FailureCode.TOO_SUBTLE)


def broken(removal: Removal) -> str:
    """What shows that the lesion is there still, or that another one came; "" where nothing does."""
    if removal.odd_after > max(MADE_ODD * removal.odd_before, MADE_ODD_LEAST):
        return "what was changed was like the other half and is unlike it now"
    half = removal.reached >= TOUCHED and removal.covered < HALF_LEFT
    if removal.alike >= LEAST_ALIKE and removal.evidence >= LEAST_EVIDENCE and half:
        return f"only {removal.covered:.0%} of the lesion's extent in the original changed"
    return ""


def doubts(removal: Removal, *, dark_may_be: bool) -> list[str]:
    """What keeps a removal from being certified."""
    found = [
        (removal.alike < LEAST_ALIKE, f"its halves are alike to {removal.alike:.2f} only"),
        (removal.evidence < LEAST_EVIDENCE, "the halves of the original differ no more than healthy ones do"),
        (not removal.bright and not dark_may_be, "what is odd is dark, and may be a ventricle"),
        (
            removal.reached < LEAST_REACHED or removal.covered < LEAST_COVERED,
            f"{removal.reached:.0%} of the odd place and {removal.covered:.0%} of the lesion changed",
        ),
        (
            removal.odd_after > MOST_STILL_ODD * removal.odd_before
            or removal.left > MOST_LEFT
            or removal.left * removal.left_inside > MOST_LEFT_INSIDE,
            f"{removal.left:.0%} as much is odd now",
        ),
        (removal.spot > MOST_SPOT, f"{removal.spot:.1%} of the lesion's area looks like it still"),
        (removal.strip > MOST_STRIP, "something at the midline looks like the lesion still"),
        (
            removal.away_after > max(MOST_AWAY * removal.away, removal.away_opposite + AWAY_SLACK),
            "what came is as far from the brain's usual level as what was",
        ),
    ]
    return [why for doubt, why in found if doubt]
