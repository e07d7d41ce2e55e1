"""The words for how large, how conspicuous, how soft and where exactly: said by the writer, recognised by the reader.

Every word is written the way `normalise` leaves text: lower case, hyphens as spaces, American spelling.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

LONGEST = 20_000
"""Characters of an instruction that are read; nobody writes more by intention."""

_SPELLING = (
    ("tumour", "tumor"),
    ("oedema", "edema"),
    ("haemorrhag", "hemorrhag"),
    ("centre", "center"),
    ("colour", "color"),
    ("pneumothoraces", "pneumothorax"),
    ("opacities", "opacity"),
)
_LOBES = {
    "lul": "left upper lobe",
    "lll": "left lower lobe",
    "rul": "right upper lobe",
    "rml": "right middle lobe",
    "rll": "right lower lobe",
}


def normalise(text: str) -> str:
    """Free text brought to one form: lower case, plain spaces, one spelling, lobe abbreviations written out."""
    folded = unicodedata.normalize("NFKC", text[:LONGEST]).casefold().replace("’", "'")
    folded = re.sub(r"[-‐-–_/]+", " ", folded)
    folded = re.sub(r"[ \t\f\v]+", " ", folded)
    for british, american in _SPELLING:
        folded = folded.replace(british, american)
    return re.sub(rf"\b({'|'.join(_LOBES)})\b", lambda match: _LOBES[match.group(1)], folded)


EXTENT_SAID = {"small": "small", "moderate": "medium-sized", "large": "large"}
REMOVAL_SAID = {
    "small": "within as small an area as possible",
    "moderate": "within a medium-sized area",
    "large": "to its full extent",
}
CONSPICUITY_SAID = {"subtle": "subtle", "moderate": "moderately visible", "marked": "marked"}
SOFTNESS_SAID = {"soft": "soft edges", "medium": "moderately soft edges", "crisp": "crisp edges"}

EXTENT_HEARD: dict[str, tuple[str, ...]] = {
    "small": (
        "small",
        "smaller",
        "tiny",
        "little",
        "minimal",
        "minute",
        "punctate",
        "trace",
        "limited",
        "single small",
    ),
    "moderate": (
        "medium sized",
        "medium size",
        "moderate sized",
        "moderate size",
        "medium",
        "moderate",
        "mid sized",
    ),
    "large": (
        "large",
        "larger",
        "big",
        "bigger",
        "extensive",
        "massive",
        "sizeable",
        "sizable",
        "huge",
        "widespread",
        "full extent",
        "whole extent",
        "completely",
        "entirely",
    ),
}
CONSPICUITY_HEARD: dict[str, tuple[str, ...]] = {
    "subtle": ("subtle", "subtler", "faint", "fainter", "mild", "slight", "barely visible", "inconspicuous", "early"),
    "moderate": ("moderately visible", "moderately conspicuous", "clearly visible", "moderately marked"),
    "marked": (
        "marked", "more marked", "conspicuous", "obvious", "pronounced", "prominent", "severe", "striking",
        "unmistakable", "advanced",
    ),
}  # fmt: skip
_EDGE = r"(?: (?:and|or) \w+)? (?:edged?|edges|borders?|bordered|margins?|outlines?|transitions?)"
SOFTNESS_HEARD: dict[str, str] = {
    "medium": rf"(?:moderately soft|medium soft|medium|natural){_EDGE}",
    "soft": rf"(?:soft|softer|softened|very soft|blurred|blurry|feathered|diffuse|gradual|smooth|indistinct|"
    rf"ill defined|hazy){_EDGE}|(?:edges|borders?|margins?|outlines?) (?:are |is |should be )?(?:very )?"
    rf"(?:soft|softer|blurred|feathered|gradual)|ill defined|soft(?=[, ])(?! (?:tissue|drusen))",
    "crisp": rf"(?:crisp|crisper|sharp|sharper|well defined|distinct|clear cut){_EDGE}|well defined|"
    r"well circumscribed|sharply (?:defined|marginated|demarcated)|(?:edges|borders?|margins?) (?:are |is |should be )?"
    r"(?:crisp|sharp)",
}

VARIANT_SAID = (
    "",
    "slightly more lateral than usual",
    "slightly more medial than usual",
    "slightly higher than usual",
    "slightly further down than usual",
    "slightly higher and more lateral than usual",
    "slightly higher and more medial than usual",
    "slightly further down and more lateral than usual",
    "slightly further down and more medial than usual",
)
"""Words for each variant of a placement: 0 the renderer's own, 1 lateral, 2 medial, 3 up, 4 down, then up or down with
lateral or medial. Lateral is away from the midline (on a fundus: away from the disc)."""

VARIANTS = len(VARIANT_SAID)
_NUDGE = r"(?:slightly|a little|a bit|somewhat|a touch) "
_UP = r"(?:higher(?: up)?|further up|more (?:superior|cranial)(?:ly)?)"
_DOWN = r"(?:lower|further down|lower down|more (?:inferior|caudal)(?:ly)?)"
_OUT = r"(?:more lateral(?:ly)?|further out(?:wards)?|more temporal(?:ly)?)"
_IN = r"(?:more medial(?:ly)?|further in(?:wards)?|more nasal(?:ly)?)"
_THAN = r"(?: than (?:usual|before))?"
VARIANT_HEARD: tuple[tuple[int, re.Pattern[str]], ...] = tuple(
    (number, re.compile(rf"\b{_NUDGE}{words}{_THAN}(?!\w)"))
    for number, words in (
        (5, rf"{_UP} and {_OUT}"),
        (6, rf"{_UP} and {_IN}"),
        (7, rf"{_DOWN} and {_OUT}"),
        (8, rf"{_DOWN} and {_IN}"),
        (1, _OUT),
        (2, _IN),
        (3, _UP),
        (4, _DOWN),
    )
)


def any_of(words: tuple[str, ...]) -> str:
    """A pattern that matches any of the words as whole words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def _compiled(heard: Mapping[str, tuple[str, ...]]) -> dict[str, re.Pattern[str]]:
    return {value: re.compile(rf"\b(?:{any_of(words)})\b") for value, words in heard.items()}


EXTENT_PATTERNS = _compiled(EXTENT_HEARD)
CONSPICUITY_PATTERNS = _compiled(CONSPICUITY_HEARD)
SOFTNESS_PATTERNS = {
    value: re.compile(rf"\b(?:{pattern})(?!\w)") for value, pattern in SOFTNESS_HEARD.items()
}
SIDE_PATTERNS = {
    "bilateral": re.compile(
        r"\b(?:bilateral(?:ly)?|both(?: (?:the|of the))? (?:sides|lungs|lobes|hemispheres|bases|apices|hemithoraces|"
        r"\w+ lobes|\w+ zones|\w+ halves|\w+ faces|hila)|bibasal|"
        r"bibasilar|both \w+|shafts of both \w+)\b"
    ),
    "midline": re.compile(r"\b(?:midline|mid line|median line)\b"),
    "left": re.compile(r"\bleft(?: sided| hand)?\b"),
    "right": re.compile(r"\bright(?: sided| hand)?\b"),
}
