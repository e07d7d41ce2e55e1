"""The plain-language instruction: what the offline writer composes and what editor and judge read back.

One vocabulary for both directions, so that a word that the writer uses is a word that the others know. Sides are the
patient's. Reading is tolerant (an instruction may come from a person or a hosted writer); what is not said is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from plantain.findings import describe_place, place_of
from plantain.offline.clauses import Clause, ClauseKind, plain_sides, split_clauses
from plantain.offline.vocabulary import (
    CONSPICUITY_PATTERNS,
    CONSPICUITY_SAID,
    EXTENT_PATTERNS,
    EXTENT_SAID,
    REMOVAL_SAID,
    SIDE_PATTERNS,
    SOFTNESS_PATTERNS,
    SOFTNESS_SAID,
    VARIANT_HEARD,
    VARIANT_SAID,
    VARIANTS,
    any_of,
    normalise,
)
from plantain.records import Direction, Finding


@dataclass(frozen=True, slots=True)
class Intent:
    """What an instruction asks for.

    Attributes:
        finding: name of the finding, or None when no known finding is named.
        direction: add or remove, or None when the words do not say.
        side: "left", "right", "bilateral", "midline" (the patient's), or None.
        zone: one of the finding's zones, or None.
        extent: "small", "moderate", "large", or None.
        conspicuity: "subtle", "moderate", "marked", or None.
        softness: "soft", "medium", "crisp": how the border should look, or None.
        variant: a small integer, from words that ask for another placement ("slightly more lateral"), else 0; see
            `vocabulary.VARIANT_SAID`.
    """

    finding: str | None
    direction: Direction | None
    side: str | None = None
    zone: str | None = None
    extent: str | None = None
    conspicuity: str | None = None
    softness: str | None = None
    variant: int = 0


# --- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Named:
    """A word for one or more findings, where it stands in a fragment."""

    findings: tuple[Finding, ...]
    start: int
    end: int
    word: str


def read_instruction(instruction: str, findings: Sequence[Finding]) -> Intent:
    """Reads an instruction in plain language; any text is read, none raises.

    The clause that commands the edit counts first: its first finding, its side, its place. Of overlapping words the
    longest wins; a finding that another named one implies gives way to it (opacity to pneumonia); a word that several
    findings share ("tumour") is settled by a later name or by the zone, and otherwise names none.

    Args:
        instruction: free text in English. "Left of the image" is the patient's right, except on a fundus photograph.
        findings: the findings of the image's modality, or fewer where the image's labels are known.
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
        if finding is not None and not _negated_command(guard):
            return Intent(finding.name, Direction.REMOVE)
    return _attributes(None, _bare_direction(commands), commands[0] if commands else None, clauses)


_AS_IT_IS = re.compile(
    r"\b(?:return|leave|keep|give back) (?:(?:this|the) (?:image|picture|photograph|scan|slice|radiograph)|it)"
    r" (?:exactly |just )?(?:as it is|as is|unchanged|untouched|unaltered)\b"
)


def asks_for_nothing(instruction: str) -> bool:
    """Whether the words ask that the whole image come back as it is; other words may still ask for an edit."""
    return _AS_IT_IS.search(normalise(instruction)) is not None


def _negated_command(guard: Clause) -> bool:
    return (
        re.search(r"\b(?:add|insert|introduc|remov|eras|creat|draw|chang|alter)\w*", guard.fragments[0])
        is not None
    )


def _bare_direction(commands: Sequence[Clause]) -> Direction | None:
    """The direction when no finding is named: "make it look normal" removes whatever is there."""
    for clause in commands:
        if re.search(r"\b(?:normal|healthy|disease free)\b", " ".join(clause.fragments)):
            return Direction.REMOVE
    return commands[0].direction if commands else None


def _finding_in(fragments: Sequence[str], targets: Sequence[Finding]) -> Finding | None:
    text = " , ".join(fragments)
    named = _names(text, targets)
    if not named:
        return None
    all_named = {finding.name for word in named for finding in word.findings if len(word.findings) == 1}
    implied = {
        name
        for finding in targets
        if finding.name in all_named
        for name in finding.implies
        if name != finding.name
    }
    kept = [word for word in named if not {finding.name for finding in word.findings} <= implied] or named
    candidates = list(kept[0].findings)
    for word in kept[1:]:
        if len(candidates) == 1:
            break
        narrowed = [finding for finding in candidates if finding in word.findings]
        candidates = narrowed or candidates
    if len(candidates) > 1:
        placed = [finding for finding in candidates if _zone_in([text], finding) is not None]
        candidates = placed or candidates
    return candidates[0] if len(candidates) == 1 else None


def _names(text: str, targets: Sequence[Finding]) -> list[_Named]:
    """Words for findings in the text, overlaps settled for the longest, in order."""
    spans: dict[tuple[int, int], list[Finding]] = {}
    for finding in targets:
        for match in _name_pattern(finding).finditer(text):
            spans.setdefault(match.span(), []).append(finding)
    chosen: list[_Named] = []
    for (start, end), found in sorted(spans.items(), key=lambda pair: (pair[0][0] - pair[0][1], pair[0])):
        if all(end <= other.start or start >= other.end for other in chosen):
            chosen.append(_Named(tuple(found), start, end, text[start:end]))
    return sorted(chosen, key=lambda word: word.start)


def _name_pattern(finding: Finding) -> re.Pattern[str]:
    return _words_pattern((finding.name, finding.title, *finding.synonyms))


@lru_cache(maxsize=512)
def _words_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    known = {normalise(word).strip() for word in words} - {""}
    return re.compile(rf"\b(?:{any_of(tuple(known))})(?:s|es)?(?!\w)")


_PLACED = re.compile(r"\b(?:plac|position|put|locat|center|confin|limit|side|sits?|lies?|lying)\w*")
_SIZED = re.compile(
    r"\b(?:(?:make|keep) (?:it|this|the|its)|(?:it|finding|lesion|edges?|borders?) (?:should|must) (?:be|look|appear)|"
    r"size|extent)\b"
)

_COMPANION = re.compile(
    r"(?:and )?(?:with|showing|causing|producing|including|plus|together with)\b"
    r"(?!.*\b(?:edge|border|margin|outline))"
)


def _of_its_own(fragments: Sequence[str]) -> list[str]:
    """Fragments without what only goes with the finding: "with mild midline shift" does not make a tumour mild."""
    kept: list[str] = []
    aside = False
    for fragment in fragments:
        aside = _COMPANION.match(fragment) is not None or (aside and fragment.startswith("and "))
        if not aside:
            kept.append(fragment)
    return kept


def _attributes(
    finding: Finding | None, direction: Direction | None, chosen: Clause | None, clauses: Sequence[Clause]
) -> Intent:
    """Reads place and looks from the chosen clause, then from clauses that plainly describe the same edit."""
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
        named = (normalise(finding.name), normalise(finding.title))
        own = _finding_first([_without(fragment, named) for fragment in own], finding)
    placed = [fragment for clause in others if _matches(_PLACED, clause) for fragment in clause.fragments]
    sized = [fragment for clause in others if _matches(_SIZED, clause) for fragment in clause.fragments]
    variant = next((v for v in map(_variant, (*own, *placed)) if v), 0)
    own, placed, sized = ([_without_variant(fragment) for fragment in part] for part in (own, placed, sized))
    looks = [_without_names(part, finding) for part in (*_of_its_own(own), *sized)]
    return Intent(
        finding=finding.name if finding else None,
        direction=direction,
        side=_first(SIDE_PATTERNS, (*own, *placed)),
        zone=_zone_in((*own, *placed), finding) if finding else None,
        extent=_first(EXTENT_PATTERNS, looks),
        conspicuity=_first(CONSPICUITY_PATTERNS, looks),
        softness=_first(SOFTNESS_PATTERNS, looks),
        variant=variant,
    )


def _matches(pattern: re.Pattern[str], clause: Clause) -> bool:
    return any(pattern.search(fragment) for fragment in clause.fragments)


_HERE = "\x00"
"""Stands where the finding's own name or title stood, so that none of its words is read as a place."""


def _without(fragment: str, words: tuple[str, ...]) -> str:
    return _words_pattern(words).sub(_HERE, fragment)


def _without_names(fragment: str, finding: Finding | None) -> str:
    return _name_pattern(finding).sub(_HERE, fragment) if finding else fragment


def _finding_first(fragments: list[str], finding: Finding) -> list[str]:
    """The fragment that names the finding before the others: what stands beside the name is meant for it."""
    for index, fragment in enumerate(fragments):
        if _HERE in fragment or _name_pattern(finding).search(fragment):
            return [fragment, *fragments[:index], *fragments[index + 1 :]]
    return fragments


def _variant(fragment: str) -> int:
    return next((number for number, pattern in VARIANT_HEARD if pattern.search(fragment)), 0)


def _without_variant(fragment: str) -> str:
    for _, pattern in VARIANT_HEARD:
        fragment = pattern.sub(" ", fragment)
    return fragment


def _first(patterns: dict[str, re.Pattern[str]], fragments: Iterable[str]) -> str | None:
    """The value of the word nearest to the finding's name; of overlapping words the longest wins."""
    for fragment in fragments:
        anchor = max(fragment.find(_HERE), 0)
        found = [
            (match, value) for value, pattern in patterns.items() for match in pattern.finditer(fragment)
        ]
        free = [
            (abs(match.start() - anchor), value)
            for match, value in found
            if not any(
                other is not match
                and other.start() <= match.start()
                and match.end() <= other.end()
                and other.end() - other.start() > match.end() - match.start()
                for other, _ in found
            )
        ]
        if free:
            return min(free)[1]
    return None


def _zone_in(fragments: Iterable[str], finding: Finding) -> str | None:
    return _first({zone: _words_pattern(place_of(zone).words) for zone in finding.zones}, fragments)


# --- writing --------------------------------------------------------------------------------------

_ADD = ("Add", "Please add", "Introduce", "Insert", "Simulate", "Draw", "Create", "I would like you to add")
_REMOVE = ("Remove", "Please remove", "Erase", "Take away", "Eliminate", "Get rid of", "Clear away", "Delete")
PHRASINGS = len(_ADD)
_MASS = re.compile(
    r"(?:asis|megaly|edema|oedema|consolidation|cardiomediastinum|pneumonia|thickening|degeneration|pathy|s|itis|ing)$"
)


def compose(intent: Intent, finding: Finding, *, phrasing: int = 0) -> str:
    """An instruction that `read_instruction` reads back to the same intent; `phrasing` picks among wordings.

    For a removal, extent says how much to take away rather than how large the finding is, which a writer cannot know.

    Raises:
        ValueError: the intent has no direction, is of another finding, or asks for an unknown variant.
    """
    if intent.direction is None or intent.finding != finding.name:
        raise ValueError(
            f"an instruction for {finding.name} needs a direction and that finding, not {intent}"
        )
    if not 0 <= intent.variant < VARIANTS:
        raise ValueError(f"variant {intent.variant}: choose 0 to {VARIANTS - 1}")
    adding = intent.direction is Direction.ADD
    verb = (_ADD if adding else _REMOVE)[phrasing % PHRASINGS]
    looks = [EXTENT_SAID[intent.extent]] if adding and intent.extent else []
    if intent.conspicuity:
        looks.append(CONSPICUITY_SAID[intent.conspicuity])
    noun = " ".join(part for part in (", ".join(looks), finding.title) if part)
    parts = [verb, with_article(noun, finding.title) if adding else f"the {noun}"]
    if adding and intent.softness:
        parts.append(f"with {SOFTNESS_SAID[intent.softness]}")
    parts.append(describe_place(intent.zone, intent.side))
    sentence = " ".join(part for part in parts if part)
    if not adding and intent.extent:
        sentence = f"{sentence}, {REMOVAL_SAID[intent.extent]}"
    if not adding and intent.softness:
        sentence = f"{sentence}, blended in with {SOFTNESS_SAID[intent.softness]}"
    if intent.variant:
        sentence = f"{sentence}, {VARIANT_SAID[intent.variant]}"
    return f"{sentence}."


def with_article(noun: str, title: str) -> str:
    """The noun with "a" or "an", or bare where the title is a mass noun or a plural ("atelectasis", "changes")."""
    if _MASS.search(title) and not title.endswith("ss"):
        return noun
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
