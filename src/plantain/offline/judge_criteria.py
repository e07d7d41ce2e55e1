"""From measurements to the four criteria: each check has a threshold, a code and a sentence with its number."""

from __future__ import annotations

import numpy as np

from plantain.offline.checks import COMPLIANCE, FIDELITY, PLAUSIBILITY, REALISM, Check, at_least, at_most
from plantain.offline.instruments.evidence import Evidence
from plantain.offline.instruments.presentation import expected_sign
from plantain.offline.language import Intent
from plantain.offline.removals import certified
from plantain.offline.signs import LEAST_LESSER, signs_of
from plantain.records import Criterion, CriterionResult, Direction, FailureCode

LEAST_LEVEL = 5.0
"""Mean change of the core below which a finding is too subtle to be called visible, in grey levels."""
LEAST_VISIBILITY = 0.35
MOST_LEVEL = 180.0
"""A mass in a hollow from which the skull was removed stands on black: its whole brightness is change."""
LEAST_ON_SIDE = 0.7
LEAST_IN_REGION = 0.6
LEAST_IN_REGION_BASED, LEAST_TOUCHING = 0.4, 0.05
"""A large lesion may reach out of its region when it sits upon the line that this follows."""
MOST_LEFTOVER = 0.5
LEAST_LEFTOVER = -1.2
LEFTOVER_SPREADS = 2.6
MOST_SEAM, MOST_SEAM_CRISP, MOST_SEAM_REMOVED = 0.5, 0.95, 0.38
"""Of the outline: a crisp finding may begin with a step, what is left after a removal may not."""
LEAST_SPREAD = 0.1
"""A border of its own crosses ribs and vessels and rises unevenly; what was pasted rises by one level all along."""
LEAST_GRAIN_RATIO, LEAST_GRAIN_REMOVED = 0.66, 0.55
"""What a removal takes away had edges of its own, and what was under it may be plainer than what is around."""
MOST_LOST = 0.12
"""Of the blocks under added foci, which lie over the grain: a removal, or a moved border, takes structure away."""
MOST_GRAIN_RATIO = 1.9
MOST_SHIFT = 2.5
"""Grey levels by which the field may still lie off after what happened to the whole picture was taken out."""
MOST_TONED, MOST_MOVED = 8.0, 1.5
"""Grey levels and pixels from which what happened to the whole picture counts against it; less means nothing."""
MOST_COPIED, MOST_COPIED_SMOOTH = 350, 1120
"""Pixels. Where an image has no grain, a smooth fold resembles another one more easily by chance."""
LEAST_OUTSIDE_SSIM = 0.93
MOST_COLOUR = 8.0
MOST_BURNT = 0.12
MOST_CHECKER = 0.5
HAZE_ADDED, HAZE_REMOVED = 0.88, 1.1
LEAST_ALIKE = 0.55

ZONES = {
    "apical": (-0.5, 0.5),
    "upper": (-0.5, 0.6),
    "mid": (0.15, 0.85),
    "lower": (0.4, 1.5),
    "basal": (0.4, 1.5),
}
"""Where the middle of a change in a chest zone may lie between top and bottom of its region, generously."""


def checks_of(evidence: Evidence, intent: Intent, direction: Direction) -> list[Check]:
    """Every check that suits the finding."""
    checks = [*_colour(evidence), *_grain(evidence, direction)]
    if evidence.presentation.parts == "diffuse":
        return [*checks, *_copies(evidence), *_strays(evidence), *_haze(evidence, direction)]
    proofs = certified(evidence) if direction is Direction.REMOVE else []
    return [
        *checks,
        *_presence(evidence, direction),
        *_place(evidence, intent, proven=any(proof.passed for proof in proofs)),
        *_polarity(evidence, direction),
        *_size(evidence),
        *signs_of(evidence, direction),
        *proofs,
        *_seam(evidence, direction),
        *_copies(evidence),
        *_outside(evidence),
    ]


def result_of(criterion: Criterion, checks: list[Check]) -> CriterionResult:
    """A criterion passes when all its checks do, and is unscored when none fails and one cannot tell.

    Its confidence says how far the deciding check lies from its line: 0.5 means on the line, 1.0 far from it. It is a
    margin, not a probability.
    """
    own = [check for check in checks if check.criterion is criterion]
    broken = [check for check in own if check.passed is False]
    if broken:
        margin = max(check.margin for check in broken)
        codes = tuple(dict.fromkeys(check.code for check in broken))
        return CriterionResult(False, _confidence(margin), codes, "; ".join(check.text for check in broken))
    if untold := [check for check in own if check.passed is None]:
        return CriterionResult(None, None, (), "; ".join(check.text for check in untold))
    margin = min((check.margin for check in own), default=0.0)
    return CriterionResult(True, _confidence(margin), (), "; ".join(check.text for check in own))


def _confidence(margin: float) -> float:
    return round(0.5 + 0.5 * margin, 3)


def _presence(evidence: Evidence, direction: Direction) -> list[Check]:
    if not evidence.main:
        return [Check(COMPLIANCE, False, 1.0, "no change found", FailureCode.TOO_SUBTLE)]
    checks = [
        at_least(
            COMPLIANCE,
            evidence.level,
            LEAST_LEVEL,
            f"core changed by {evidence.level:.1f} grey levels",
            FailureCode.TOO_SUBTLE,
        ),
        at_least(
            COMPLIANCE,
            evidence.visibility,
            LEAST_VISIBILITY,
            f"{evidence.visibility:.2f} times the local texture",
            FailureCode.TOO_SUBTLE,
        ),
        at_most(
            PLAUSIBILITY,
            evidence.level,
            MOST_LEVEL,
            f"core changed by {evidence.level:.0f} grey levels",
            FailureCode.OVERCORRECTED,
        ),
    ]
    if direction is Direction.REMOVE and evidence.presentation.region not in ("retina", "disc"):
        left = evidence.leftover
        text = (
            f"what was taken away is left to {left.share:.0%}, {left.beyond_chance:+z.1f} spreads from chance"
        )
        kept = left.share > MOST_LEFTOVER and left.beyond_chance > LEFTOVER_SPREADS
        hollow = left.share < LEAST_LEFTOVER and left.beyond_chance < -LEFTOVER_SPREADS
        # The sella is a hollow by itself.
        hollow = hollow and evidence.presentation.region != "sella"
        margin = min(1.0, abs(left.share - MOST_LEFTOVER))
        checks.append(Check(COMPLIANCE, not kept, margin, text, FailureCode.TOO_SUBTLE))
        hole = f"removal went past the surroundings by {-left.share:.0%}"
        checks.append(Check(PLAUSIBILITY, not hollow, margin, hole, FailureCode.OVERCORRECTED))
    return checks


def _place(evidence: Evidence, intent: Intent, *, proven: bool) -> list[Check]:
    """Region, side and height; a lesion that was there and is gone may lie off what the map knows of its base."""
    if not evidence.main:
        return []
    name = evidence.presentation.region or "image field"
    based = bool(evidence.presentation.base) and evidence.touching >= LEAST_TOUCHING
    checks = [
        at_least(
            criterion,
            evidence.in_region,
            LEAST_IN_REGION_BASED if based else LEAST_IN_REGION,
            f"{evidence.in_region:.0%} of the change lies in the {name}",
            FailureCode.WRONG_LOCATION,
        )
        for criterion in (COMPLIANCE, PLAUSIBILITY)
        if not (proven and evidence.presentation.base)
    ]
    shares = {"left": evidence.left, "right": evidence.right}
    asked = shares.get(intent.side or "")
    if asked is not None:
        text = f"{asked:.0%} of the change lies on the patient's {intent.side}"
        checks.append(at_least(COMPLIANCE, asked, LEAST_ON_SIDE, text, FailureCode.WRONG_LOCATION))
    if intent.side == "bilateral" and evidence.left is not None and evidence.right is not None:
        lesser = min(evidence.left, evidence.right)
        text = f"the lesser side holds {lesser:.0%} of the change"
        checks.append(at_least(COMPLIANCE, lesser, LEAST_LESSER, text, FailureCode.WRONG_LOCATION))
    span = ZONES.get(intent.zone or "")
    if span is not None and evidence.presentation.region in ("lungs", "pleura"):
        text = f"middle of the change at {evidence.height:.0%} of the lungs' height, asked: {intent.zone}"
        inside = span[0] <= evidence.height <= span[1]
        margin = min(abs(evidence.height - span[0]), abs(evidence.height - span[1]))
        checks.append(Check(COMPLIANCE, inside, min(1.0, 4 * margin), text, FailureCode.WRONG_LOCATION))
    return checks


def _polarity(evidence: Evidence, direction: Direction) -> list[Check]:
    sign = expected_sign(evidence.presentation, direction)
    if sign == 0 or not evidence.main:
        return []
    balance = sign * evidence.balance
    wanted = "brighter" if sign > 0 else "darker"
    text = f"net {evidence.balance:+z.2f} of the change brightens, wanted {wanted}"
    least = evidence.presentation.net if direction is Direction.ADD else 0.05
    return [
        at_least(criterion, balance, least, text, FailureCode.DISTORTION)
        for criterion in (COMPLIANCE, PLAUSIBILITY)
    ]


def _size(evidence: Evidence) -> list[Check]:
    most = evidence.presentation.share
    text = f"the change covers {evidence.region_share:.0%} of its region"
    return [at_most(PLAUSIBILITY, evidence.region_share, most, text, FailureCode.OVERCORRECTED)]


def _seam(evidence: Evidence, direction: Direction) -> list[Check]:
    if evidence.border.length == 0:
        return []
    border = evidence.border
    crisp = evidence.presentation.crisp and border.spread >= LEAST_SPREAD
    most = MOST_SEAM_CRISP if crisp else MOST_SEAM
    if direction is Direction.REMOVE:
        most = MOST_SEAM_REMOVED
    text = f"{border.seam:.0%} of the outline is a step, median {border.step:.1f} grey levels"
    return [
        at_most(REALISM, border.seam, most, text, FailureCode.BLENDING_ARTEFACT),
        at_most(FIDELITY, border.seam, most, text, FailureCode.HARD_EDGE),
    ]


def _grain(evidence: Evidence, direction: Direction) -> list[Check]:
    grain = evidence.grain
    if grain.blocks == 0 or evidence.presentation.parts == "diffuse":
        return []
    least = LEAST_GRAIN_RATIO if direction is Direction.ADD else LEAST_GRAIN_REMOVED
    text = (
        f"grain {grain.after:.2f} grey levels, {grain.before:.2f} in the original, {grain.around:.2f} around"
    )
    return [
        at_least(FIDELITY, grain.kept, least, text, FailureCode.LOST_GRAIN),
        at_most(REALISM, grain.kept, MOST_GRAIN_RATIO, text, FailureCode.BLENDING_ARTEFACT),
        *(
            [
                at_most(
                    FIDELITY,
                    grain.lost,
                    MOST_LOST,
                    f"{grain.lost:.0%} of it smoothed",
                    FailureCode.LOST_GRAIN,
                )
            ]
            if direction is Direction.ADD and evidence.presentation.parts == "many"
            else []
        ),
    ]


def _copies(evidence: Evidence) -> list[Check]:
    repetition = evidence.repetition
    text = f"{repetition.copied} pixels repeat another place, best match {repetition.best:.2f}"
    most = MOST_COPIED if evidence.grain.blocks else MOST_COPIED_SMOOTH
    return [at_most(REALISM, repetition.copied, most, text, FailureCode.REPETITION)]


def _colour(evidence: Evidence) -> list[Check]:
    return [
        at_most(
            REALISM,
            evidence.colour,
            MOST_COLOUR,
            f"colour in a grey image: {evidence.colour:.0f} levels",
            FailureCode.BLENDING_ARTEFACT,
        ),
        at_most(
            REALISM,
            evidence.burnt,
            MOST_BURNT,
            f"{evidence.burnt:.0%} of the change became pure white or black",
            FailureCode.OVERCORRECTED,
        ),
        at_most(
            REALISM,
            evidence.checker,
            MOST_CHECKER,
            f"checkerboard holds {evidence.checker:.0%} of the fine change",
            FailureCode.BLENDING_ARTEFACT,
        ),
    ]


def _outside(evidence: Evidence) -> list[Check]:
    shift = evidence.change.shift
    checks = [
        at_most(
            FIDELITY,
            abs(shift),
            MOST_SHIFT,
            f"whole field moved by {shift:+z.1f} grey levels",
            FailureCode.EXCESS_CHANGE,
        )
    ]
    came = evidence.handling
    if abs(came.toned) >= MOST_TONED or float(np.hypot(*came.moved)) > MOST_MOVED:
        margin = min(1.0, abs(came.toned) / MOST_TONED)
        checks.append(Check(FIDELITY, False, margin, came.words, FailureCode.EXCESS_CHANGE))
    elif came.words:
        checks.append(Check(FIDELITY, True, 1.0, came.words, FailureCode.EXCESS_CHANGE))
    if evidence.outside_ssim is not None:
        text = f"SSIM outside the edit {evidence.outside_ssim:.3f}"
        checks.append(
            at_least(FIDELITY, evidence.outside_ssim, LEAST_OUTSIDE_SSIM, text, FailureCode.EXCESS_CHANGE)
        )
    return [*checks, *_strays(evidence)]


def _strays(evidence: Evidence) -> list[Check]:
    if not evidence.strays:
        return [Check(FIDELITY, True, 1.0, "nothing changed away from the edit", FailureCode.EXCESS_CHANGE)]
    first = evidence.strays[0]
    what = "mark or text changed" if first.mark else "change"
    text = (
        f"{len(evidence.strays)} change(s) away from the edit; largest: {what} at x {first.x}, y {first.y}, "
        f"{first.area} pixels, up to {first.peak:.0f} grey levels"
    )
    return [Check(FIDELITY, False, min(1.0, first.peak / 20), text, FailureCode.EXCESS_CHANGE)]


def _haze(evidence: Evidence, direction: Direction) -> list[Check]:
    whole = evidence.whole
    text = f"vessel contrast at {whole.contrast:.2f} of the original's"
    spread = f"between {whole.least_quadrant:.2f} and {whole.most_quadrant:.2f} by quadrant"
    alike = f"structure correlates {whole.alike:.2f} with the original's"
    if direction is Direction.ADD:
        presence = [
            at_most(COMPLIANCE, whole.contrast, HAZE_ADDED, text, FailureCode.TOO_SUBTLE),
            at_most(COMPLIANCE, whole.most_quadrant, 1.0, spread, FailureCode.WRONG_LOCATION),
            at_least(PLAUSIBILITY, whole.contrast, 0.08, text, FailureCode.OVERCORRECTED),
        ]
    else:
        presence = [
            at_least(COMPLIANCE, whole.contrast, HAZE_REMOVED, text, FailureCode.TOO_SUBTLE),
            at_most(PLAUSIBILITY, whole.contrast, 6.0, text, FailureCode.OVERCORRECTED),
        ]
    return [*presence, at_least(PLAUSIBILITY, whole.alike, LEAST_ALIKE, alike, FailureCode.DISTORTION)]
