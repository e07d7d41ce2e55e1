"""Removes keys from text: as they are, URL-encoded, JSON-escaped, in base64, or split over streamed chunks.

Text is redacted where it enters (a provider's body, as soon as it is decoded) and where it leaves (the journal, pages,
the terminal). Raw bytes are never changed.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator
from urllib.parse import quote

import orjson

HIDDEN = "[key]"

_PIECE = 8
"""Shortest piece of a key that is followed from one chunk into the next."""

_REACH = 200
"""Most characters between two pieces of one key: the punctuation and names of JSON."""

_LONG, _MOST_PARTS = 16, 0.6
"""A key that was cut off is hidden if at least this many characters and this share of it are there."""

_BETWEEN = "\x00"

_Span = tuple[int, int]

_keys: dict[str, tuple[str, ...]] = {}


def is_dummy(value: str) -> bool:
    """Return True for placeholders: "x", "none", "EMPTY", "not-needed", "0000000000000000".

    Local servers accept any word. Such a word occurs in answers by chance, so it is not redacted.
    """
    if len(value) < 12 or len(set(value)) < 6:
        return True
    if any(char.isdigit() for char in value):
        return len(value) < 20 and value.isdigit()
    words = re.split(r"[^A-Za-z]+", value)
    return all(
        len(word) <= 15 and (word.islower() or word.isupper() or word.istitle()) for word in words if word
    )


def hide(value: str, *, whatever: bool = False) -> None:
    """Redact this key from now on; a placeholder only with `whatever`."""
    if not is_dummy(value) or (whatever and len(value) >= _PIECE):
        _keys.setdefault(value, _forms(value))


def keys_hidden() -> bool:
    """Return True if any key is known that has to be redacted."""
    return bool(_keys)


def redacted(text: str) -> str:
    """Return `text` without any key. JSON stays JSON."""
    return _without(text, _found(text)) if _keys else text


def redacted_json(value: object) -> object:
    """Return a decoded JSON value without any key, including one split over neighbouring strings.

    The value itself is returned if it contains none.
    """
    if not _keys:
        return value
    leaves = list(_leaves(value))
    spans = _found(_BETWEEN.join(leaves))
    if not spans:
        return value
    clean, start = [], 0
    for leaf in leaves:
        end = start + len(leaf)
        inside = [(max(a, start) - start, min(b, end) - start) for a, b in spans if a < end and b > start]
        clean.append(_without(leaf, inside))
        start = end + len(_BETWEEN)
    return _rebuilt(value, iter(clean))


def redacted_line(line: bytes) -> bytes:
    """Return a line of JSON Lines, e.g. of a batch's answers, without any key; unchanged if it contains none."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return redacted(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    clean = redacted_json(value)
    return line if clean is value else orjson.dumps(clean) + b"\n"


def _leaves(value: object) -> Iterator[str]:
    """Yield every name and string in the order of the text."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str):
        yield value


def _rebuilt(value: object, clean: Iterator[str]) -> object:
    if isinstance(value, dict):
        return {next(clean): _rebuilt(inner, clean) for inner in value.values()}
    if isinstance(value, list):
        return [_rebuilt(inner, clean) for inner in value]
    if isinstance(value, str):
        return next(clean)
    return value


def _found(text: str) -> list[_Span]:
    """Return every stretch of the text that belongs to a key, in order, none overlapping."""
    forms = (form for forms in list(_keys.values()) for form in forms if form[:_PIECE] in text)
    merged: list[_Span] = []
    for start, end in sorted(span for form in forms for span in _pieces(text, form)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _pieces(text: str, form: str) -> Iterator[_Span]:
    """Yield the stretches of each occurrence of a form, in one piece or in several that are not far apart."""
    at = text.find(form[:_PIECE])
    while at >= 0:
        spans, have, here = [], 0, at
        while here >= 0:
            there = here
            while have < len(form) and there < len(text) and text[there] == form[have]:
                there, have = there + 1, have + 1
            spans.append((here, there))
            if have == len(form):
                break
            here = text.find(form[have : have + _PIECE], there, there + _REACH)
        if have >= min(len(form), max(_LONG, math.ceil(_MOST_PARTS * len(form)))):
            yield from spans
            at = spans[-1][1] - 1
        at = text.find(form[:_PIECE], at + 1)


def _without(text: str, spans: list[_Span]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], HIDDEN]
        at = end
    return "".join((*parts, text[at:]))


def _forms(value: str) -> tuple[str, ...]:
    """Return the ways in which a key is written."""
    url = quote(value, safe="")
    forms = [value, url, re.sub("%..", lambda code: code[0].lower(), url)]
    for text in (value, json.dumps(value)[1:-1].replace("/", "\\/")):
        once = json.dumps(text)[1:-1]
        forms += [text, once, json.dumps(once)[1:-1]]  # JSON within JSON, as an answer within a body
    for before in range(3):
        # Base64 of any text that contains the key: its letters at each of three places, the mixed ends left off.
        coded = base64.b64encode(bytes(before) + value.encode()).decode()
        core = coded[math.ceil(before * 8 / 6) : (before + len(value.encode())) * 8 // 6]
        forms += [core, core.replace("+", "-").replace("/", "_"), core.replace("/", "\\/")]
    return tuple(form for form in dict.fromkeys(forms) if len(form) >= _PIECE)
