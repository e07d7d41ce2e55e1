"""Split an instruction into clauses: which one commands the edit, which ones protect the rest, which ones describe.

Only the commanding clause may name side and place: "keep the right lung unchanged" asks for nothing on the right.
This is a small splitter for English imperatives, not a parser.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum

from plantain.records import Direction

LONGEST = 20_000
"""Characters of an instruction that are read."""

_SPELLING = {
    "tumour": "tumor",
    "oedema": "edema",
    "haemorrhag": "hemorrhag",
    "centre": "center",
    "colour": "color",
    "pneumothoraces": "pneumothorax",
    "opacities": "opacity",
}
_LOBES = {
    "lul": "left upper lobe",
    "lll": "left lower lobe",
    "rul": "right upper lobe",
    "rml": "right middle lobe",
    "rll": "right lower lobe",
}


class ClauseKind(StrEnum):
    """The purpose of a clause."""

    COMMAND = "command"
    GUARD = "guard"
    DETAIL = "detail"


@dataclass(slots=True)
class Clause:
    """A clause of an instruction.

    Attributes:
        kind: purpose of the clause.
        fragments: its normalised pieces.
        direction: add or remove, if it is a command.
        absent: True for a protecting clause which states that a finding is absent ("without effusion").
    """

    kind: ClauseKind
    fragments: list[str] = field(default_factory=list)
    direction: Direction | None = None
    absent: bool = False


def normalise(text: str) -> str:
    """Normalise an instruction: lower case, American spelling, lobes written out, at most 20,000 characters."""
    folded = unicodedata.normalize("NFKC", text[:LONGEST]).casefold().replace("’", "'")
    folded = re.sub(r"[ \t\f\v]+", " ", re.sub(r"[-‐-–_/]+", " ", folded))
    for british, american in _SPELLING.items():
        folded = folded.replace(british, american)
    return re.sub(rf"\b({'|'.join(_LOBES)})\b", lambda match: _LOBES[match.group(1)], folded)


def _verbs(*bases: str) -> str:
    """A pattern for verbs in any form."""
    return "|".join(
        f"{base[:-1]}(?:e|es|ed|ing)" if base.endswith("e") else f"{base}(?:s|es|ed|ing)?" for base in bases
    )


_STRONG = {
    Direction.ADD: _verbs(
        "add", "insert", "introduce", "simulate", "superimpose", "overlay", "implant", "synthesize"
    ),
    Direction.REMOVE: "|".join(
        (
            _verbs("remove", "erase", "delete", "eliminate", "repair"),
            r"removal of|resolved?|cleared|gone|disappear(?:s|ed)?|vanish(?:es|ed)?",
            r"clear(?:s|ed|ing)?(?= (?:the|all|any|away|up|out|this|these|both|it|them)\b)",
            r"tak(?:e|es|ing|en)\b[^,;]{0,60}? (?:out|away|off)|get(?:s|ting)? rid of",
        )
    ),
}
_WEAK = _verbs(
    "create", "draw", "render", "generate", "paint", "give", "place", "produce", "include", "make", "induce", "enlarge",
    "widen", "increase", "worsen", "show", "depict", "develop", "turn", "edit", "modify",
) + "|put(?:ting)?"  # fmt: skip
_FILLER = (
    r"(?:(?:please|now|then|also|kindly|just|can|could|would|will|you|i|we|want|need|like|to|i'd|let|us|let's|try|"
    r"and|next|first|finally|so|should|instead|only)\b[ ,]*)*"
)
STRONG = {direction: re.compile(rf"\b(?:{words})\b") for direction, words in _STRONG.items()}
WEAK = re.compile(
    rf"^\W*{_FILLER}(?:{_WEAK})\b|\b(?:to|it|that) (?:shows?|includes?|has|have)\b|\bso that there (?:is|are)\b"
)
UNDOING = re.compile(
    rf"^\W*{_FILLER}(?:{_verbs('reduce', 'correct', 'fix', 'normalise', 'normalize', 'reverse', 'replace')})\b"
)
_TURN = re.compile(r"^\W*(?:but|then|instead|now|only|just|rather)\b")
_FORBID = re.compile(
    r"\b(?:do not|don't|does not|doesn't|never|avoid(?:ing)?|must not|should not|cannot|can't|may not|no need to)\b"
)
_ABSENT = re.compile(
    r"\b(?:without|with no|free of|free from|no longer|no|not|nor|none of|nothing|absence of|instead of|rather than|"
    r"except(?: for)?|excluding|unlike|apart from|other than)\b"
)
_KEEP = re.compile(
    rf"\b(?:{_verbs('keep', 'preserve', 'maintain', 'leave', 'retain', 'protect', 'spare')}|unaffected|"
    r"with (?:the|all|every|everything|each)\b[^,;.]*?\b(?:unchanged|untouched|intact|unaltered|preserved|kept))\b"
)
_STAYS = re.compile(
    r"\b(?:unchanged|untouched|intact|unaltered|preserved|as it is|as they are|as it was|as before|stays?|remains?|"
    r"must stay|the same|alone)\b"
)
_REMAINDER = re.compile(
    r"\b(?:(?:what|whatever|anything|everything|all|nothing|that|which|is|are|was|were|be|being|been) "
    r"(?:is |are |was )?left(?= (?:over|of|in|behind|after|untouched|unchanged|alone|intact|unaltered|as)\b|\W|$)"
    r"|left (?:over|untouched|unchanged|alone|intact|unaltered|behind|as (?:it is|they are|is)))"
)
_ADVERB = re.compile(
    r"\b(?:right (?=(?:at|above|below|next|beside|under|there|here|now|away|amount|size|kind|place|spot)\b)"
    r"|(?:just|about|exactly) right\b|(?:left|right) eye(?:'s)?\b)"
)
_VIEWER = re.compile(
    r"\b(?:(left|right)(?: hand)?(?: side| half| part)? of (?:the|this) (?:image|picture|photo|photograph|screen|frame)"
    r"|(?:image|viewer's|screen) (left|right))\b"
)
_BOTH = re.compile(r"\b(?:left and(?: the| on the)? right|right and(?: the| on the)? left)\b")
_OTHER = {"left": "right", "right": "left"}
_BREAK = re.compile(
    r"[,:()\[\]—]+|\b(?=(?:and(?! (?:more|further))|but|while|whereas|then|so that)\b)"
    r"|(?<=\w)\s+(?=(?:without|instead of|rather than|do not|don't|but not|while keeping|keeping|preserving|leaving)\b)"
)


def plain_sides(text: str, *, mirrored: bool) -> str:
    """Rewrite sides of the image in a text, so that "left" and "right" always mean the patient's sides.

    Args:
        text: normalised text.
        mirrored: True if the display is radiological: "the left of the image" is the patient's right.
    """

    def of_patient(match: re.Match[str]) -> str:
        side = match.group(1) or match.group(2)
        return _OTHER[side] if mirrored else side

    text = _BOTH.sub("bilateral", _VIEWER.sub(of_patient, text))
    text = _REMAINDER.sub(lambda match: match.group(0).replace("left", "remaining"), text)
    return _ADVERB.sub("", text)


def split_clauses(text: str) -> list[Clause]:
    """Split a normalised instruction into clauses, in order."""
    clauses: list[Clause] = []
    for sentence in re.split(r"[.!?;\n\r]+(?=\s|$)|\n+|;", text):
        _read_sentence(sentence, clauses)
    return clauses


def _read_sentence(sentence: str, clauses: list[Clause]) -> None:
    current: Clause | None = None
    forbidding = False
    for piece in filter(None, (fragment.strip() for fragment in _BREAK.split(sentence))):
        if forbidding and _TURN.match(piece):
            forbidding, current = False, None
        before, guard, absent = _cut_guard(piece)
        if before:
            direction = None if forbidding else command_direction(before)
            if direction is not None:
                current = Clause(ClauseKind.COMMAND, [before], direction)
                clauses.append(current)
            elif current is None:
                current = Clause(ClauseKind.DETAIL, [before])
                clauses.append(current)
            else:
                current.fragments.append(before)
        if guard:
            current = Clause(ClauseKind.GUARD, [guard], absent=absent)
            clauses.append(current)
            forbidding = forbidding or _FORBID.search(guard) is not None


def _cut_guard(piece: str) -> tuple[str, str, bool]:
    """Split a fragment into (text before a guard, the guard, True if the guard negates a finding)."""
    starts = [match.start() for match in (p.search(piece) for p in (_FORBID, _KEEP)) if match]
    absence = _ABSENT.search(piece)
    if absence and (not starts or absence.start() < min(starts)):
        return piece[: absence.start()].strip(), piece[absence.start() :], True
    if starts:
        return piece[: min(starts)].strip(), piece[min(starts) :], False
    if _STAYS.search(piece) and command_direction(piece) is None:
        return "", piece, False
    return piece, "", False


def command_direction(piece: str) -> Direction | None:
    """Return whether a fragment commands to add or remove, None for neither. A plain "show" or "make" means add."""
    found = [(m.start(), d) for d, pattern in STRONG.items() if (m := pattern.search(piece)) is not None]
    if found:
        return min(found)[1]
    if UNDOING.match(piece):
        return Direction.REMOVE
    return Direction.ADD if WEAK.search(piece) else None
