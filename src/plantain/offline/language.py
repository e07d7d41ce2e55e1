"""Compose plain-language instructions, and read them back.

Sides are the patient's. Any text is read, from users and hosted writers too; missing values are None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from plantain.findings import describe_place, place_of
from plantain.offline.clauses import Clause, ClauseKind, normalise, plain_sides, split_clauses
from plantain.records import Direction, Finding


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


def _any(*words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, words), key=lambda w: (-len(w), w)))})\b")


_EXTENTS = {
    "small": _any("small", "smaller", "tiny", "little", "minimal", "minute", "trace", "limited"),
    "moderate": _any("medium sized", "medium", "moderate", "moderate sized", "mid sized"),
    "large": _any(
        "large", "larger", "big", "bigger", "extensive", "massive", "huge", "widespread", "full extent"
    ),
}
_CONSPICUITIES = {
    "subtle": _any("subtle", "subtler", "faint", "fainter", "mild", "slight", "barely visible", "early"),
    "moderate": _any("moderately visible", "moderately conspicuous", "clearly visible"),
    "marked": _any(
        "marked", "conspicuous", "obvious", "pronounced", "prominent", "severe", "striking", "advanced"
    ),
}
_SIDES = {
    "bilateral": re.compile(
        r"\b(?:bilateral(?:ly)?|bibasal|bibasilar|both(?: (?:the|of the))? (?:sides|lungs|lobes|hemispheres|bases|"
        r"apices|hila|\w+ \w+)|both \w+)\b"
    ),
    "midline": re.compile(r"\b(?:midline|mid line|median line)\b"),
    "left": re.compile(r"\bleft(?: sided| hand)?\b"),
    "right": re.compile(r"\bright(?: sided| hand)?\b"),
}
_WORDS_OF_EXTENT = {"small": "small", "moderate": "moderate", "large": "large"}
_WORDS_OF_REMOVAL = {
    "small": "within as small an area as possible",
    "moderate": "within a medium-sized area",
    "large": "to its full extent",
}
_WORDS_OF_CONSPICUITY = {"subtle": "subtle", "moderate": "clearly visible", "marked": "marked"}

_AS_IT_IS = re.compile(
    r"\b(?:return|leave|keep|give back) (?:(?:this|the) (?:image|picture|photograph|scan|slice|radiograph)|it)"
    r" (?:exactly |just )?(?:as it is|as is|unchanged|untouched|unaltered)\b"
)
_PLACED = re.compile(r"\b(?:plac|position|put|locat|center|confin|limit|side|sits?|lies?|lying)\w*")
_SIZED = re.compile(r"\b(?:make (?:it|this|the|its)|it (?:should|must) (?:be|look|appear)|size|extent)\b")
_COMPANION = re.compile(r"(?:and )?(?:with|showing|causing|producing|including|plus|together with)\b")
_HERE = "\x00"
"""Replaces the finding's own name, so that none of its words is read as a place."""


def read_instruction(instruction: str, findings: Sequence[Finding]) -> Intent:
    """Read the requested edit from an instruction in plain language; parts that the text does not name are None.

    The clause that commands the edit counts first. Of overlapping words the longest wins; a finding that another named
    one implies gives way to it (opacity to pneumonia); a word that several findings share ("tumour") is settled by a
    later name or by the zone, and otherwise names none.

    Args:
        instruction: free text in English. "Left of the image" is the patient's right, except on a fundus photograph.
        findings: the findings of the image's modality.
    """
    targets = [finding for finding in findings if not finding.normal]
    mirrored = not any(finding.modality == "fundus" for finding in findings)
    clauses = split_clauses(plain_sides(normalise(instruction), mirrored=mirrored))
    commands = [clause for clause in clauses if clause.kind is ClauseKind.COMMAND]
    details = [clause for clause in clauses if clause.kind is ClauseKind.DETAIL]
    for chosen in (*commands, *details):
        finding = _finding_in(chosen.fragments, targets)
        if finding is not None:
            direction = chosen.direction or next((c.direction for c in commands), None)
            return _attributes(finding, direction, chosen, clauses)
    for guard in clauses:
        finding = _finding_in(guard.fragments, targets) if guard.absent and commands else None
        if finding is not None and not re.search(
            r"\b(?:add|insert|remov|eras|draw|chang)\w*", guard.fragments[0]
        ):
            return Intent(finding.name, Direction.REMOVE)
    normal = any(re.search(r"\b(?:normal|healthy)\b", " ".join(clause.fragments)) for clause in commands)
    direction = Direction.REMOVE if normal else (commands[0].direction if commands else None)
    return _attributes(None, direction, commands[0] if commands else None, clauses)


def asks_for_nothing(instruction: str) -> bool:
    """Return True if an instruction requests to return the image unchanged."""
    return _AS_IT_IS.search(normalise(instruction)) is not None


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
    looks = [_WORDS_OF_EXTENT[intent.extent]] if adding and intent.extent else []
    looks += [_WORDS_OF_CONSPICUITY[intent.conspicuity]] if intent.conspicuity else []
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
    "Remove", "Please remove", "Erase", "Eliminate", "Delete", "Digitally remove", "Please erase", "Please eliminate",
)  # fmt: skip
PHRASINGS = len(_ADD)
_NO_ARTICLE = re.compile(
    r"(?:asis|megaly|edema|consolidation|cardiomediastinum|pneumonia|thickening|degeneration|pathy|[^s]s|ing)$"
)


def with_article(noun: str, title: str) -> str:
    """Return the noun with "a" or "an", or without if the title is a mass noun or a plural."""
    if _NO_ARTICLE.search(title):
        return noun
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _finding_in(fragments: Sequence[str], targets: Sequence[Finding]) -> Finding | None:
    text = " , ".join(fragments)
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
    known = sorted({normalise(word).strip() for word in words} - {""}, key=lambda word: (-len(word), word))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, known))})(?:s|es)?(?!\w)")


def _attributes(
    finding: Finding | None, direction: Direction | None, chosen: Clause | None, clauses: Sequence[Clause]
) -> Intent:
    """Read place and looks from the chosen clause, then from clauses that describe the same edit."""
    own = list(chosen.fragments) if chosen else []
    others = [
        clause
        for clause in clauses
        if clause is not chosen
        and (
            clause.kind is ClauseKind.DETAIL
            or (clause.kind is ClauseKind.COMMAND and clause.direction is direction)
        )
    ]
    if finding is not None:
        title = _words_pattern((normalise(finding.name), normalise(finding.title)))
        own = [title.sub(_HERE, fragment) for fragment in own]
        named = [f for f in own if _HERE in f or _name_pattern(finding).search(f)]
        own = named[:1] + [fragment for fragment in own if fragment not in named[:1]]
    placed, sized = (
        [f for clause in others if any(map(pattern.search, clause.fragments)) for f in clause.fragments]
        for pattern in (_PLACED, _SIZED)
    )
    looks = [
        _name_pattern(finding).sub(_HERE, part) if finding else part for part in (*_of_its_own(own), *sized)
    ]
    return Intent(
        finding=finding.name if finding else None,
        direction=direction,
        side=_first(_SIDES, (*own, *placed)),
        zone=_zone_in((*own, *placed), finding) if finding else None,
        extent=_first(_EXTENTS, looks),
        conspicuity=_first(_CONSPICUITIES, looks),
    )


def _of_its_own(fragments: Sequence[str]) -> list[str]:
    """Fragments without companions of the finding: "with mild midline shift" does not make a tumour mild."""
    kept: list[str] = []
    aside = False
    for fragment in fragments:
        aside = _COMPANION.match(fragment) is not None or (aside and fragment.startswith("and "))
        if not aside:
            kept.append(fragment)
    return kept


def _first(patterns: dict[str, re.Pattern[str]], fragments: Iterable[str]) -> str | None:
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
