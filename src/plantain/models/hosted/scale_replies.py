"""Reading the 0 to 10 scores out of a judge's reply, however it is laid out, and never guessing one.

Judges answer in JSON, lists, tables and prose, with bold labels, brackets and other scales. A score counts only where a
dimension's label is directly followed by one number and nothing near it says otherwise: a number that names its scale
("8/10") stands alone on its line, a bare one has no other number beside it, and no other scale is spoken of anywhere.
Everything else is unscored, with the reason. Two different numbers for one dimension are no number.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

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
_WORD = r"(?i:\b(?:" + "|".join(_WORDS) + r")\b)"
_NUMBER = rf"\d+(?:[.,]\d+)?|{_WORD}"
_VALUE = re.compile(
    rf"(?P<open>[\[({{]\s*|<(?=[^<>\n]*>)\s*)?"
    rf"(?P<sign>[-+~≈<>≥≤±]=?|(?i:about|around|approximately|roughly)\s)?\s*(?P<number>{_NUMBER})"
    rf"(?P<close>\s*[\])}}>])?(?:\s*(?:/|(?i:out\s+of))\s*[\[(]?\s*(?P<of>\d+(?:\.\d+)?|{_WORD})(?![\w]|\.\d))?(?P<close2>\s*[\])}}>])?"
)
_ANOTHER = re.compile(rf"\s*(?:%|\+|/|~|±|\^|-+>?|→|(?i:to|or|percent)\b)\s*(?:{_NUMBER})?")
_ON_A_SCALE = re.compile(rf"(?:{_NUMBER})\s*[\])}}]?\s*(?:/|%|(?i:out\s+of|percent)\b)")
_ALONE = re.compile(rf"\W*(?:{_NUMBER})\W*$")
_AFTER = re.compile(r"\s*(?:$|[.,;:!|)\]}>(]|-\s|(?i:because|since|as)\b|(?i:points?)\s*(?:$|[.,;:!)]))")
"""What may follow a score: the end, a mark, or a word that leads to its reason."""

_SUM = re.compile(r"\W*(?i:overall|total|average|mean|sum|weighted)\b")
_SUPPOSED = re.compile(
    r"(?i)\b(?:if|would|could|should|e\.?g|for instance|example|format|template|such as|instead of|unlike|had|were)\b"
)
_CONDITION = re.compile(
    r"\W*(?i:(?:but |and )?(?:only )?(?:if|unless|provided|providing|assuming|supposing|in case)\b)"
)
_REVISED = re.compile(
    rf"""(?imx)
    (?: (?:^[^\w\n]*|\b(?:I|I'd|it|that|this|scores?|rating)\b[^\n]{{0,40}}?\b)
        (?:lower|rais|reduc|chang|correct|revis|amend|adjust|downgrad|upgrad|drop|bring|cut|make|set)\w*\b
        [^\n\d]{{0,30}}?\b(?:to|by|at|a|an|it|that)\s+(?:a\s+|an\s+)?
      | \b(?:deduct|subtract|minus|take\s+(?:off|away)|took\s+(?:off|away))\w*\s+)
    (?:{_NUMBER})(?=\s*(?:$|[;:!)/]|[.,](?!\d)|points?\b|for\b|out\s+of\b|because\b|since\b|as\b|due\b))"""
)
"""A score that is changed in the words behind it, e.g. "I lower that to 6", but no lesion "reduced to 5 mm"."""
_OTHER_SCALE = re.compile(
    rf"""(?ix)
    (?: \b(?:out\s+of|max(?:imum)?(?:[ -]?(?:score|points|value|of))?|denominator|upper\s+(?:end|bound))\W{{0,3}}
      | (?<![\d\])}}\w])[ ]?/\s?
      | \b(?:scale|scores?|scored|rated?|ratings?|range[sd]?)\b[^\n\d]{{0,30}}?(?:\b(?:{"|".join(_WORDS[:2])})\b|\b[01])
        (?:\.0)?(?:\s*\([^()\n]*\))?\s*(?:-|to|and|through|\.\.+|,)\s*
      | [\[(]\s*[01](?:\.0)?\s*(?:-|to|,|\.\.+)\s*
      | \b(?:from|between)\s+(?:[01]|zero|one)(?:\s*\([^()\n]*\))?\s*(?:-|to|and|through)\s*
      | \b(?:best|perfect|excellent|highest|top)\s*(?:=|:|is|being)\s*
      | \bscale\s+(?:is|of)\W{{0,3}}(?!(?:0|1|zero|one)\b)
    )(?P<most>\d+(?:\.\d+)?|{_WORD})(?![\w/])
    | (?P<best>\d+)\s*(?:=|:|is|means|being|\()\s*(?:the\s+)?(?:best|perfect|excellent|highest|max|top)
    | \b(?P<points>\w+)[ -]?(?:point|star|grade)[ -](?:scale|rating|system|likert)
    | \b(?P<kind>likert|stars?|percent(?:age|ages)?)\b | (?P<sign>\(\s*%\s*\))"""
)
_SCALE_KEY = re.compile(
    r"(?i)(?:^|\s)(?:max\w*|out of|scale|range|denominator|upper(?: bound)?|of|best possible)(?:\s|$)"
)
_SCORE_KEYS = ("score", "rating", "value")
_ASIDE = re.compile(
    r"(?i)\b(?:confidence|certainty|weight|min\w*|lower|id|index|number|step|draw|seed|rank)\b"
)
_NOT_THIS = re.compile(
    r"(?i)^(?:example|format|schema|template|previous|draft|initial|old|weights?|threshold|min\w*"
    r"|expect\w*|rubric|references?|default|targets?|ideal|baseline|ground truth|published|human)"
)
_SCALE = r"(?i:(?:scale|scored?|rated?|out)?\s*(?:of|from|:|on)?\s*(?:0\s*(?:-|to|\.\.)\s*10|/?\s*10))\s*"
_LEAD = re.compile(
    rf"[ \t]*(?i:scores?|rating)?[ \t]*(?:[(\[]\s*{_SCALE}[)\]]|{_SCALE}(?=[:=|]))?[ \t]*(?i:scores?|rating)?"
    r"(?P<mark>\s*(?::|=|\||->|→|(?i:\bis\b)|(?<=\s)-\s)(?:\s*[:|=])*\s*(?:[-•]\s+)?)?"
)
_SCORE_LINE = re.compile(r"(?i:\b(?:score|rating|value))\s*(?:[(\[]\s*0\s*-\s*10\s*[)\]])?\s*[:=]\s*")
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
    found: dict[str, list[Score]] = {name: [] for name in DIMENSIONS}
    text, scale = _plain(reply), other_scale(reply)
    for name, value in _json_values(reply):
        found[name].append(_from_json(value, scale))
    if not any(found.values()):
        text = _plain(_outside_json(reply))
        for name, score in _text_values(text, cut_off or text.count("{") > text.count("}"), scale):
            found[name].append(score)
    nothing = "refusal" if _REFUSAL.search(text) else ""
    return {name: _settle(scores, nothing or _missing(text, name)) for name, scores in found.items()}


def other_scale(reply: str) -> str:
    """What a reply says of a scale that does not end at 10, in its words or its keys; "" where it says nothing."""
    for match in _OTHER_SCALE.finditer(_plain(reply)):
        most = match["most"] or match["points"] or match["best"]
        if match["kind"] or match["sign"] or (most and _number(most) not in (None, 10.0)):
            return match[0].strip()
    for tree in _json_trees(reply):
        if scale := _scale_keys(tree):
            return scale
    return ""


def _scale_keys(tree: object) -> str:
    """The first entry that names the end of a scale other than 10, e.g. "max: 5"."""
    if isinstance(tree, list):
        return next((scale for entry in tree if (scale := _scale_keys(entry))), "")
    if not isinstance(tree, _Pairs):
        return ""
    for key, value in tree.pairs:
        if _SCALE_KEY.search(_words(key)) and not isinstance(value, bool):
            ends = re.findall(
                rf"\d+(?:\.\d+)?|{_WORD}", value if isinstance(value, str) else json.dumps(_leaves(value))
            )
            if ends and max(_number(end) or 0.0 for end in ends) != 10.0:
                return f"{key}: {', '.join(ends)}"
        if scale := _scale_keys(value):
            return scale
    return ""


def _leaves(value: object) -> list[float]:
    """The numbers in a value."""
    if isinstance(value, _Pairs):
        return [number for _, one in value.pairs for number in _leaves(one)]
    if isinstance(value, list):
        return [number for one in value for number in _leaves(one)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def _number(text: str) -> float | None:
    """A number in digits or as a word; None for any other word."""
    if text.lower() in _WORDS:
        return float(_WORDS.index(text.lower()))
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


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


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A JSON object as it was written: a key that comes twice is there twice."""

    pairs: list[tuple[str, object]]


def _json_trees(reply: str) -> Iterator[object]:
    """Every JSON object or list in the reply."""
    return (tree for tree, _, _ in _json_spans(reply))


def _outside_json(reply: str) -> str:
    """The reply without its JSON objects: what they say of something else is not said of this picture."""
    kept, at = [], 0
    for tree, start, end in _json_spans(reply):
        if isinstance(tree, _Pairs):
            kept.append(reply[at:start])
            at = end
    return " ".join([*kept, reply[at:]])


def _json_spans(reply: str) -> Iterator[tuple[object, int, int]]:
    """Every JSON object or list in the reply, with where it begins and ends."""
    decoder, at = json.JSONDecoder(object_pairs_hook=_Pairs), 0
    while (start := min((i for c in "{[" if (i := reply.find(c, at)) >= 0), default=-1)) >= 0:
        try:
            tree, at = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        yield tree, start, at


def _json_values(reply: str) -> Iterator[tuple[str, object]]:
    """(dimension, value) for every key, or named entry, of the JSON in the reply."""
    for tree in _json_trees(reply):
        yield from _walk(tree)


def _walk(tree: object) -> Iterator[tuple[str, object]]:
    if isinstance(tree, list):
        for entry in tree:
            yield from _walk(entry)
    elif isinstance(tree, _Pairs):
        named = [name for _, value in tree.pairs if isinstance(value, str) and (name := _label(value))]
        inner = _scores_in(tree)
        if len(named) == 1 and inner:
            yield named[0], tree
            return
        for key, value in tree.pairs:
            name = _label(key)
            if name:
                yield name, value
            elif not _NOT_THIS.match(_words(key)):
                yield from _walk(value)


def _scores_in(tree: _Pairs) -> list[object]:
    return [value for key, value in tree.pairs if key.lower() in _SCORE_KEYS]


def _beside(tree: _Pairs) -> str:
    """A number in a score's object that may be the end of its scale: any that is not known to be something else."""
    for key, value in tree.pairs:
        numbers = (
            re.findall(r"[\d%]+", value) if isinstance(value, str) and len(value) < 12 else _leaves(value)
        )
        known = _ASIDE.search(_words(key)) or (_SCALE_KEY.search(_words(key)) and _label(key) is None)
        if numbers and not known and key.lower() not in _SCORE_KEYS:
            return f"{key}: {value if isinstance(value, str) else numbers}"
    return ""


def _words(key: str) -> str:
    """A key as words: "maxScore" and "max_score" as "max score"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", _plain(key)).strip()


def _label(key: str) -> str | None:
    """The dimension that a JSON key names, wholly: "editing_accuracy_score" but not a sentence about it."""
    plain = re.sub(r"(?i)^\d+[.)]\s*|\s*(?:score|rating)$|\s*\(0-10\)$|:$", "", _words(key)).strip()
    match = _ANY.fullmatch(plain)
    return match.lastgroup if match else None


def _from_json(value: object, scale: str) -> Score:
    if isinstance(value, _Pairs):
        inner = _scores_in(value)
        if len(inner) != 1:
            return unscored("no single score in the object")
        beside = _beside(value)
        return (
            unscored(f"another number beside the score: {beside}") if beside else _from_json(inner[0], scale)
        )
    if isinstance(value, str):
        plain = _plain(value).strip()
        match = _VALUE.match(plain)
        return (
            _read(match, plain[match.end() :], False, scale)
            if match
            else unscored(f"not a number: {value[:40]!r}")
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return unscored(f"not a number: {str(value)[:40]}")
    return _on_scale(float(value), "", scale)


# --- Text -----------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """Without markup: the words, numbers and separators that are left say the same."""
    raised = ("<super>", "<sub>", "<fraction>")
    text = "".join(f" ^{c}" if unicodedata.decomposition(c).startswith(raised) else c for c in text)
    text = unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2215", "/").replace("’", "'")
    text = re.sub(r"[\u2010-\u2015\u2212]", "-", text)
    text = re.sub(r"</?[A-Za-z][^<>]*>", " ", text)
    text = re.sub(r"\\(?:boxed|text|textbf)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"(?<=\d)[*`\"“”$#\\']+(?=\d)", " ", text)  # what stood apart must not run together
    text = re.sub(r"(?<![A-Za-z])'|'(?![A-Za-z])", "", text)
    text = re.sub(r"(?m)^[ \t]*#+", "", text)
    return re.sub(r"[*`\"“”$\\]", "", text).replace("_", " ").replace("\r", "")


def _text_values(text: str, cut_off: bool, scale: str) -> Iterator[tuple[str, Score]]:
    """(dimension, score or problem) for each label that a value follows."""
    labels, last = list(_ANY.finditer(text)), 0
    for match, following in zip(labels, [*labels, None][1:], strict=True):
        segment = text[match.end() : following.start() if following else len(text)]
        score = _segment(segment, cut_off and following is None, scale)
        if score is not None and match.lastgroup is not None:
            supposed = score.scored and _SUPPOSED.search(_lead_in(text[last : match.start()]))
            yield match.lastgroup, unscored(f"supposed, not said: {supposed[0]}") if supposed else score
        last = match.end()


def _lead_in(before: str) -> str:
    """What is said of a label before it: its line, and a line that ends in a colon above it."""
    lines = before.rstrip(" \t-*|#>").rsplit("\n", 2)
    above = next((line for line in reversed(lines[:-1]) if line.strip()), "")
    return re.split(r"[.!?]\s", lines[-1])[-1] + (f" {above}" if above.rstrip().endswith(":") else "")


def _segment(segment: str, cut_off: bool, scale: str) -> Score | None:
    """What is said between a label and the next one; None when no value is stated there."""
    lead = _LEAD.match(segment)
    start = lead.end() if lead else 0
    mark = lead["mark"] if lead else None
    rest = segment[start:]
    value = _VALUE.match(rest if mark else rest.lstrip())
    rest = rest if mark else rest.lstrip()
    if value and (mark or value["of"]):
        return _read(value, rest[value.end() :], cut_off, scale)
    if mark and (absent := re.match(r"\(?(?i:n/?a\b|not applicable|none\b|null\b|unknown\b|\?)", rest)):
        return unscored(f"the judge gave {absent[0].strip('(')}")
    lines = list(_SCORE_LINE.finditer(segment))
    if len(lines) == 1 and (value := _VALUE.match(segment, lines[0].end())):
        return _read(value, segment[value.end() :], cut_off, scale)
    return unscored("several scores under one label") if len(lines) > 1 else None


def _read(value: re.Match[str], rest: str, cut_off: bool, scale: str) -> Score:
    """The score that a matched value states, given the text behind it and what is said of another scale."""
    shown, (line, *below) = value[0].strip(), rest.split("\n")
    if cut_off and not rest.strip():
        return unscored("reply was cut off at the number")
    if value["sign"]:
        word = "below zero" if value["sign"] == "-" else "not an exact number"
        return unscored(f"{word}: {shown}")
    another = _ANOTHER.match(rest)
    if another and another[0].strip() not in ("", "-", "--"):  # a dash alone leads on to words
        return unscored(f"not one number on the scale of ten: {(shown + another[0]).strip()}")
    number, of = _number(value["number"]), _number(value["of"]) if value["of"] else None
    if of not in (None, 10.0):
        return unscored(f"on another scale: {shown}")
    if "," in value["number"] and of is None:
        return unscored(f"not one number: {shown}")
    if not _AFTER.match(line):
        return unscored(f"a number in a sentence: {shown}{line[:30]}")
    if (_ON_A_SCALE if of else re.compile(_NUMBER)).search(line):
        return unscored(f"two numbers in one line: {shown}{line[:40]}")
    if condition := _CONDITION.match(line):
        return unscored(f"supposed, not said: {shown}{condition[0]}")
    if revised := _REVISED.search(rest):
        return unscored(f"changed behind the number: {shown} ... {revised[0].strip()[:60]}")
    if any((_ALONE.match(other) or _ON_A_SCALE.search(other)) and not _SUM.match(other) for other in below):
        return unscored(f"several numbers under one label: {shown}")
    return _on_scale(math.nan if number is None else number, "10" if of else "", scale)


def _on_scale(number: float, stated: str, scale: str) -> Score:
    """A number on the scale of ten, `stated` with it or not, where the reply may speak of another `scale`."""
    if not math.isfinite(number) or not 0 <= number <= 10:
        return unscored(f"outside 0 to 10: {number:g}")
    if scale and not stated:
        return unscored(f"another scale is spoken of: {scale[:40]}")
    if 0 < number < 1 and not stated:
        return unscored(f"scale unclear: {number:g}")
    return Score(number)
