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

from plantain.models.hosted.scores.in_json import (
    JsonPairs,
    around_json,
    json_values,
    number_beside,
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
_ALONE = re.compile(rf"\W*(?:{NUMBER})\W*$")
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
    (?:{NUMBER})(?=\s*(?:$|[;:!)/]|[.,](?!\d)|points?\b|for\b|out\s+of\b|because\b|since\b|as\b|due\b))"""
)
"""A score that is changed in the words behind it, e.g. "I lower that to 6", but no lesion "reduced to 5 mm"."""
_TAKEN_BACK = re.compile(
    rf"""(?imx)(?:^|[.!?(]\s*)\W*(?:wait|actually|hmm+|on\ (?:second\ thoughts?|reflection)|correction|erratum
    |edit:|scrap|ignore|disregard|never\ ?mind|(?:just\ )?kidding|strike\ that|make\ that|do\ not\ use
    |half\ of\ (?:that|it)|final\w*\b[^.\n]*?\b(?:{NUMBER}))(?!\w)
    | ,\s*(?:or|but)\s+(?:perhaps|maybe|possibly|probably)\b
    | \b(?:placeholders?|dummy|(?:an?\ )?example(?:\ values?)?\s*(?=[.)\]\n]|$)|invers\w+\ scale
      |higher\ (?:is|means)\ worse|I\ meant|(?:true|real)\ score|take\ (?:that|it)\ back|cannot\ (?:give|rate|score)
      |take\ (?:{NUMBER})\ off|(?:{NUMBER})\ points?\ (?:less|off|fewer))\b"""
)
"""Words that take back what was said before them."""
_OF_ANOTHER = re.compile(
    r"(?i)^\W*(?:if|had|assuming|suppose|best|worst|original|ground truth|reference|source|before|previous|draft"
    r"|example)\b"
)
"""How a heading begins under which scores are of something else."""
_OWN_WORDS = re.compile(
    r"""(?ix)the|my|an?|i|for|of|on|in|is|are|and|as|to|that|this|here|s|so|thus|hence|therefore|also|now|then|next
    |give|assign|rate|think|believe|scored?|scores|ratings?|final(?:ly)?|overall|results?|evaluation|assessment|answer
    |judge|assistant|image|edit(?:ed)?|follows|dimension|criterion|metric|aspect|category|name|step|part|first|second
    |third|lastly|regarding|concerning"""
)
"""All that may stand before a label in its statement: after any other word the number may be of something else."""
_NUMBER_FIRST = re.compile(
    rf"""(?ix)(?:(?:{NUMBER})\s*[\])}}]?\s*(?:/|out\s+of)\s*[\[(]?\s*\d+ | \|\s*(?:{NUMBER})\s*\|
    | \b(?:score|rating|value)\W{{1,4}}(?:{NUMBER}))
    [^\w\n]*\n?[^\w\n]*(?:(?:dimension|metric|criterion|aspect|category|name|points?)\W+)?\Z"""
)
"""A reply whose numbers stand before their labels, so that what follows a label belongs to the next one."""
_INVERTED = re.compile(
    r"""(?ix)\b(?:lower|smaller|less)\s+(?:is|are|means|=)\s+(?:\w+\s+)?better\b
    | \b10\s*(?:=|:|is|being|means)\s*(?:the\s+)?(?:worst|poorest|terrible)
    | \b(?:0|1|zero|one)\s*(?:=|:|is|being|means)?\s*(?:the\s+)?(?:best|perfect|flawless|ideal|excellent)\b"""
)
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
    r"(?P<mark>\s*(?::|=|\||->|→|(?i:\bis\b)|(?<=\s)-\s)(?:\s*[:|=])*\s*(?:[-•]\s+)?)?"
)
_SCORE_LINE = re.compile(
    r"(?im:(?:^|(?<=[|.!?]))\W*(?:(?:my|the|final)\s)*(?:score|rating|value))\s*(?:[(\[]\s*0\s*-\s*10\s*[)\]])?\s*[:=]\s*"
)
_NEXT_IN_LIST = re.compile(r"\n[^\w\n]*\d+[.)][^\w\n]*\Z")
"""The number of a list's next entry, before that entry's label."""
_JOINED = re.compile(r"(?i)[\s,;&/+=]*(?:and|with)?\s*")
_SUPPOSED_JSON = re.compile(
    r"(?i)\b(?:if|had|would|could|for instance|for example|e\.?g|such as|template|sample|placeholder)\b"
    r"|\b(?:not final|draft)\b|\bformat (?:is|was|would be)\W*$|\bexample\W*$"
)
_DENIED_JSON = re.compile(
    r"(?i)^\W*(?:(?:this|that|it|the above)\s+)?"
    r"(?:would|could|should|is (?:just |only )?(?:an? |the )?(?:example|template|format|draft))\b"
)
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
    text, scale = plain(outside_json(reply)), other_scale(reply)
    doubt = _doubt_around(reply)
    for name, value, against in json_values(reply):
        against = against or doubt
        found[name].append(unscored(against) if against else _from_json(value, scale))
    in_json = any(found.values())
    for name, score in _text_values(text, cut_off or text.count("{") > text.count("}"), scale):
        if score.scored or not in_json:  # words beside JSON may contradict it, not spoil it
            found[name].append(score)
    nothing = "refusal" if _REFUSAL.search(text) else ""
    return {name: _settle(scores, nothing or _missing(text, name)) for name, scores in found.items()}


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
    labelled = any(match.lastgroup == name for match in LABEL.finditer(text))
    return "no score beside the label" if labelled else "not mentioned"


def _doubt_around(reply: str) -> str:
    """What the words directly before or behind a reply's JSON say against it; "" where they say nothing."""
    for before, after in around_json(reply):
        if inverted := _INVERTED.search(plain(reply)):
            return f"lower is better: {inverted[0].strip()}"
        if supposed := _SUPPOSED_JSON.search(re.split(r"[.!?]\s|\n", plain(before).strip())[-1]):
            return f"supposed, not said: {supposed[0]}"
        after = plain(after)
        denied = _DENIED_JSON.match(after) or _REVISED.search(after) or _TAKEN_BACK.search(after)
        if denied:
            return f"changed behind the number: {denied[0].strip()[:60]}"
    return ""


def _from_json(value: object, scale: str) -> Score:
    if isinstance(value, JsonPairs):
        inner = scores_in(value)
        if len(inner) != 1:
            return unscored("no single score in the object")
        beside = number_beside(value)
        return (
            unscored(f"another number beside the score: {beside}") if beside else _from_json(inner[0], scale)
        )
    if isinstance(value, str):
        text = plain(value).strip()
        match = _VALUE.match(text)
        return (
            _read(match, text[match.end() :], False, scale)
            if match
            else unscored(f"not a number: {value[:40]!r}")
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return unscored(f"not a number: {str(value)[:40]}")
    return _on_scale(float(value), "", scale)


# --- Text -----------------------------------------------------------------------------------------


def _text_values(text: str, cut_off: bool, scale: str) -> Iterator[tuple[str, Score]]:
    """(dimension, score or problem) for each label that a value follows."""
    labels, last = list(LABEL.finditer(text)), 0
    number_first = bool(labels and _NUMBER_FIRST.search(text[: labels[0].start()]))
    inverted = _INVERTED.search(text)
    for before, match, following in zip([None, *labels], labels, [*labels, None][1:], strict=False):
        segment = text[match.end() : following.start() if following else len(text)]
        segment = _NEXT_IN_LIST.sub("\n", segment) if following else segment
        score = _segment(segment, cut_off and following is None, scale, number_first)
        if score is not None and match.lastgroup is not None:
            lead = text[last : match.start()]
            against = (
                f"lower is better: {inverted[0].strip()}" if inverted else _against(lead, before is not None)
            )
            if before is not None and before.lastgroup != match.lastgroup and _JOINED.fullmatch(lead):
                against = "one number for several labels"
            yield match.lastgroup, unscored(against) if score.scored and against else score
        last = match.end()


def _against(lead: str, behind_another: bool) -> str:
    """What the words before a label say against its number; `lead` goes back to the last label, if there is one."""
    if supposed := _SUPPOSED.search(_lead_in(lead)):
        return f"supposed, not said: {supposed[0]}"
    marks = r"[.!?;,:()\[\]]|\s-\s" if behind_another and "\n" not in lead else r"[.!?;]\s"
    if "\n" in lead and _OF_ANOTHER.match(heading := _heading(lead)):
        return f"a number of something else: {heading.strip()[:40]}"
    statement = re.split(rf"{marks}|[|\n<>]", lead)[-1]
    other = [
        word
        for word in re.findall(r"[^\W\d]+", statement.replace("'", " "))
        if not _OWN_WORDS.fullmatch(word)
    ]
    return f"a number of something else: {statement.strip()[:40]}" if other else ""


def _lead_in(before: str) -> str:
    """What is said of a label before it: its line, and a line that ends in a colon above it."""
    lines = before.rstrip(" \t-*|#>").rsplit("\n", 2)
    above = next((line for line in reversed(lines[:-1]) if line.strip()), "")
    return re.split(r"[.!?]\s", lines[-1])[-1] + (f" {above}" if above.rstrip().endswith(":") else "")


def _heading(lead: str) -> str:
    """The line above a label's own, where it is short and no sentence."""
    above = next((line for line in reversed(lead.split("\n")[:-1]) if line.strip()), "")
    return above if len(above) < 50 and not above.rstrip().endswith(".") else ""


def _segment(segment: str, cut_off: bool, scale: str, number_first: bool) -> Score | None:
    """What is said between a label and the next one; None when no value is stated there."""
    lead = _LEAD.match(segment)
    start = lead.end() if lead else 0
    mark = lead["mark"] if lead else None
    if mark and "|" in mark and "\n" in mark:  # the next row of a table
        return None
    if number_first and not (mark and mark.strip()[:1] in ":=" and "\n" not in mark):
        return None
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
    number, of = number_in(value["number"]), number_in(value["of"]) if value["of"] else None
    if of not in (None, 10.0):
        return unscored(f"on another scale: {shown}")
    if "," in value["number"] and of is None:
        return unscored(f"not one number: {shown}")
    if not _AFTER.match(line):
        return unscored(f"a number in a sentence: {shown}{line[:30]}")
    if (_ON_A_SCALE if of else re.compile(NUMBER)).search(line):
        return unscored(f"two numbers in one line: {shown}{line[:40]}")
    if condition := _CONDITION.match(line):
        return unscored(f"supposed, not said: {shown}{condition[0]}")
    if revised := _REVISED.search(rest) or _TAKEN_BACK.search(rest):
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
