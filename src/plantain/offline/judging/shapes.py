"""Does the change have the sign and shape of the primitive that the finding is drawn with?

One function for each primitive; the finding's own data give sizes, direction and place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from plantain.offline.anatomy.maps import SIDE, enlarged, grow
from plantain.offline.drawing.removing import contrast_unknown
from plantain.offline.judging.case import Case
from plantain.offline.judging.change import Change, contact, halved, leaves
from plantain.offline.judging.checks import Check, at_least, at_most
from plantain.records import FailureCode, Stroke

OTHER = FailureCode.NON_TARGET_FINDING
NEGLIGIBLE = 0.22
"""Share of a change that may go against the finding's sign."""


def sign_checks(case: Case, change: Change) -> list[Check]:
    """Check that the changed area is brighter or darker as the finding requires; return [] if it has no sign.

    Where contrast medium may have been given, the tumour of a removal may be bright or dark: its place must be more
    like its surroundings without it.
    """
    if not case.added and contrast_unknown(case.image, case.sequence):
        return [_unlike(case, change)]
    text = f"{change.brighter:.0%} of the changed area is brighter with the finding"
    shapes = {stroke.shape for stroke in case.strokes}
    signs = {np.sign(sum(stroke.level)) for stroke in case.strokes} - {0.0}
    if "border" in shapes:  # it covers darker tissue, and moved structure darkens and brightens
        return [
            at_least(change.brighter, 0.55, 0.45, text, FailureCode.DISTORTION),
            at_most(change.brighter, 0.97, 0.985, text, OTHER),
        ]
    if len(signs) == 2:
        return [at_least(min(change.brighter, 1 - change.brighter), 0.08, 0.04, text, OTHER)]
    if not signs:
        return []
    share = change.brighter if signs == {1.0} else 1 - change.brighter
    passes, fails = (0.6, 0.5) if "line" in shapes else (1 - NEGLIGIBLE, 0.62)
    return [at_least(share, passes, fails, text, FailureCode.DISTORTION)]


def _unlike(case: Case, change: Change) -> Check:
    """Check that a place differs more from its surroundings with the finding than without it."""
    shape = (change.mask.shape[0], change.mask.shape[1])
    reach = 0.08 * case.anatomy.yard * shape[1] / SIDE
    around = grow(change.mask, reach) & ~change.mask & (enlarged(case.anatomy.organ, shape) > 0.5)
    shown, clean = (
        float(np.abs(level[change.mask] - np.median(level[around])).mean()) if around.any() else 0.0
        for level in (halved(case.pair.shown), halved(case.pair.clean))
    )
    text = (
        f"its place differs by {shown:.0f} grey levels from its surroundings with it, by {clean:.0f} without"
    )
    return at_least(shown - clean, 0.2 * change.level, 0.0, text, FailureCode.DISTORTION)


def shape_checks(case: Case, change: Change) -> list[Check]:
    """Check the shape of a change against the finding's first drawing step, or the best fitting one of its zone.

    The list is empty if the finding's shape is unknown.
    """
    zoned = [stroke for stroke in case.strokes if set(stroke.on) & set(case.finding.zones)]
    strokes = zoned or [_joined(case.strokes)] if case.strokes else []
    tried = [SHAPES[stroke.shape](case, change, stroke) for stroke in strokes if stroke.shape in SHAPES]
    return max(tried, key=_fit, default=[])


def _joined(strokes: Sequence[Stroke]) -> Stroke:
    """The first step, with the sizes of all that are drawn around its middle."""
    first = strokes[0]
    if first.shape == "spots":
        return first
    return replace(first, size=(min(s.size[0] for s in strokes), max(s.size[1] for s in strokes)))


def _fit(checks: list[Check]) -> tuple[int, int]:
    return -sum(check.passed is False for check in checks), -sum(check.passed is None for check in checks)


def _sized(value: float, stroke: Stroke, what: str) -> list[Check]:
    """The measured size against the stroke's range, with room for what fades below the threshold."""
    low, high = sorted(abs(size) for size in stroke.size)
    text = f"{what} of {value:.3f}, usual {low:g} to {high:g}"
    return [
        at_least(value, 0.45 * low, 0.25 * low, text, FailureCode.TOO_SUBTLE),
        at_most(value, 1.6 * high, 2.4 * high, text, FailureCode.OVERCORRECTED),
    ]


def _no_hill(change: Change) -> Check:
    text = f"one smooth hill explains {change.hill:.0%} of its shape"
    return at_most(change.hill, 0.94, 0.965, text, OTHER)


def _covers(case: Case, change: Change, stroke: Stroke, towards: tuple[float, float]) -> float:
    """How far the change covers its structure up to the border in a direction, on the better of its sides."""
    places = case.anatomy.places
    structure = places.get("aerated", places.get(stroke.at, case.anatomy.organ))
    if case.anatomy.midline is None:  # a crescent around the disc: away from it the retina continues
        away = case.anatomy.points.get("temporal", (1.0, 0.0))[0]
        return leaves(
            change, case.anatomy, ~structure, (-towards[0], -towards[1]), "left" if away > 0 else "right"
        )
    sides = [side for side, share in (("left", change.left), ("right", change.right)) if share > 0.2]
    return max(leaves(change, case.anatomy, structure, towards, side) for side in sides)


def _mass(case: Case, change: Change, stroke: Stroke) -> list[Check]:
    text = f"its area is {change.long:.1f} times that of the largest disc in it"
    checks = [
        *_sized(change.radius, stroke, "radius"),
        _no_hill(change),
        at_most(change.long, 2.0, 2.6, text, OTHER),
        at_most(change.parts, 2, 4, f"{change.parts} parts", OTHER),
    ]
    if "midline" in case.finding.sides:
        return checks
    halves = (case.anatomy.organ & case.anatomy.side(side) for side in ("left", "right"))
    touch = max(contact(change, case.anatomy, half) for half in halves)
    text = f"{touch:.0%} of its length is at a border"
    based = (
        at_least(touch, 0.25, 0.12, text, OTHER) if stroke.based else at_most(touch, 0.25, 0.35, text, OTHER)
    )
    return [*checks, based]


def _opacity(case: Case, change: Change, stroke: Stroke) -> list[Check]:
    return [
        *_sized(change.radius, stroke, "radius"),
        _no_hill(change),
        at_most(
            change.long,
            2.3,
            3.0,
            f"its area is {change.long:.1f} times that of the largest disc in it",
            OTHER,
        ),
    ]


def _band(case: Case, change: Change, stroke: Stroke) -> list[Check]:
    return [
        *_sized(change.reach, stroke, "length"),
        at_most(change.radius, 0.028, 0.04, f"half as thick as {change.radius:.3f}", OTHER),
        at_least(
            change.long,
            3.0,
            2.2,
            f"its area is {change.long:.1f} times that of the largest disc in it",
            OTHER,
        ),
        at_most(change.parts, 2, 4, f"{change.parts} parts", OTHER),
    ]


def _line(case: Case, change: Change, stroke: Stroke) -> list[Check]:
    return [
        *_sized(change.reach, stroke, "length"),
        at_most(change.radius, 0.024, 0.032, f"half as thick as {change.radius:.3f}", OTHER),
        at_most(change.parts, 3, 6, f"{change.parts} parts", OTHER),
    ]


def _spots(case: Case, change: Change, stroke: Stroke) -> list[Check]:
    middle = sorted(change.radii)[len(change.radii) // 2]
    checks = [
        at_least(change.parts, 4, 3, f"{change.parts} parts", OTHER),
        at_most(middle, 1.6 * stroke.size[1], 2.5 * stroke.size[1], f"middle radius of {middle:.3f}", OTHER),
    ]
    if change.parts >= 4:
        text = f"the radii spread by {change.alike:.2f} of their mean"
        checks.append(at_least(change.alike, 0.1, 0.07, text, OTHER))
    return checks


def _crescent(case: Case, change: Change, stroke: Stroke) -> list[Check]:
    covers = _covers(case, change, stroke, stroke.towards)
    passes, fails = (1.5, 1.25) if stroke.meniscus else (2.0, 1.6)  # fluid is less slender than air or a scar
    text = f"its area is {change.long:.1f} times that of the largest disc in it"
    return [
        _no_hill(change),
        at_least(covers, 0.6, 0.4, f"{covers:.0%} of it reaches the border", OTHER),
        at_least(change.long, passes, fails, text, OTHER),
    ]


def _border(case: Case, change: Change, stroke: Stroke) -> list[Check]:
    covers = _covers(case, change, stroke, (-1.0, 0.0))
    return [
        _no_hill(change),
        at_least(covers, 0.33, 0.2, f"{covers:.0%} of it reaches the border of the mediastinum", OTHER),
        at_least(change.reach, 0.22, 0.15, f"reaches over {change.reach:.2f}", OTHER),
        at_least(min(change.left, change.right), 0.1, 0.05, f"{change.left:.0%} of it is on the left", OTHER),
    ]


SHAPES: Mapping[str, Callable[[Case, Change, Stroke], list[Check]]] = {
    "mass": _mass,
    "opacity": _opacity,
    "band": _band,
    "line": _line,
    "spots": _spots,
    "crescent": _crescent,
    "darkening": _crescent,
    "border": _border,
}
