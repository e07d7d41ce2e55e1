"""Splits an instruction into clauses and says of each whether it commands an edit, guards against one, or describes.

Only the clause that commands the edit may name its side and place: "keep the right lung unchanged" and "what is left"
must not be taken for a request. This is a small splitter for English imperatives, not a parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from plantain.records import Direction


class ClauseKind(StrEnum):
    """What a clause is for."""

    COMMAND = "command"
    GUARD = "guard"
    DETAIL = "detail"


@dataclass(slots=True)
class Clause:
    """A run of fragments that belong together.

    Attributes:
        kind: what it is for.
        fragments: its pieces, normalised text.
        direction: for a command, add or remove.
        absent: for a guard, True when it says that something is not there ("without effusion").
    """

    kind: ClauseKind
    fragments: list[str] = field(default_factory=list)
    direction: Direction | None = None
    absent: bool = False


def _verbs(*bases: str) -> str:
    """A pattern for English verbs in any form; a second word follows the inflected first ("cut out")."""
    forms = []
    for base in bases:
        first, _, rest = base.partition(" ")
        stem = f"{first[:-1]}(?:e|es|ed|ing)" if first.endswith("e") else f"{first}(?:s|es|ed|ing)?"
        forms.append(f"{stem} {rest}" if rest else stem)
    return "|".join(forms)


def _phrases(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b")


_STRONG = {
    Direction.ADD: _verbs(
        "add", "insert", "introduce", "simulate", "superimpose", "overlay", "implant", "synthesize", "synthesise"
    ),
    Direction.REMOVE: "|".join(
        (
            _verbs("remove", "erase", "delete", "eliminate", "repair", "edit out"),
            r"removal of|resolved?|cleared|gone|disappear(?:s|ed)?|vanish(?:es|ed)?|stripp?(?:s|ed|ing)?",
            r"clear(?:s|ed|ing)?(?= (?:the|all|any|away|up|out|this|these|both|of|it|them)\b)",
            r"(?:take|takes|taking|taken)\b[^,;]{0,60}? (?:out|away|off)",
            r"get(?:s|ting)? rid of|cut(?:ting)? out|wip(?:e|es|ed|ing)(?: (?:out|away|off))?",
        )
    ),
}  # fmt: skip
_WEAK = "|".join(
    (
        _verbs(
            "create", "draw", "render", "generate", "paint", "give", "place", "produce", "include", "make"
        ),
        _verbs("induce", "enlarge", "widen", "increase", "worsen", "collapse"),
        "putt?(?:ing)?|show|depict|develop|apply|turn|restore|return|convert",
    )
)
_FILLER = (
    r"(?:(?:please|now|then|also|kindly|just|can|could|would|will|you|i|we|want|need|like|to|i'd|let|us|let's|try|"
    r"and|next|first|finally|so|should|instead|only)\b[ ,]*)*"
)
STRONG = {direction: re.compile(rf"\b(?:{words})\b") for direction, words in _STRONG.items()}
WEAK = re.compile(
    rf"^\W*{_FILLER}(?:{_WEAK})\b"
    r"|\b(?:to|it|that) (?:shows?|depicts?|displays?|includes?|has|have|develops?|presents?)\b"
    r"|\bso that there (?:is|are)\b"
)
UNDOING = re.compile(
    rf"^\W*{_FILLER}(?:{_verbs('reduce', 'correct', 'fix', 'normalise', 'normalize', 'reverse', 'hide', 'suppress')}"
    rf"|{_verbs('replace', 'inpaint', 'treat', 'heal', 'cure', 'mend', 'undo')})\b"
)
"""Verbs that command a removal where they lead a clause; elsewhere they are ordinary words ("the correct place")."""
_TURN = re.compile(r"^\W*(?:but|then|instead|now|only|just|rather)\b")

_FORBID = _phrases(
    "do not", "don't", "does not", "doesn't", "never", "avoid(?:ing)?", "must not", "mustn't", "should not",
    "shouldn't", "cannot", "can't", "may not", "no need to", "refrain from",
)  # fmt: skip
_ABSENT = _phrases(
    "without", "with no", "free of", "free from", "devoid of", "no longer", "no", "not", "nor", "none of", "nothing",
    "absence of", "instead of", "rather than", "except for", "except", "excluding", "unlike", "apart from",
    "other than",
)  # fmt: skip
_KEEP = _phrases(
    _verbs("keep", "preserve", "maintain", "leave", "retain", "protect", "respect", "spare"), "unaffected",
    r"with (?:the|all|every|everything|each)\b[^,;.]*?\b(?:unchanged|untouched|intact|unaltered|preserved|kept|clear|"
    r"as (?:it is|they are))",
)  # fmt: skip
_STAYS = _phrases(
    "unchanged", "untouched", "intact", "unaltered", "unedited", "preserved", "as it is", "as they are", "as it was",
    "as before", "stays?", "remains?", "must stay", "the same", "alone",
)  # fmt: skip
_SETTING = re.compile(
    r"\bkeep(?:ing)? (?:it|this|the (?:finding|change|edit|lesion|edges?|borders?|extent|size))(?: \w+)? "
    r"(?!(?:is|are|was)\b)"
)

_REMAINDER = re.compile(
    r"\b(?:(?:what|whatever|anything|everything|all|nothing|that|which|is|are|was|were|be|being|been) "
    r"(?:is |are |was )?left"
    r"(?= (?:over|of|in|behind|after|untouched|unchanged|alone|intact|unaltered|as)\b|\W|$)"
    r"|left (?:over|untouched|unchanged|alone|intact|unaltered|behind|as (?:it is|they are|is))|leftover)"
)
_ADVERB = re.compile(
    r"\b(?:right (?=(?:at|above|below|next|beside|under|underneath|there|here|now|away|amount|angles?|size|kind|"
    r"place|spot|way)\b)|(?:all|just|about|exactly) right\b|(?:left|right) eye(?:'s)?\b)"
)
_VIEWER = re.compile(
    r"\b(?:(left|right)(?: hand)?(?: side| half| part)? of (?:the|this) (?:image|picture|photo|photograph|screen|"
    r"frame)|(?:image|viewer's|screen) (left|right))\b"
)
_BOTH = re.compile(r"\b(?:left and(?: the| on the)? right|right and(?: the| on the)? left)\b")
_OTHER = {"left": "right", "right": "left"}


def plain_sides(text: str, *, mirrored: bool) -> str:
    """Text whose "left" and "right" are only ever the patient's sides.

    Args:
        text: normalised text.
        mirrored: the display is radiological, so "the left of the image" is the patient's right.
    """

    def of_patient(match: re.Match[str]) -> str:
        side = match.group(1) or match.group(2)
        return _OTHER[side] if mirrored else side

    text = _VIEWER.sub(of_patient, text)
    text = _BOTH.sub("bilateral", text)
    text = _REMAINDER.sub(lambda match: match.group(0).replace("left", "remaining"), text)
    return _ADVERB.sub("", text)


def split_clauses(text: str) -> list[Clause]:
    """The clauses of a normalised instruction, in order."""
    clauses: list[Clause] = []
    for sentence in re.split(r"[.!?;\n\r]+(?=\s|$)|\n+|;", text):
        _read_sentence(sentence, clauses)
    return clauses


_BREAK = re.compile(
    r"[,:()\[\]—]+|\b(?=(?:and(?! (?:more|further))|but|while|whereas|then|so that)\b)"
    r"|(?<=\w)\s+(?=(?:without|instead of|rather than|do not|don't|but not|while keeping|keeping|preserving|leaving)\b)"
)


def _read_sentence(sentence: str, clauses: list[Clause]) -> None:
    current: Clause | None = None
    forbidding = False
    for fragment in _BREAK.split(sentence):
        piece = fragment.strip()
        if not piece:
            continue
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
    """A fragment as (what stands before a guard, the guard, whether the guard says that something is absent)."""
    if _SETTING.search(piece) and not _STAYS.search(piece):
        return piece, "", False
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
    """The direction that a fragment commands; None when it holds no such verb. A plain "show" or "make" means add."""
    found = [(m.start(), d) for d, pattern in STRONG.items() if (m := pattern.search(piece)) is not None]
    if found:
        return min(found)[1]
    if UNDOING.match(piece):
        return Direction.REMOVE
    return Direction.ADD if WEAK.search(piece) else None
