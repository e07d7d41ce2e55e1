"""What an added finding must look like beside being bright or dark in its place, and what it may be taken for.

A sign that is missing fails the compliance. Where the change shows what another finding is known by as well, nothing
here can tell the two: the compliance is left unscored.
"""

from __future__ import annotations

import numpy as np

from plantain.offline.checks import COMPLIANCE, Check, at_least, at_most
from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.evidence import Evidence
from plantain.records import Direction, FailureCode

MOST_HILL = 0.95
"""A Gaussian hill, round or oval, is explained to 0.98 and more, a drawing with an outline of its own to 0.8."""
LEAST_UNLIKE = 0.12
"""Foci of one radius were stamped: dots of one size spread by 0.04 at most, drawn drusen and bleedings by 0.3."""
LEAST_LESSER = 0.12
MOST_HAIRLINE = 0.027
"""Radius in parts of the thorax: what breaks is a rib of 15 mm at most, in a thorax of 28 cm."""
LEAST_BREAK = 0.2
"""Of the change that darkens: a break is a gap, and only where its ends overlap it is a dense line."""
MOST_LOW = 0.77
"""Height of a middle between the top and the bottom of the lungs: below it is where fluid collects."""
LEAST_AT = 0.6
"""Of the change: a myopic crescent lies at the disc, whatever else is in the fundus."""
LEAST_MOVED = 0.02
"""Of the change that darkens: lost volume moves a border, and a border that moves leaves darkness behind it."""
BAND_WIDTH, BAND_LENGTH = 0.035, 3.0
"""Radius in parts of the thorax (a plate of at most 2 cm in 30) and area over that of the disc that fits into it."""
MOST_LONG = 1.6
"""Area of a nodule or mass over that of the largest disc in it: rounded, up to an oval half as long again as wide."""
MOST_MEDIAL = 0.6
"""Of the change in the medial band: beyond that, a widened mediastinum looks the same."""
LEAST_OUTLINE = 0.10
"""Of the brain's own contrast a pixel, see `instruments/outline.py`: below all of 18 real meningiomas."""
AT_DURA = 0.15
"""Of a mass, in the band of 1.1 cm along dura and midline: a round one of 5 cm that touches it has so much there."""
IN_SELLA = 0.8


def signs_of(evidence: Evidence, direction: Direction) -> list[Check]:
    """The checks of an addition; nothing is asked of a removal."""
    if direction is not Direction.ADD or not evidence.main:
        return []
    if evidence.presentation.hairline:
        widest = max(part.radius for part in evidence.main) / _thorax(evidence)
        text = f"a disc of a radius of {widest:.1%} of the thorax fits into it"
        line = at_most(COMPLIANCE, widest, MOST_HAIRLINE, text, FailureCode.NON_TARGET_FINDING)
        return [line, *_taken_for(evidence)]
    return [*_shape(evidence), *_kind(evidence), *_taken_for(evidence)]


def _shape(evidence: Evidence) -> list[Check]:
    shown, plain = evidence.presentation, evidence.plainness
    checks = []
    if not shown.plain:
        hill = f"one smooth hill explains {plain.hill:.0%} of its shape"
        checks.append(at_most(COMPLIANCE, plain.hill, MOST_HILL, hill, FailureCode.NON_TARGET_FINDING))
    if np.isfinite(plain.alike):
        alike = f"the radii of its {plain.parts} parts spread by {plain.alike:.2f} of their mean"
        checks.append(at_least(COMPLIANCE, plain.alike, LEAST_UNLIKE, alike, FailureCode.NON_TARGET_FINDING))
    if shown.rounded:
        long = _disc_areas(evidence)
        text = f"its area is that of {long:.2f} of the largest disc in it"
        checks.append(at_most(COMPLIANCE, long, MOST_LONG, text, FailureCode.NON_TARGET_FINDING))
    if shown.outlined:
        text = f"its outline rises by {evidence.outline:.2f} of the brain's contrast a pixel"
        checks.append(
            at_least(COMPLIANCE, evidence.outline, LEAST_OUTLINE, text, FailureCode.NON_TARGET_FINDING)
        )
    return checks


def _kind(evidence: Evidence) -> list[Check]:
    shown = evidence.presentation
    checks = []
    darkens = (1 - evidence.balance) / 2
    if shown.dark:
        text = f"{darkens:.0%} of the change darkens"
        checks.append(at_least(COMPLIANCE, darkens, shown.dark, text, FailureCode.NON_TARGET_FINDING))
    if shown.at:
        text = f"{evidence.at:.0%} of the change lies at the {shown.at}"
        checks.append(at_least(COMPLIANCE, evidence.at, LEAST_AT, text, FailureCode.NON_TARGET_FINDING))
    if shown.bilateral and evidence.left is not None and evidence.right is not None:
        lesser = min(evidence.left, evidence.right)
        text = f"the lesser lung holds {lesser:.0%} of the change"
        checks.append(at_least(COMPLIANCE, lesser, LEAST_LESSER, text, FailureCode.NON_TARGET_FINDING))
    if shown.low:
        text = f"middle of the change at {evidence.height:.0%} of the bases' height; fluid sinks"
        checks.append(at_least(COMPLIANCE, evidence.height, shown.low, text, FailureCode.NON_TARGET_FINDING))
    if shown.shrinks and not _band(evidence):
        text = f"no band, and {darkens:.1%} of the change darkens: no border moved, no volume was lost"
        checks.append(at_least(COMPLIANCE, darkens, LEAST_MOVED, text, FailureCode.NON_TARGET_FINDING))
    return checks


def _taken_for(evidence: Evidence) -> list[Check]:
    """What the change may be instead, by the other finding's own signs."""
    shown, place = evidence.presentation, evidence.lies_in
    found = []
    if "mediastinum" in shown.unlike and place("mediastinum") > MOST_MEDIAL:
        found.append(
            f"{place('mediastinum'):.0%} of the change lies in the medial band: a widened mediastinum looks the same"
        )
    darkens = (1 - evidence.balance) / 2
    if "volume loss" in shown.unlike and darkens >= LEAST_MOVED:
        found.append(f"{darkens:.0%} of the change darkens: a border moved, as where volume is lost")
    if "haze" in shown.unlike and darkens < LEAST_MOVED:
        found.append(f"{darkens:.1%} of the change darkens: no border moved, a haze over it looks the same")
    if "bright line" in shown.unlike and darkens < LEAST_BREAK:
        found.append(f"{darkens:.0%} of the change darkens: a plate of atelectasis looks the same")
    if "band" in shown.unlike and _band(evidence):
        found.append("it is a band: a plate of atelectasis looks the same")
    if "effusion" in shown.unlike and evidence.height > MOST_LOW:
        found.append(f"its middle lies at {evidence.height:.0%} of the lungs' height: fluid looks the same")
    if "sella" in shown.unlike and place("sella") >= IN_SELLA:
        found.append(
            f"{place('sella'):.0%} of the change lies at the sella: a pituitary tumour looks the same"
        )
    at_dura = place("dural line")
    if "meningioma" in shown.unlike and at_dura >= AT_DURA and evidence.outline >= LEAST_OUTLINE:
        crisp = f"with an outline of {evidence.outline:.2f}"
        found.append(f"{at_dura:.0%} of it lies at the dura, {crisp}: a meningioma looks the same")
    if "glioma" in shown.unlike and at_dura < AT_DURA:
        found.append(f"{at_dura:.0%} of it lies at the dura: a mass inside the brain looks the same")
    return [
        Check(COMPLIANCE, None, 0.0, f"cannot be told: {text}", FailureCode.NON_TARGET_FINDING)
        for text in found
    ]


def _disc_areas(evidence: Evidence) -> float:
    """Area of the largest part in units of the largest disc that fits into it."""
    part = max(evidence.main, key=lambda one: one.mass)
    return float(part.area / (np.pi * max(part.radius, 1.0) ** 2))


def _band(evidence: Evidence) -> bool:
    widest = max(part.radius for part in evidence.main)
    return widest <= BAND_WIDTH * _thorax(evidence) and _disc_areas(evidence) >= BAND_LENGTH


def _thorax(evidence: Evidence) -> float:
    """Its width, in pixels of the change map."""
    return float(evidence.anatomy.length * evidence.change.smooth.shape[1] / MAP_SIDE)
