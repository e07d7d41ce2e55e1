"""Compose plain-language instructions, and read them back.

Sides are the patient's. Any text is read, from users and hosted writers too; missing values are None. The reader knows
English imperatives and is not a parser: the first part of the text that commands an edit and names a finding counts,
and parts that forbid or protect something are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from plantain.findings import describe_place, place_of
from plantain.records import Direction, Finding

LONGEST = 20_000
"""Characters of an instruction that are read."""


@dataclass(frozen=True, slots=True)
class Intent:
    """The edit that an instruction requests.

    Attributes:
        finding: name of the finding, or None if no known finding is named.
        direction: add or remove, or None if the words state neither.
        side: "left", "right", "bilateral", "midline" (the patient's), or None.
        zone: one of the finding's zones, or None.
        extent: "small", "moderate", "large", or None.
        conspicuity: "subtle", "moderate", "marked", or None.
    """

    finding: str | None
    direction: Direction | None
    side: str | None = None
    zone: str | None = None
    extent: str | None = None
    conspicuity: str | None = None


def _any(words: str) -> re.Pattern[str]:
    known = sorted(words.split(", "), key=lambda word: (-len(word), word))
    return re.compile(rf"\b(?:{'|'.join(known)})\b")


_EXTENTS = {
    "small": _any("small, smaller, tiny, little, minimal, minute, trace, limited"),
    "moderate": _any("medium sized, medium, moderate, moderate sized, mid sized"),
    "large": _any("large, larger, big, bigger, extensive, massive, huge, widespread, full extent"),
}
_CONSPICUITIES = {
    "subtle": _any("subtle, subtler, faint, fainter, mild, slight, barely visible, early"),
    "moderate": _any("moderately visible, moderately conspicuous, clearly visible"),
    "marked": _any("marked, conspicuous, obvious, pronounced, prominent, severe, striking, advanced"),
}
_SIDES = {
    "bilateral": re.compile(r"\b(?:bilateral(?:ly)?|bibasal|bibasilar|both(?: (?:the|of the))? \w+)\b"),
    "midline": re.compile(r"\b(?:midline|mid line|median line)\b"),
    "left": re.compile(r"\bleft\b(?! (?:over|of|in|behind|after|eye)\b)"),
    "right": re.compile(r"\bright\b(?! (?:away|at|above|below|next|now|here|there|eye)\b)"),
}
_SPELLING = {
    "tumour": "tumor",
    "oedema": "edema",
    "haemorrhag": "hemorrhag",
    "centre": "center",
    "colour": "color",
    "pneumothoraces": "pneumothorax",
    "opacities": "opacity",
}
_VIEWER = re.compile(
    r"\b(?:(left|right)(?: hand)?(?: side| half| part)? of (?:the|this) (?:image|picture|photo|photograph|screen|frame)"
    r"|(?:image|viewer's|screen) (left|right))\b"
)
_BOTH = re.compile(r"\b(?:left and(?: the| on the)? right|right and(?: the| on the)? left)\b")

_ADDED = r"(?:add|insert|introduc|simulat|superimpos|overlay|implant|synthesi[sz])(?:e|es|ed|s|ing)?"
_REMOVED = (
    r"(?:remov|eras|delet|eliminat|repair)(?:e|es|ed|s|ing)?|removal of|resolved?|cleared|gone|disappear(?:s|ed)?|"
    r"clear(?:s|ing)?(?= (?:the|all|any|away|up|out|this|both)\b)|tak(?:e|ing) (?:out|away|off)|get(?:ting)? rid of"
)
_SHOWN = (
    r"(?:creat|draw|render|generat|paint|giv|plac|put|produc|includ|mak|induc|enlarg|widen|increas|worsen|show|depict|"
    r"develop|turn|edit|modify)(?:e|es|ed|s|ing)?"
)
_UNDONE = r"(?:reduc|correct|fix|normali[sz]|revers|replac)(?:e|es|ed|s|ing)?"
_START = (
    r"^\W*(?:(?:please|now|then|also|could|can|would|you|i|we|want|to|and|next|first|only|just|but)\b[ ,]*)*"
)
_STRONG = {
    Direction.ADD: re.compile(rf"\b(?:{_ADDED})\b"),
    Direction.REMOVE: re.compile(rf"\b(?:{_REMOVED})\b"),
}
_WEAK = {
    Direction.REMOVE: re.compile(rf"{_START}(?:{_UNDONE})\b"),
    Direction.ADD: re.compile(rf"{_START}(?:{_SHOWN})\b|\b(?:to|it|that) (?:shows?|includes?|has|have)\b"),
}
_GUARD = re.compile(
    r"\b(?:without|with no|free of|no longer|no|not|nor|do not|don't|never|avoid\w*|cannot|can't|none|nothing|"
    r"absence of|instead of|rather than|except\w*|unlike|apart from|other than|keep\w*|preserv\w*|maintain\w*|leav\w*|"
    r"retain\w*|protect\w*|spar(?:e|ing))\b"
)
"""Start of a part that forbids or protects something; it ends with its sentence, or where a command follows."""
_RESUMED = re.compile(
    rf"(?:,|\b(?:and|but|then))\s+(?=(?:(?:then|please|also|only)\s+)*(?:{_ADDED}|{_REMOVED}|{_SHOWN})\b)"
)
_UNCHANGED = re.compile(r"\b(?:unchanged|untouched|intact|unaltered|stays?|remains?|the same|as before)\b")
_PLACED = re.compile(r"\b(?:plac|position|put|locat|center|confin|limit|side|sits?|lies?|lying)\w*")
_COMPANION = re.compile(
    r"(?<!consistent )(?<!compatible )\b(?:and )?(?:with|showing|causing|producing|including|plus)\b"
)
"""Start of what accompanies the finding: "with mild midline shift" does not make a tumour mild."""
_HERE = "\x00"
"""Replaces the finding's own name, so that none of its words is read as a place."""


def read_instruction(instruction: str, findings: Sequence[Finding]) -> Intent:
    """Read the requested edit from an instruction in plain language; values that the text does not name are None.

    Of overlapping words the longest wins; a finding that another named one implies gives way to it (opacity to
    pneumonia); a word that several findings share ("tumour") is settled by a later name or by the zone, and otherwise
    names none.

    Args:
        instruction: free text in English. "Left of the image" is the patient's right, except on a fundus photograph.
        findings: the findings of the image's modality.
    """
    targets = [finding for finding in findings if not finding.normal]
    mirrored = not any(finding.modality == "fundus" for finding in findings)
    text = _plain_sides(_normalise(instruction), mirrored=mirrored)
    parts = [part for sentence in re.split(r"[.!?;\n\r]+(?=\s|$)", text) for part in _unguarded(sentence)]
    commanded = {part: direction for part in parts if (direction := _direction(part)) is not None}
    direction = next(iter(commanded.values()), None)
    for part in (*commanded, *(part for part in parts if part not in commanded)):
        finding = _finding_in(part, targets)
        if finding is not None:
            others = [one for one in parts if one != part and commanded.get(one, direction) is direction]
            return _attributes(finding, commanded.get(part, direction), part, others)
    if any(re.search(r"\b(?:normal|healthy)\b", part) for part in commanded):
        direction = Direction.REMOVE
    return Intent(None, direction, _first(_SIDES, commanded))


def _normalise(text: str) -> str:
    """Return a text in lower case and American spelling, hyphens as blanks."""
    folded = unicodedata.normalize("NFKC", text[:LONGEST]).casefold().replace("’", "'")
    folded = re.sub(r"[ \t\f\v]+", " ", re.sub(r"[-‐-–_/]+", " ", folded))
    for british, american in _SPELLING.items():
        folded = folded.replace(british, american)
    return folded


def _plain_sides(text: str, *, mirrored: bool) -> str:
    """Rewrite sides of the image as the patient's, which are the others where the display is `mirrored`."""
    other = {"left": "right", "right": "left"}

    def of_patient(match: re.Match[str]) -> str:
        side = match[1] or match[2]
        return other[side] if mirrored else side

    return _BOTH.sub("bilateral", _VIEWER.sub(of_patient, text))


def _unguarded(sentence: str) -> Iterator[str]:
    """Yield the parts of a sentence that neither forbid nor protect anything."""
    while sentence:
        guard = _GUARD.search(sentence)
        if part := sentence[: guard.start() if guard else None].strip():
            yield part
        resumed = _RESUMED.search(sentence, guard.end()) if guard else None
        sentence = sentence[resumed.end() :] if resumed else ""


def _direction(part: str) -> Direction | None:
    """Return the direction that a part commands, or None. A plain "show" or "make" means add."""
    found = [(match.start(), way) for way, words in _STRONG.items() if (match := words.search(part))]
    if found:
        return min(found)[1]
    return next((way for way, words in _WEAK.items() if words.search(part)), None)


def compose(intent: Intent, finding: Finding, *, phrasing: int = 0) -> str:
    """Write an intent as a sentence, which `read_instruction` reads back to the same intent.

    Of a removal, the extent is the area to change: the writer cannot know the size of the finding. `phrasing`, any
    whole number, chooses one of the wordings.

    Raises:
        ValueError: the intent has no direction, or is of another finding.
    """
    if intent.direction is None or intent.finding != finding.name:
        raise ValueError(
            f"an instruction for {finding.name} needs a direction and that finding, not {intent}"
        )
    adding = intent.direction is Direction.ADD
    verb = (_ADD if adding else _REMOVE)[phrasing % PHRASINGS]
    looks = [intent.extent] if adding and intent.extent else []
    if intent.conspicuity:
        looks.append("clearly visible" if intent.conspicuity == "moderate" else intent.conspicuity)
    noun = " ".join(part for part in (", ".join(looks), finding.title) if part)
    parts = [verb, with_article(noun, finding.title) if adding else f"the {noun}"]
    sentence = " ".join(part for part in (*parts, describe_place(intent.zone, intent.side)) if part)
    if not adding and intent.extent:
        sentence = f"{sentence}, {_WORDS_OF_REMOVAL[intent.extent]}"
    return f"{sentence}."


_ADD = (
    "Add",
    "Please add",
    "Insert",
    "Introduce",
    "Simulate",
    "Superimpose",
    "Please insert",
    "Please simulate",
)
_REMOVE = (
    *("Remove", "Please remove", "Erase", "Eliminate", "Delete"),
    *("Digitally remove", "Please erase", "Please eliminate"),
)
_WORDS_OF_REMOVAL = {
    "small": "within as small an area as possible",
    "moderate": "within a medium-sized area",
    "large": "to its full extent",
}
PHRASINGS = len(_ADD)
_NO_ARTICLE = re.compile(
    r"(?:asis|megaly|edema|consolidation|cardiomediastinum|pneumonia|thickening|degeneration|pathy|[^s]s|ing)$"
)


def with_article(noun: str, title: str) -> str:
    """Return the noun with "a" or "an", or without if the title is a mass noun or a plural."""
    if _NO_ARTICLE.search(title):
        return noun
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _finding_in(text: str, targets: Sequence[Finding]) -> Finding | None:
    named = _names(text, targets)
    if not named:
        return None
    alone = {found[0].name for found in named if len(found) == 1}
    implied = {name for finding in targets if finding.name in alone for name in finding.implies}
    kept = [found for found in named if not {finding.name for finding in found} <= implied] or named
    candidates = kept[0]
    for found in kept[1:]:
        if len(candidates) > 1:
            candidates = [finding for finding in candidates if finding in found] or candidates
    if len(candidates) > 1:
        candidates = [
            finding for finding in candidates if _zone_in([text], finding) is not None
        ] or candidates
    return candidates[0] if len(candidates) == 1 else None


def _names(text: str, targets: Sequence[Finding]) -> list[list[Finding]]:
    """The findings that each word of the text names, overlaps settled for the longest, in order."""
    spans: dict[tuple[int, int], list[Finding]] = {}
    for finding in targets:
        for match in _name_pattern(finding).finditer(text):
            spans.setdefault(match.span(), []).append(finding)
    chosen: dict[tuple[int, int], list[Finding]] = {}
    for (start, end), found in sorted(spans.items(), key=lambda pair: (pair[0][0] - pair[0][1], pair[0])):
        if all(end <= other[0] or start >= other[1] for other in chosen):
            chosen[start, end] = found
    return [chosen[span] for span in sorted(chosen)]


def _name_pattern(finding: Finding) -> re.Pattern[str]:
    return _words_pattern((finding.name, finding.title, *finding.synonyms))


@lru_cache(maxsize=512)
def _words_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    known = sorted({_normalise(word).strip() for word in words} - {""}, key=lambda word: (-len(word), word))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, known))})(?:s|es)?(?!\w)")


def _attributes(finding: Finding, direction: Direction | None, part: str, others: Sequence[str]) -> Intent:
    """Read place and looks from the part that names the finding, then the place from parts that describe it."""
    own = _words_pattern((finding.name, finding.title)).sub(_HERE, part)
    named = max(own.find(_HERE), 0)
    if _HERE not in own and (match := _name_pattern(finding).search(own)):
        named = match.end()
    companion = _COMPANION.search(own, named)
    end = companion.start() if companion else len(own)
    comma = re.compile("[,:(]").search(own, named, end)
    near = comma.start() if comma else end
    looks = [_name_pattern(finding).sub(_HERE, one) for one in (own[:near], own[near:end])]
    placed = [one for one in others if _PLACED.search(one) and not _UNCHANGED.search(one)]
    place = (own[:near], own[near:end], own[end:], *placed)
    return Intent(
        finding=finding.name,
        direction=direction,
        side=_first(_SIDES, place),
        zone=_zone_in(place, finding),
        extent=_first(_EXTENTS, looks),
        conspicuity=_first(_CONSPICUITIES, looks),
    )


def _first(patterns: Mapping[str, re.Pattern[str]], fragments: Iterable[str]) -> str | None:
    """The value of the word nearest to the finding's name; of overlapping words the longest wins."""
    for fragment in fragments:
        anchor = max(fragment.find(_HERE), 0)
        found = [
            (match.span(), value)
            for value, pattern in patterns.items()
            for match in pattern.finditer(fragment)
        ]
        free = [
            (abs(start - anchor), value)
            for (start, end), value in found
            if not any(low <= start and end <= high and high - low > end - start for (low, high), _ in found)
        ]
        if free:
            return min(free)[1]
    return None


def _zone_in(fragments: Iterable[str], finding: Finding) -> str | None:
    return _first({zone: _words_pattern(place_of(zone).words) for zone in finding.zones}, fragments)
