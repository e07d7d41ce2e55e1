"""Reading the 0 to 10 scores out of a judge's reply, however it is laid out, and never guessing one.

Judges answer in JSON, lists, tables and prose, with bold labels, brackets and other scales. A score counts only
where a dimension's label is directly followed by one number on the scale of ten; everything else is unscored, with
the reason. Two different numbers for one dimension are no number.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator

from plantain.records import Score, unscored

DIMENSIONS = ("editing_accuracy", "context_preservation", "visual_quality")

_LABELS = {
    "editing_accuracy": r"(?i:edit(?:ing)?[ -]accuracy)|EA",
    "context_preservation": r"(?i:context(?:ual)?[ -]preservation)|CP",
    "visual_quality": r"(?i:visual[ -]quality)|VQ",
}
_ANY = re.compile(
    "|".join(rf"(?P<{name}>(?<![A-Za-z])(?:{pattern})(?![A-Za-z]))" for name, pattern in _LABELS.items())
)
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_NUMBER = r"\d+(?:[.,]\d+)?|(?i:\b(?:" + "|".join(_WORDS) + r")\b)"
_VALUE = re.compile(
    rf"(?P<open>[\[({{<]\s*)?(?P<sign>[-+~≈<>≥≤]|(?i:about|around|approximately|roughly)\s)?\s*(?P<number>{_NUMBER})"
    rf"(?P<close>\s*[\])}}>])?(?:\s*(?:/|(?i:out\s+of))\s*[\[(]?\s*(?P<of>\d+(?:\.\d+)?|(?i:ten))\b)?(?P<close2>\s*[\])}}>])?"
)
_ANOTHER = re.compile(rf"\s*(?:%|\+|/|-+>?|→|(?i:to|or|percent)\b)\s*(?:{_NUMBER})?")
_SCALE = r"(?i:(?:scale|scored?|rated?|out)?\s*(?:of|from|:|on)?\s*(?:0\s*(?:-|to|\.\.)\s*10|/?\s*10))\s*"
_LEAD = re.compile(
    rf"[ \t]*(?i:scores?|rating)?[ \t]*(?:[(\[]\s*{_SCALE}[)\]]|{_SCALE}(?=[:=|]))?[ \t]*(?i:scores?|rating)?"
    r"(?P<mark>\s*(?::|=|\||->|→|(?i:\bis\b)|(?<=\s)-\s)(?:\s*[:|=])*\s*(?:[-•]\s+)?)?"
)
_SCORE_LINE = re.compile(r"(?i:\b(?:score|rating|value))\s*(?:[(\[]\s*0\s*-\s*10\s*[)\]])?\s*[:=]\s*")
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
    if not reply.strip():
        return dict.fromkeys(DIMENSIONS, unscored("empty reply"))
    found: dict[str, list[Score]] = {name: [] for name in DIMENSIONS}
    text = _plain(reply)
    for name, value in _json_values(reply):
        found[name].append(_from_json(value))
    if not any(found.values()):
        for name, score in _text_values(text, cut_off or text.count("{") > text.count("}")):
            found[name].append(score)
    nothing = "refusal" if _REFUSAL.search(text) else ""
    return {name: _settle(scores, nothing or _missing(text, name)) for name, scores in found.items()}


def is_refusal(reply: str) -> bool:
    """Whether the judge declined: it says so, and scored nothing."""
    scores = parse_scores(reply)
    return all(score.reason == "refusal" for score in scores.values())


def _settle(scores: list[Score], nothing: str) -> Score:
    """One score from all statements about a dimension; contradictions are no score."""
    values = sorted({score.value for score in scores if score.value is not None})
    problems = [score for score in scores if score.value is None]
    if len(values) > 1:
        return unscored("stated twice: " + " and ".join(f"{value:g}" for value in values))
    if problems:
        return problems[0]
    return Score(values[0]) if values else unscored(nothing)


def _missing(text: str, name: str) -> str:
    labelled = any(match.lastgroup == name for match in _ANY.finditer(text))
    return "no score beside the label" if labelled else "not mentioned"


# --- JSON -----------------------------------------------------------------------------------------


def _json_values(reply: str) -> Iterator[tuple[str, object]]:
    """(dimension, value) for every key, or named entry, of the JSON in the reply."""
    decoder, at = json.JSONDecoder(), 0
    while (start := min((i for c in "{[" if (i := reply.find(c, at)) >= 0), default=-1)) >= 0:
        try:
            tree, at = decoder.raw_decode(reply, start)
        except (json.JSONDecodeError, RecursionError):
            at = start + 1
            continue
        yield from _walk(tree)


def _walk(tree: object) -> Iterator[tuple[str, object]]:
    if isinstance(tree, list):
        for entry in tree:
            yield from _walk(entry)
    elif isinstance(tree, dict):
        named = [name for value in tree.values() if isinstance(value, str) and (name := _label(value))]
        inner = [value for key, value in tree.items() if str(key).lower() in ("score", "rating", "value")]
        if len(named) == 1 and len(inner) == 1:
            yield named[0], inner[0]
            return
        for key, value in tree.items():
            name = _label(str(key))
            if name:
                yield name, value
            else:
                yield from _walk(value)


def _label(key: str) -> str | None:
    """The dimension that a JSON key names, wholly: "editing_accuracy_score" but not a sentence about it."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", _plain(key))
    plain = re.sub(r"(?i)^\d+[.)]\s*|\s*(?:score|rating)$|\s*\(0-10\)$|:$", "", plain.strip()).strip()
    match = _ANY.fullmatch(plain)
    return match.lastgroup if match else None


def _from_json(value: object) -> Score:
    if isinstance(value, dict):
        inner = [v for key, v in value.items() if str(key).lower() in ("score", "rating", "value")]
        return _from_json(inner[0]) if len(inner) == 1 else unscored("no single score in the object")
    if isinstance(value, str):
        match = _VALUE.match(_plain(value).strip())
        if not match:
            return unscored(f"not a number: {value[:40]!r}")
        return _read(match, _plain(value).strip()[match.end() :], False)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return unscored(f"not a number: {json.dumps(value)[:40]}")
    return _on_scale(float(value), stated=False)


# --- Text -----------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """Without markup: the words, numbers and separators that are left say the same."""
    text = unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2215", "/").replace("’", "'")
    text = re.sub(r"[\u2010-\u2015\u2212]", "-", text)
    text = re.sub(r"</?[A-Za-z][^<>]*>", " ", text)
    text = re.sub(r"\\(?:boxed|text|textbf)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"(?<![A-Za-z])'|'(?![A-Za-z])", "", text)
    return re.sub(r"[*`\"“”$#\\]", "", text).replace("_", " ").replace("\r", "")


def _text_values(text: str, cut_off: bool) -> Iterator[tuple[str, Score]]:
    """(dimension, score or problem) for each label that a value follows."""
    labels = list(_ANY.finditer(text))
    for match, following in zip(labels, [*labels, None][1:], strict=True):
        segment = text[match.end() : following.start() if following else len(text)]
        score = _segment(segment, cut_off and following is None)
        if score is not None and match.lastgroup is not None:
            yield match.lastgroup, score


def _segment(segment: str, cut_off: bool) -> Score | None:
    """What is said between a label and the next one; None when no value is stated there."""
    lead = _LEAD.match(segment)
    start = lead.end() if lead else 0
    mark = lead["mark"] if lead else None
    rest = segment[start:]
    value = _VALUE.match(rest if mark else rest.lstrip())
    rest = rest if mark else rest.lstrip()
    if value and (mark or value["of"]):
        return _read(value, rest[value.end() :], cut_off)
    if mark and (absent := re.match(r"\(?(?i:n/?a\b|not applicable|none\b|null\b|unknown\b|\?)", rest)):
        return unscored(f"the judge gave {absent[0].strip('(')}")
    lines = list(_SCORE_LINE.finditer(segment))
    if len(lines) == 1 and (value := _VALUE.match(segment, lines[0].end())):
        return _read(value, segment[value.end() :], cut_off)
    return unscored("several scores under one label") if len(lines) > 1 else None


def _read(value: re.Match[str], rest: str, cut_off: bool) -> Score:
    """The score that a matched value states, given the text behind it."""
    shown = value[0].strip()
    line = re.sub(r"\([^()\n]*\)", "", rest.split("\n", 1)[0])
    if cut_off and not rest.strip():
        return unscored("reply was cut off at the number")
    if value["sign"]:
        word = "below zero" if value["sign"] == "-" else "not an exact number"
        return unscored(f"{word}: {shown}")
    number = value["number"].lower()
    another = _ANOTHER.match(rest)
    if another and another[0].strip() not in ("", "-", "--"):  # a dash alone leads on to words
        return unscored(f"not one number on the scale of ten: {(shown + another[0]).strip()}")
    if value["of"] and value["of"].lower() not in ("10", "10.0", "ten"):
        return unscored(f"on another scale: {shown}")
    if re.search(r"\d\s*(?:/|out of)\s*\d", line):
        return unscored(f"two numbers in one line: {shown}{line[:40]}")
    if "," in number and not value["of"]:
        return unscored(f"not one number: {shown}")
    parsed = float(_WORDS.index(number)) if number in _WORDS else float(number.replace(",", "."))
    if (
        not value["of"]
        and re.match(r"\s*[A-Za-z]", line)
        and not re.match(r"\s*(?i:points?|because|since|as)\b", line)
    ):
        return unscored(f"a number in a sentence: {shown}{line[:30]}")
    return _on_scale(parsed, stated=bool(value["of"]))


def _on_scale(number: float, *, stated: bool) -> Score:
    if not math.isfinite(number) or not 0 <= number <= 10:
        return unscored(f"outside 0 to 10: {number:g}")
    if 0 < number < 1 and not stated:
        return unscored(f"scale unclear: {number:g}")
    return Score(number)
