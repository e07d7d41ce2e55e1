"""Reading the 0 to 10 scores out of a judge's reply, however it is laid out, and never guessing one.

Judges answer in JSON, lists, tables and prose, with bold labels, brackets and other scales. A score counts only where a
dimension's label begins a statement, is directly followed by one number, and nothing near it says otherwise: a number
that names its scale ("8/10") stands alone on its line, a bare one has no other number beside it, and no other scale is
spoken of anywhere. Everything else is unscored, with the reason. Two different numbers for one dimension are no number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from plantain.models.hosted.scores.beside import EDIT, doubt, heading_of, leads_to_a_score, strange_tag
from plantain.models.hosted.scores.in_json import (
    JsonPairs,
    json_texts,
    json_values,
    outside_json,
    scale_of_json,
    scores_in,
)
from plantain.models.hosted.scores.words import DIMENSIONS, LABEL, NUMBER, WORD, WORDS, number_in, plain
from plantain.records import Score, unscored

_VALUE = re.compile(
    rf"(?P<open>[\[({{]\s*|<(?=[^<>\n]*>)\s*)?"
    rf"(?P<sign>[-+~≈<>≥≤±]=?|(?i:about|around|approximately|roughly)\s)?\s*(?P<number>{NUMBER})"
    rf"(?P<close>\s*[\])}}>])?(?:\s*(?:/|(?i:out\s+of))\s*[\[(]?\s*(?P<of>\d+(?:\.\d+)?|{WORD})(?![\w]|\.\d))?(?P<close2>\s*[\])}}>])?"
)
_ANOTHER = re.compile(rf"\s*(?:%|\+|/|~|±|\^|-+>?|→|(?i:to|or|percent)\b)\s*(?:{NUMBER})?")
_ON_A_SCALE = re.compile(rf"(?:{NUMBER})\s*[\])}}]?\s*(?:/|%|(?i:out\s+of|percent)\b)")
_AFTER = re.compile(r"\s*(?:$|[.,;:!|)\]}>(]|-\s|(?i:because|since|as)\b|(?i:points?)\s*(?:$|[.,;:!)]))")
"""What may follow a score: the end, a mark, or a word that leads to its reason."""

_NUMBER_FIRST = re.compile(
    rf"""(?ix)(?:(?:{NUMBER})\s*[\])}}]?\s*(?:/|out\s+of)\s*[\[(]?\s*\d+ | \|\s*(?:{NUMBER})\s*\|
    | \b(?:score|rating|value)\W{{1,4}}(?:{NUMBER}))
    [^\w\n]*\n?[^\w\n]*(?:(?:dimension|metric|criterion|aspect|category|name|points?)\W+)?\Z"""
)
"""A reply whose numbers stand before their labels, so that what follows a label belongs to the next one."""
_OTHER_SCALE = re.compile(
    rf"""(?ix)
    (?: \b(?:out\s+of|max(?:imum)?(?:[ -]?(?:score|points|value|of))?|denominator|upper\s+(?:end|bound))\W{{0,3}}
      | (?<![\d\])}}\w])[ ]?/\s?
      | \b(?:scale|scores?|scored|rated?|ratings?|range[sd]?)\b[^\n\d]{{0,30}}?(?:\b(?:{"|".join(WORDS[:2])})\b|\b[01])
        (?:\.0)?(?:\s*\([^()\n]*\))?\s*(?:-|to|and|through|\.\.+|,)\s*
      | [\[(]\s*[01](?:\.0)?\s*(?:-|to|,|\.\.+)\s*
      | \b(?:from|between)\s+(?:[01]|zero|one)(?:\s*\([^()\n]*\))?\s*(?:-|to|and|through)\s*
      | \b(?:best|perfect|excellent|highest|top)\s*(?:=|:|is|being)\s*
      | \bscale\s+(?:is|of)\W{{0,3}}(?!(?:0|1|zero|one)\b)
    )(?P<most>\d+(?:\.\d+)?|{WORD})(?![\w/])
    | (?P<best>\d+)\s*(?:=|:|is|means|being|\()\s*(?:the\s+)?(?:best|perfect|flawless|ideal|excellent|highest|max|top)
    | \b[01]\s*-\s*(?P<span>\d+)\s+scale\b | \b(?:on|with)\s+(?P<levels>\w+)\s+levels\b
    | \b(?P<points>\w+)[ -]?(?:point|star|grade)[ -](?:scale|rating|system|likert)
    | \b(?P<kind>likert|stars?|percent(?:ages?|iles?)?|z-scores?)\b | (?P<sign>\(\s*%\s*\))"""
)
_SCALE = r"(?i:(?:scale|scored?|rated?|out)?\s*(?:of|from|:|on)?\s*(?:0\s*(?:-|to|\.\.)\s*10|/?\s*10))\s*"
_LEAD = re.compile(
    rf"[ \t]*(?i:scores?|rating)?[ \t]*(?:[(\[]\s*{_SCALE}[)\]]|{_SCALE}(?=[:=|]))?[ \t]*(?i:scores?|rating)?"
    r"(?P<mark>\s*(?::|=|\||->|→|(?i:\bis\b)|(?<=\s)-\s)(?:\s*[:|=])*\s*(?:(?<=\n)\s*[-•]\s+)?)?"
)
_SCORE_LINE = re.compile(
    r"(?im:(?:^|(?<=[|.!?]))\W*(?:(?:my|the|final)\s)*(?:score|rating|value))\s*(?:[(\[]\s*0\s*-\s*10\s*[)\]])?\s*[:=]\s*"
)
_LISTED = re.compile(r"(?:^|(?<=\n))[^\w\n]*\d{1,2}[.)]?[^\w\n]*\Z")
_NEXT_IN_LIST = re.compile(r"\n[^\w\n]*\d+[.)][^\w\n]*\Z")
"""The number of a list's next entry, before that entry's label; `_LISTED` of the entry whose label follows."""
_OFF_TEN = re.compile(r"on another scale|outside 0 to 10|.*(?:%|percent)")
_JOINED = re.compile(r"(?i)[\s,;&/+=]*(?:and|with)?\s*")
_THOUGHT = re.compile(r"<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?i)\b(?:i(?:'m| am) sorry|i (?:can(?:not|'t)|won't|am unable|'m unable|am not able)|i'm not able|unable to "
    r"(?:assist|help|evaluate|provide|comply|view|process)|as an ai|against (?:my|our) (?:policy|guidelines))"
)


def parse_scores(reply: str, *, cut_off: bool = False) -> dict[str, Score]:
    """The score of each dimension, or why it has none.

    Args:
        reply: what the judge answered, as it came.
        cut_off: the provider said that the reply reached its length limit, so a number at its very end may
            lack digits.

    Returns:
        One score in [0, 10] or an unscored one for each of `DIMENSIONS`.

    Example:
        >>> scores = parse_scores("**Editing Accuracy:** [8]/10; Visual Quality: 85/100")
        >>> scores["editing_accuracy"].value, scores["visual_quality"].reason
        (8.0, 'on another scale: 85/100')
    """
    reply = _THOUGHT.sub(" ", reply)
    if not reply.strip():
        return dict.fromkeys(DIMENSIONS, unscored("empty reply"))
    found: dict[str, list[_Stated]] = {name: [] for name in DIMENSIONS}
    text, scale = plain(outside_json(reply)), other_scale(reply)
    beside = [*json_texts(reply)]
    for name, value, against in json_values(reply):
        found[name].append(_unread(against) if against else _from_json(value, scale, beside))
    in_json = any(found.values())
    for name, stated in _text_values(text, cut_off or text.count("{") > text.count("}"), scale, beside):
        if stated.score.scored or not in_json:  # words beside JSON may contradict it, not spoil it
            found[name].append(stated)
    nothing = "refusal" if _REFUSAL.search(text) else ""
    settled = {name: _settle(all_, nothing or _missing(text, name)) for name, all_ in found.items()}
    return _believed([one for all_ in found.values() for one in all_], settled, strange_tag(reply), beside)


def other_scale(reply: str) -> str:
    """What a reply says of a scale that does not end at 10, in its words or its keys; "" where it says nothing."""
    for match in _OTHER_SCALE.finditer(plain(reply)):
        most = match["most"] or match["points"] or match["best"] or match["span"] or match["levels"]
        if match["kind"] or match["sign"] or (most and number_in(most) not in (None, 10.0)):
            return match[0].strip()
    return scale_of_json(reply)


def is_refusal(reply: str) -> bool:
    """Whether the judge declined: it says so, and scored nothing."""
    scores = parse_scores(reply)
    return all(score.reason == "refusal" for score in scores.values())


@dataclass(frozen=True, slots=True)
class _Stated:
    """One statement of a dimension's score.

    Attributes:
        score: the number, or why there is none.
        on_ten: the number names its scale, "8/10".
    """

    score: Score
    on_ten: bool = False


def _unread(reason: str) -> _Stated:
    return _Stated(unscored(reason))


def _settle(stated: list[_Stated], nothing: str) -> _Stated:
    """One score from all statements about a dimension; contradictions are no score."""
    scored = [one for one in stated if one.score.scored]
    values = sorted({one.score.value for one in scored if one.score.value is not None})
    if len(values) > 1:
        return _unread("stated twice: " + " and ".join(f"{value:g}" for value in values))
    if problems := [one for one in stated if not one.score.scored]:
        return problems[0]
    return _Stated(Score(values[0]), all(one.on_ten for one in scored)) if values else _unread(nothing)


def _believed(
    stated: list[_Stated], settled: dict[str, _Stated], tag: str, beside: list[str]
) -> dict[str, Score]:
    """The settled scores, unless something in the reply speaks against them."""
    against = tag or doubt("\n".join(beside), all(one.on_ten for one in stated if one.score.scored))
    elsewhere = next((one.score.reason for one in stated if _OFF_TEN.match(one.score.reason)), "")
    believed: dict[str, Score] = {}
    for name, one in settled.items():
        believed[name] = one.score
        if one.score.scored and against:
            believed[name] = unscored(f"said beside the scores: {against[:60]}")
        elif one.score.scored and elsewhere and not one.on_ten:
            believed[name] = unscored(f"another score is {elsewhere}")
    return believed


def _missing(text: str, name: str) -> str:
    labelled = any(match.lastgroup == name for match in LABEL.finditer(text))
    return "no score beside the label" if labelled else "not mentioned"


def _from_json(value: object, scale: str, beside: list[str]) -> _Stated:
    """The score that a value in JSON states; the words behind it are added to `beside`."""
    if isinstance(value, JsonPairs):
        inner = scores_in(value)
        return (
            _from_json(inner[0], scale, beside)
            if len(inner) == 1
            else _unread("no single score in the object")
        )
    if isinstance(value, str):
        text = plain(value).strip()
        if not (match := _VALUE.match(text)):
            return _unread(f"not a number: {value[:40]!r}")
        beside.append(text[match.end() :])
        return _read(match, text[match.end() :], False, scale)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _unread(f"not a number: {str(value)[:40]}")
    return _on_scale(float(value), "", scale)


# --- Text -----------------------------------------------------------------------------------------


def _text_values(text: str, cut_off: bool, scale: str, beside: list[str]) -> Iterator[tuple[str, _Stated]]:
    """(dimension, score or problem) for each label that a value follows; all other words are added to `beside`."""
    labels, last = list(LABEL.finditer(text)), 0
    number_first = bool(labels and _NUMBER_FIRST.search(text[: labels[0].start()]))
    others = text[: labels[0].start()] if labels else text
    for before, match, following in zip([None, *labels], labels, [*labels, None][1:], strict=False):
        segment = text[match.end() : following.start() if following else len(text)]
        words = segment
        segment = _NEXT_IN_LIST.sub("\n", segment) if following else segment
        stated, rest = _segment(segment, cut_off and following is None, scale, number_first)
        if stated is not None and not stated.score.scored:  # what spoils a number spoils that one
            rest = rest.partition("\n")[2]
        others = others + EDIT + words if stated is None else f"{_LISTED.sub('', others)}\n{rest}"
        if stated is not None and match.lastgroup is not None:
            lead = text[last : match.start()]
            against = _against(lead, before is not None)
            if before is not None and before.lastgroup != match.lastgroup and _JOINED.fullmatch(lead):
                against = "one number for several labels"
            yield match.lastgroup, _unread(against) if stated.score.scored and against else stated
        last = match.end()
    beside.append(others)


def _against(lead: str, behind_another: bool) -> str:
    """What the words before a label say against its number; `lead` goes back to the last label, if there is one."""
    marks = r"[.!?;,:()\[\]]|\s-\s" if behind_another and "\n" not in lead else r"[.!?;]\s"
    statement = re.split(rf"{marks}|[|\n<>]", lead)[-1]
    other = "" if leads_to_a_score(statement) else statement.strip()
    if not other and (not behind_another or re.search(r"\n\s*\n[^\n]*\n[^\n]*\Z", lead)):
        other = heading_of(lead)
    return f"a number of something else: {other[:40]}" if other else ""


def _segment(segment: str, cut_off: bool, scale: str, number_first: bool) -> tuple[_Stated | None, str]:
    """What is said between a label and the next one, None when no value is stated there; and the words beside it."""
    lead = _LEAD.match(segment)
    start = lead.end() if lead else 0
    mark = lead["mark"] if lead else None
    if mark and "|" in mark and "\n" in mark:  # the next row of a table
        return None, segment
    if number_first and not (mark and mark.strip()[:1] in ":=" and "\n" not in mark):
        return None, segment
    rest = segment[start:] if mark else segment[start:].lstrip()
    value = _VALUE.match(rest)
    if value and (mark or value["of"]):
        rest = rest[value.end() :]
        return _read(value, rest, cut_off, scale), re.sub(r"^\s*points?\b", "", rest)
    if mark and (absent := re.match(r"\(?(?i:n/?a\b|not applicable|none\b|null\b|unknown\b|\?)", rest)):
        return _unread(f"the judge gave {absent[0].strip('(')}"), ""
    lines = list(_SCORE_LINE.finditer(segment))
    if len(lines) == 1 and (value := _VALUE.match(segment, lines[0].end())):
        rest = segment[value.end() :]
        return _read(value, rest, cut_off, scale), f"{segment[: lines[0].start()]}\n{rest}"
    return (_unread("several scores under one label") if len(lines) > 1 else None), segment


def _read(value: re.Match[str], rest: str, cut_off: bool, scale: str) -> _Stated:
    """The score that a matched value states, given the text behind it and what is said of another scale."""
    shown, line = value[0].strip(), rest.split("\n")[0]
    if cut_off and not rest.strip():
        return _unread("reply was cut off at the number")
    if value["sign"]:
        word = "below zero" if value["sign"] == "-" else "not an exact number"
        return _unread(f"{word}: {shown}")
    another = _ANOTHER.match(rest)
    if another and another[0].strip() not in ("", "-", "--"):  # a dash alone leads on to words
        return _unread(f"not one number on the scale of ten: {(shown + another[0]).strip()}")
    number, of = number_in(value["number"]), number_in(value["of"]) if value["of"] else None
    if of not in (None, 10.0):
        return _unread(f"on another scale: {shown}")
    if "," in value["number"] and of is None:
        return _unread(f"not one number: {shown}")
    if not _AFTER.match(line):
        return _unread(f"a number in a sentence: {shown}{line[:30]}")
    if (_ON_A_SCALE if of else re.compile(NUMBER)).search(line):
        return _unread(f"two numbers in one line: {shown}{line[:40]}")
    return _on_scale(math.nan if number is None else number, "10" if of else "", scale)


def _on_scale(number: float, stated: str, scale: str) -> _Stated:
    """A number on the scale of ten, `stated` with it or not, where the reply may speak of another `scale`."""
    if not math.isfinite(number) or not 0 <= number <= 10:
        return _unread(f"outside 0 to 10: {number:g}")
    if scale and not stated:
        return _unread(f"another scale is spoken of: {scale[:40]}")
    if 0 < number < 1 and not stated:
        return _unread(f"scale unclear: {number:g}")
    return _Stated(Score(number), bool(stated))
