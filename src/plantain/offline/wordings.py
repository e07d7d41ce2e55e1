"""The sentences around the command: how the finding presents, what must stay, what must not appear, what failed before.

They carry the three requirements of Med-Banana-50K, 2.2 (understandable, specific, natural) and its three constraints
(fidelity, negative rules, counterfactual minimality), in our words. None of them may change how the command is read;
the writer checks that by reading its own text back.
"""

from __future__ import annotations

from collections.abc import Collection

from plantain.findings import lines_on
from plantain.offline.language import Intent
from plantain.records import Direction, FailureCode, Finding, SourceImage

_MARKS = {
    "chest_xray": "side markers, tubes, lines, pacemakers and the collimation border",
    "brain_mri": "the skull, the scalp, the black background and any scanner margin",
    "fundus": "the round border of the photograph, its black corners and its reflections",
}
_MEDIUM = {"chest_xray": "film", "brain_mri": "scan", "fundus": "photograph"}

_FIDELITY = (
    "Keep the grain, sharpness and contrast of the {medium}, and leave {marks} exactly as they are.",
    "The {medium}'s own noise, grey tones and contrast stay the same; {marks} remain unchanged.",
    "Preserve the texture, noise and contrast of the original {medium}, with {marks} left untouched.",
    "Leave the original grain and contrast alone, and do not alter {marks}.",
)
_FIDELITY_FUNDUS = (
    "Keep the grain, focus and colour of the {medium}, and leave {marks} exactly as they are.",
    "The {medium}'s own noise, colour and focus stay the same; {marks} remain unchanged.",
    "Preserve the texture, colour and focus of the original {medium}, with {marks} left untouched.",
    "Leave the original grain and colour alone, and do not alter {marks}.",
)
_FORBIDDEN = (
    "Do not draw text, labels or arrows, hard edges or repeated patterns, and do not show any other disease.",
    "Avoid lettering, arrows, cut-out edges, copied patches and any other disease.",
    "There must not be any writing, any visible seam, any repeated structure or any second disease.",
    "Never put in letters, sharp seams, tiled texture or a disease that was not asked for.",
)
_MINIMAL = (
    "Change nothing else.",
    "Everything else stays as it is.",
    "Leave the rest of the image as it was.",
    "No other part of the image may differ.",
)
WORDINGS = len(_MINIMAL)

_PRESENTS = ("What one sees: {signs}.", "Its signs: {signs}.", "How it shows itself: {signs}.")
_GOES_WITH = ("Together with it: {sign}.", "What goes with it: {sign}.")
_RETURNS = ("What comes back: {lines}.", "In its stead: {lines}.", "What the reader then sees: {lines}.")

_EMPHASIS: dict[FailureCode, dict[Direction, str]] = {
    FailureCode.TOO_SUBTLE: {
        Direction.ADD: "A reader must notice it without searching.",
        Direction.REMOVE: "Nothing of it may remain, faint outer parts included.",
    },
    FailureCode.OVERCORRECTED: {
        Direction.ADD: "It must be believable and restrained.",
        Direction.REMOVE: "Do not go further than normal tissue: no darker, no brighter, no emptier.",
    },
    FailureCode.WRONG_LOCATION: {
        Direction.ADD: "It belongs exactly there and nowhere else.",
        Direction.REMOVE: "Work only where the disease is seen, nowhere else.",
    },
    FailureCode.DISTORTION: dict.fromkeys(
        Direction, "Bones, vessels, organs and borders keep their shape and do not bend or break."
    ),
    FailureCode.BLENDING_ARTEFACT: dict.fromkeys(
        Direction, "Nobody may see where the change begins or ends: tones run on without a step."
    ),
    FailureCode.REPETITION: dict.fromkeys(
        Direction, "No patch of the image may be copied; texture varies from point to point."
    ),
    FailureCode.HARD_EDGE: dict.fromkeys(
        Direction, "No outline may stand around the change; it fades out gently."
    ),
    FailureCode.LOST_GRAIN: dict.fromkeys(
        Direction,
        "The grain within the change matches the grain around it; no smooth or painted patch may be seen.",
    ),
    FailureCode.EXCESS_CHANGE: dict.fromkeys(
        Direction, "Touch as few pixels as possible; apart from the change, the two images must agree."
    ),
}


def presentation(intent: Intent, finding: Finding, image: SourceImage, wording: int) -> list[str]:
    """Sentences on how the finding presents (add), or on what is seen in its stead (remove)."""
    if intent.direction is Direction.REMOVE:
        restored = _joined(finding.restores[:2])
        return [_RETURNS[wording % len(_RETURNS)].format(lines=restored)] if restored else []
    signs = lines_on(finding.signs, finding.zones, image, intent.zone)
    sentences = []
    if signs:
        sentences.append(_PRESENTS[wording % len(_PRESENTS)].format(signs=_joined(signs[:2])))
    beside = lines_on(
        finding.secondary_signs, finding.zones, image, intent.zone, late=intent.extent == "large"
    )
    if beside and intent.extent != "small":
        sentences.append(_GOES_WITH[wording % len(_GOES_WITH)].format(sign=beside[0]))
    return sentences


def stays(intent: Intent, finding: Finding, wording: int) -> list[str]:
    """Sentences on what must stay: the medium, its marks, and by name the other side where one was chosen."""
    medium = _MEDIUM.get(finding.modality, "image")
    marks = _MARKS.get(finding.modality, "borders, marks and labels of the device")
    pool = _FIDELITY_FUNDUS if finding.modality == "fundus" else _FIDELITY
    sentences = [pool[wording % len(pool)].format(medium=medium, marks=marks)]
    other = {"left": "right", "right": "left"}.get(intent.side or "")
    part = {"chest_xray": "side of the chest", "brain_mri": "half of the brain"}.get(finding.modality)
    if other and part:
        sentences.append(f"Keep the {other} {part} unchanged.")
    return sentences


def forbidden(wording: int) -> str:
    """What must not appear."""
    return _FORBIDDEN[wording % len(_FORBIDDEN)]


def minimal(wording: int) -> str:
    """That nothing else may change."""
    return _MINIMAL[wording % len(_MINIMAL)]


def emphasis(codes: Collection[FailureCode], intent: Intent, finding: Finding) -> list[str]:
    """One sentence for each reason for which an earlier round failed, in the order of the codes."""
    assert intent.direction is not None
    sentences = [_EMPHASIS[code][intent.direction] for code in _EMPHASIS if code in codes]
    if FailureCode.NON_TARGET_FINDING in codes:
        neighbours = " or ".join(other.name for other in finding.differentials[:2])
        sentences.append(
            f"It must not be mistaken for {neighbours}." if neighbours else "No second disease may appear."
        )
    return sentences


def _joined(lines: Collection[str]) -> str:
    return "; ".join(lines)
