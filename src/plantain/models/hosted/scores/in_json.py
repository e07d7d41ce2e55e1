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
    r"(?i)^(?:(?:self )?(?:confidence|certainty)|weight|min(?:imum)?|id|index|number|draw|seed|task|case"
    r"|(?:(?:the )?(?:overall|total|average|mean|sum|weighted)(?: (?:score|rating|quality|average|mean))?))$"
)
"""Keys beside a score that say nothing of it."""
_TOTAL = re.compile(r"(?i)^(?:the )?(?:overall|total|average|mean|sum|weighted)\b")
_TEXTS = re.compile(
    r"(?i)^(?:(?:brief |short |detailed |overall |my )*(?:reasons?|reasoning|explanations?|justifications?|rationale"
    r"|comments?|evidence|analysis|descriptions?|observations?|feedback|notes?|summary|thoughts?|differences?|details?|remarks?|conclusion))$"
)
"""Keys of words, which are read like those outside the JSON."""
_FLAGS = re.compile(
    r"(?i)^(?:is )?(?:qualified|passe[ds]|success|successful|valid|applicable|scored|usable|evaluable|final)$"
)
_STATE = re.compile(r"(?i)^(?:status|state|image|picture|subject|modality|language)$")
_THIS = re.compile(
    r"(?i)^(?:(?:the )?(?:edit(?:ed)?|output|after|result)(?: image| picture)?"
    r"|ok|done|completed?|success|scored|en|english)$"
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


def json_texts(reply: str) -> Iterator[str]:
    """The words in the reply's JSON objects that are not of something else."""
    for tree in _json_trees(reply):
        yield from _texts(tree)


def _texts(tree: object, said: bool = False) -> Iterator[str]:
    if isinstance(tree, str):
        yield from [LABEL.sub(" edit ", plain(tree))] if said and not _label(tree) else []
    elif isinstance(tree, list):
        for entry in tree:
            yield from _texts(entry, said)
    elif isinstance(tree, JsonPairs):
        for key, value in tree.pairs:
            words = _words(key)
            tells = key.lower() not in _SCORE_KEYS and any(k.match(words) for k in (_TEXTS, _HOLDS, _ASIDE))
            if not _NOT_THIS.match(words):
                yield from _texts(value, tells or (said and isinstance(value, str)))


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
        against = against or _unknown(tree)
        named = [name for _, value in tree.pairs if isinstance(value, str) and (name := _label(value))]
        if len(named) == 1 and scores_in(tree):
            yield named[0], tree, against
            return
        for key, value in tree.pairs:
            name, words = _label(key), _words(key)
            if name:
                own = _unknown(value) if isinstance(value, JsonPairs) else ""
                yield name, value, against or own
            elif not _NOT_THIS.match(words):
                yield from _walk(
                    value, against or ("" if _HOLDS.match(words) else f"a number of {words[:40]}")
                )


def _unknown(tree: JsonPairs) -> str:
    """An entry of an object of which it is not known that it leaves the scores beside it alone; "" where all do."""
    single = bool(scores_in(tree))
    for key, value in tree.pairs:
        words = _words(key)
        if _label(key) or key.lower() in _SCORE_KEYS or (isinstance(value, str) and _label(value)):
            continue
        if not (single and _TOTAL.match(words)) and (_TEXTS.match(words) or _ASIDE.match(words)):
            continue
        if _SCALE_KEY.search(words) and _ends_of(value):
            continue
        if _HOLDS.match(words) and isinstance(value, JsonPairs | list | str):
            continue
        if _NOT_THIS.match(words) and isinstance(value, JsonPairs | list):
            continue
        if _FLAGS.match(words) and value is True and not single:
            continue
        if not (_STATE.match(words) and isinstance(value, str) and _THIS.match(plain(value).strip())):
            what = "another number beside the score" if _leaves(value) else "the object says"
            return f"{what}: {key}: {str(value)[:40]}"
    return ""


def scores_in(tree: JsonPairs) -> list[object]:
    return [value for key, value in tree.pairs if key.lower() in _SCORE_KEYS]


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
            ends = _ends_of(value)
            if ends and max(number_in(end) or 0.0 for end in ends) != 10.0:
                return f"{key}: {', '.join(ends)}"
        if scale := _scale_in_keys(value):
            return scale
    return ""


def _ends_of(value: object) -> list[str]:
    """The numbers of a scale."""
    return re.findall(
        rf"\d+(?:\.\d+)?|{WORD}", value if isinstance(value, str) else json.dumps(_leaves(value))
    )


def _leaves(value: object) -> list[float]:
    """The numbers in a value."""
    if isinstance(value, JsonPairs):
        return [number for _, one in value.pairs for number in _leaves(one)]
    if isinstance(value, list):
        return [number for one in value for number in _leaves(one)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []
