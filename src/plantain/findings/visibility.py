"""Compare a finding's conditions of visibility, and those of its signs, with the record of an image."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plantain.records import Finding, SourceImage, Visibility


def why_not_shown(finding: Finding, image: SourceImage) -> str:
    """Return the reason why the finding cannot be shown on this image, as one line; "" if it can."""
    if finding.modality != image.modality:
        return f"{finding.name} belongs to {finding.modality}, the image is {image.modality}"
    return _obstacle(finding.visibility, image)


def out_of_view(finding: Finding, image: SourceImage) -> bool:
    """Return True if the image is known not to show the finding's anatomy."""
    return _is_one_of(image.view, finding.visibility.never)


def zones_on(finding: Finding, image: SourceImage) -> tuple[str, ...]:
    """Return the finding's zones that can be shown on this image, in their order."""
    never = Visibility()
    return tuple(
        zone for zone in finding.zones if not _obstacle(finding.zone_visibility.get(zone, never), image)
    )


def sides_on(finding: Finding, image: SourceImage) -> tuple[str, ...]:
    """Return the finding's sides that an instruction may name on this image.

    Only the midline remains on a sagittal slice, on a fundus photograph (one eye) and where laterality is not recorded.
    """
    if image.plane == "sagittal" or image.modality == "fundus" or image.laterality == "not recorded":
        return tuple(side for side in finding.sides if side == "midline")
    return finding.sides


MIRRORED = "mirrored"
"""Laterality of an image that is known to be mirrored."""


def shown_sides(image: SourceImage) -> str:
    """Return a sentence that locates the patient's sides in the image.

    "" for an image without a left and right half (fundus, sagittal slice, lateral film) and for a user's own modality.
    """
    if (
        image.modality not in ("chest_xray", "brain_mri")
        or image.plane == "sagittal"
        or image.view == "lateral"
    ):
        return ""
    if image.laterality == "not recorded":
        return (
            "Which half of this image is the patient's left is not recorded: left and right are those of the image "
            "as shown."
        )
    if image.laterality == MIRRORED:
        return "This image is shown mirrored: the patient's left is on its left, the patient's right on its right."
    return "The patient's left is on the right of the image as shown, and the patient's right on its left."


_SIDE = re.compile(r"\b(left|right)\b", re.IGNORECASE)


def sides_to_name(instruction: str, image: SourceImage) -> str:
    """Return the sentence about sides that an editor needs with this instruction; "" if it names no side."""
    return shown_sides(image) if _SIDE.search(instruction) else ""


def sequence_of(image: SourceImage) -> str:
    """Return the sequence as visibility conditions name it: "T1" with contrast given is "T1+C"."""
    if image.sequence == "T1" and image.contrast.casefold() in ("yes", "true", "gadolinium", "post", "c"):
        return "T1+C"
    return image.sequence


def _obstacle(condition: Visibility, image: SourceImage) -> str:
    note = f" ({condition.note})" if condition.note else ""
    if _is_one_of(image.view, condition.never):
        return f"view is {image.view}{note}"
    for what, allowed, known in (
        ("view", condition.views, image.view),
        ("projection", condition.projections, image.projection),
        ("position", condition.positions, image.position),
        ("sequence", condition.sequences, sequence_of(image)),
        ("plane", condition.planes, image.plane),
    ):
        if allowed and not _is_one_of(known, allowed):
            return f"{what} is {known}, it needs {' or '.join(allowed)}{note}"
    return ""


def _is_one_of(known: str, names: tuple[str, ...]) -> bool:
    return known.casefold() in {name.casefold() for name in names}


_PREFIX = re.compile(r"^([A-Za-z0-9+, -]{1,60}?): (.+)$", re.DOTALL)
_LATE = "late"
_POSITIONS = ("erect", "supine")
_SEQUENCES = {"T1": "T1", "T1 with contrast": "T1+C", "T2": "T2", "FLAIR": "FLAIR", "PD": "PD"}


def lines_on(
    lines: Sequence[str], zones: Sequence[str], image: SourceImage, zone: str | None
) -> tuple[str, ...]:
    """Return the lines that apply to this image and zone, without their conditions.

    A line may begin with positions ("erect: "), sequences ("T2 and FLAIR: ", "T1 with contrast: "), zones of the
    finding ("upper, mid and lower: "), or "late: " for advanced forms, which no edit asks for. An unknown position
    counts as erect, as most frontal films are; of an unknown sequence nothing is claimed; without a zone every zone's
    line holds. Any other text before a colon is text.

    Args:
        lines: signs or secondary signs of a finding.
        zones: all zones of that finding.
    """
    held = []
    for line in lines:
        match = _PREFIX.match(line)
        conditions = re.split(r", | and ", match.group(1)) if match else []
        known = all(c == _LATE or c in _POSITIONS or c in _SEQUENCES or c in zones for c in conditions)
        if match is None or not known:
            held.append(line)
        elif any(_holds(condition, image, zone) for condition in conditions):
            held.append(match.group(2))
    return tuple(held)


def _holds(condition: str, image: SourceImage, zone: str | None) -> bool:
    if condition == _LATE:
        return False
    if condition in _POSITIONS:
        return condition == (image.position if image.position in _POSITIONS else "erect")
    if condition in _SEQUENCES:
        return _SEQUENCES[condition] == sequence_of(image)
    return zone is None or condition == zone
