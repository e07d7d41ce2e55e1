"""The scores that the JSON in a judge's reply names, and what its keys say against them.

Only a dimension's own key counts, in an object that holds scores by what its keys are called. An object of weights, of
another picture or of a draft says nothing of this one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from plantain.models.hosted.scores.words import LABEL, WORD, number_in, plain

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
"""Keys of what is known to be something else; what is in them is passed over."""
_HOLDS = re.compile(
    r"""(?ix)^(?:(?:the|my|final|overall|all|edit(?:ed|ing)?|image|picture|medical|individual)\s)*
    (?:scores?|ratings?|evaluations?|results?|assessments?|dimensions?|criteria|criterion|metrics?|outputs?|responses?
      |answers?|judge?ments?|verdicts?|reports?|reviews?|data|analysis|images?|pictures?|edit(?:s|ed)?|content|json|grades?
      |marks?|values?|summary|details?|breakdown|quality|arguments|parameters|function|message|choices|items?|entries)$"""
)
"""Keys of what may hold this picture's scores. Under any other a number may be of anything: a penalty, an original."""
_FALSE_DENIES = re.compile(r"(?i)^(?:is )?(?:valid|applicable|scored|usable|evaluable|success)$")
_TRUE_DENIES = re.compile(
    r"(?i)^(?:is )?(?:a |an )?(?:error|failure|failed|refus(?:al|ed)|example|template|placeholder|dummy|draft"
    r"|hypothetical|provisional|corrections?|revisions?|erratum)$"
)
_STATE = re.compile(r"(?i)^(?:status|state|kind|type|image|picture|subject|of|for)$")
_DENYING_STATE = re.compile(
    r"(?i)^(?:draft|failed|failure|error|incomplete|pending|skipped|provisional|example|template"
    r"|(?:the )?(?:original|reference|before|source|input|previous|ground truth)(?: image| picture)?)$"
)


@dataclass(frozen=True, slots=True)
class JsonPairs:
    """A JSON object as it was written: a key that comes twice is there twice."""

    pairs: list[tuple[str, object]]


def _json_trees(reply: str) -> Iterator[object]:
    """Every JSON object or list in the reply."""
    return (tree for tree, _, _ in _json_spans(reply))


def outside_json(reply: str) -> str:
    """The reply without its JSON objects: what they say of something else is not said of this picture."""
    kept, at = [], 0
    for tree, start, end in _json_spans(reply):
        if isinstance(tree, JsonPairs):
            kept.append(reply[at:start])
            at = end
    return " ".join([*kept, reply[at:]])


def around_json(reply: str) -> Iterator[tuple[str, str]]:
    """The text before and behind every JSON object of the reply."""
    return (
        (reply[:start], reply[end:]) for tree, start, end in _json_spans(reply) if isinstance(tree, JsonPairs)
    )


def _json_spans(reply: str) -> Iterator[tuple[object, int, int]]:
    """Every JSON object or list in the reply, with where it begins and ends."""
    decoder, at = json.JSONDecoder(object_pairs_hook=JsonPairs), 0
    while (start := min((i for c in "{[" if (i := reply.find(c, at)) >= 0), default=-1)) >= 0:
        try:
            tree, at = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        yield tree, start, at


def json_values(reply: str) -> Iterator[tuple[str, object, str]]:
    """(dimension, value, what speaks against it) for every key, or named entry, of the JSON in the reply."""
    for tree in _json_trees(reply):
        yield from _walk(tree, "")


def _walk(tree: object, against: str) -> Iterator[tuple[str, object, str]]:
    if isinstance(tree, list):
        for entry in tree:
            yield from _walk(entry, against)
    elif isinstance(tree, JsonPairs):
        against = against or _denied(tree)
        named = [name for _, value in tree.pairs if isinstance(value, str) and (name := _label(value))]
        if len(named) == 1 and scores_in(tree):
            yield named[0], tree, against
            return
        for key, value in tree.pairs:
            name, words = _label(key), _words(key)
            if name:
                own = _denied(value) if isinstance(value, JsonPairs) else ""
                yield name, value, against or own or _rival(tree, name)
            elif not _NOT_THIS.match(words):
                yield from _walk(
                    value, against or ("" if _HOLDS.match(words) else f"a number of {words[:40]}")
                )


def _denied(tree: JsonPairs) -> str:
    """The entry by which an object says that its scores are none, or of another picture."""
    for key, value in tree.pairs:
        words = _words(key)
        no = value is False or (
            isinstance(value, str) and value.strip().lower() in ("", "no", "none", "false", "n/a")
        )
        said = isinstance(value, str) and _STATE.match(words) and _DENYING_STATE.match(plain(value).strip())
        true = _TRUE_DENIES.match(words) and value is not None and not no and value != []
        if said or true or (_FALSE_DENIES.match(words) and value is not None and no):
            return f"the object says {key}: {str(value)[:40]}"
    return ""


def _rival(tree: JsonPairs, name: str) -> str:
    """Another number of the same dimension beside its own, e.g. under "revised_editing_accuracy"."""
    for key, value in tree.pairs:
        words = _words(key)
        found = LABEL.search(words)
        if found is None or found.lastgroup != name or _label(key) is not None:
            continue
        if _numbers(value) and not _ASIDE.search(words) and not _SCALE_KEY.search(words):
            return f"another number of it: {key}"
    return ""


def scores_in(tree: JsonPairs) -> list[object]:
    return [value for key, value in tree.pairs if key.lower() in _SCORE_KEYS]


def number_beside(tree: JsonPairs) -> str:
    """A number in a score's object that may be the end of its scale: any that is not known to be something else."""
    for key, value in tree.pairs:
        numbers = _numbers(value)
        known = _ASIDE.search(_words(key)) or (_SCALE_KEY.search(_words(key)) and _label(key) is None)
        if numbers and not known and key.lower() not in _SCORE_KEYS:
            return f"{key}: {value if isinstance(value, str) else numbers}"
    return ""


def _numbers(value: object) -> list[object]:
    """The numbers in a value, of a text only where it is hardly more than a number."""
    return [*(re.findall(r"[\d%]+", value) if isinstance(value, str) and len(value) < 12 else _leaves(value))]


def _words(key: str) -> str:
    """A key as words: "maxScore" and "max_score" as "max score"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain(key)).strip()


def _label(key: str) -> str | None:
    """The dimension that a JSON key names, wholly: "editing_accuracy_score" but not a sentence about it."""
    bare = re.sub(r"(?i)^\d+[.)]\s*|\s*(?:score|rating)$|\s*\(0-10\)$|:$", "", _words(key)).strip()
    match = LABEL.fullmatch(bare)
    return match.lastgroup if match else None


def scale_of_json(reply: str) -> str:
    """The first entry of a reply's JSON that names the end of a scale other than 10; "" where none does."""
    return next((scale for tree in _json_trees(reply) if (scale := _scale_in_keys(tree))), "")


def _scale_in_keys(tree: object) -> str:
    """The first entry that names the end of a scale other than 10, e.g. "max: 5"."""
    if isinstance(tree, list):
        return next((scale for entry in tree if (scale := _scale_in_keys(entry))), "")
    if not isinstance(tree, JsonPairs):
        return ""
    for key, value in tree.pairs:
        if _SCALE_KEY.search(_words(key)) and not isinstance(value, bool):
            ends = re.findall(
                rf"\d+(?:\.\d+)?|{WORD}", value if isinstance(value, str) else json.dumps(_leaves(value))
            )
            if ends and max(number_in(end) or 0.0 for end in ends) != 10.0:
                return f"{key}: {', '.join(ends)}"
        if scale := _scale_in_keys(value):
            return scale
    return ""


def _leaves(value: object) -> list[float]:
    """The numbers in a value."""
    if isinstance(value, JsonPairs):
        return [number for _, one in value.pairs for number in _leaves(one)]
    if isinstance(value, list):
        return [number for one in value for number in _leaves(one)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []
