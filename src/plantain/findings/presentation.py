"""Which of a finding's signs hold on a given image: a line may begin with the conditions under which it is true."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plantain.findings.visibility import sequence_of
from plantain.records import SourceImage

_PREFIX = re.compile(r"^([A-Za-z0-9+, -]{1,60}?): (.+)$", re.DOTALL)
_LATE = "late"
_POSITIONS = ("erect", "supine")
_SEQUENCES = {"T1": "T1", "T1 with contrast": "T1+C", "T2": "T2", "FLAIR": "FLAIR", "PD": "PD"}


def lines_on(
    lines: Sequence[str], zones: Sequence[str], image: SourceImage, zone: str | None, *, late: bool = False
) -> tuple[str, ...]:
    """Return the lines that apply to this image and zone, without their conditions.

    A line may begin with positions ("erect: "), sequences ("T2 and FLAIR: ", "T1 with contrast: "), zones of the
    finding ("upper, mid and lower: ") or "late: ". An unknown position counts as erect, as most frontal films are;
    of an unknown sequence nothing is claimed; without a zone every zone's line holds. Any other text before a colon
    is text.

    Args:
        lines: signs or secondary signs of a finding.
        zones: all zones of that finding.
        late: whether lines that hold for large or advanced forms only are wanted.
    """
    held = []
    for line in lines:
        match = _PREFIX.match(line)
        conditions = re.split(r", | and ", match.group(1)) if match else []
        known = all(c == _LATE or c in _POSITIONS or c in _SEQUENCES or c in zones for c in conditions)
        if match is None or not known:
            held.append(line)
        elif any(_holds(condition, image, zone, late) for condition in conditions):
            held.append(match.group(2))
    return tuple(held)


def _holds(condition: str, image: SourceImage, zone: str | None, late: bool) -> bool:
    if condition == _LATE:
        return late
    if condition in _POSITIONS:
        return condition == (image.position if image.position in _POSITIONS else "erect")
    if condition in _SEQUENCES:
        return _SEQUENCES[condition] == sequence_of(image)
    return zone is None or condition == zone
