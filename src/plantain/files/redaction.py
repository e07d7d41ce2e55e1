"""Keys taken out of text, however an echo wrote them: plain, escaped, in base64, or in pieces over several strings.

Text is redacted where it enters (a provider's body, as soon as it is decoded) and where it leaves (the journal, pages,
the terminal). Pictures and raw bytes are never touched.
"""

from __future__ import annotations

import base64
import html
import math
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote

import orjson

HIDDEN = "[key]"

PIECE = 8
"""Shortest piece of a key that is followed from one string into the next."""

REACH = 200
"""Most characters between two pieces of one key: the punctuation and names of JSON lie there."""

MOST_PARTS = 0.6
"""Share of a long key that is hidden although the rest of it was cut off."""

_LAYERS = 7
_LONG = 16
_BETWEEN = "\x00"

_ESCAPE = re.compile(
    r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})|&#[xX]([0-9a-fA-F]{1,6});"
    r"|&#([0-9]{1,7});|&([a-z]{2,6});|\\([^ux])",
    re.DOTALL,
)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

_PICTURE = re.compile(r"(data:image/[a-z.+-]+;base64,|/9j/|iVBORw0KGgo|R0lGOD|UklGR|Qk[0-9A-Za-z]|SUkq|TU0A)")
"""How a picture in base64 begins: JPEG, PNG, GIF, WebP, BMP, TIFF."""

_SHORTEST_PICTURE = 100

Span = tuple[int, int]

_keys: dict[str, tuple[str, ...]] = {}


def is_dummy(value: str) -> bool:
    """Whether this can be nobody's key: "x", "none", "EMPTY", "not-needed", "0000000000000000".

    Servers in the house take any word. Such a word stands in answers and pictures by chance, so it is not redacted.
    """
    if len(value) < 12 or len(set(value)) < 6:
        return True
    words = re.split(r"[^A-Za-z]+", value)
    if any(char.isdigit() for char in value):
        return len(value) < 20 and value.isdigit()
    return all(
        len(word) <= 15 and (word.islower() or word.isupper() or word.istitle() or not word) for word in words
    )


def hide(value: str, *, whatever: bool = False) -> None:
    """From now on this key is taken out of every text that is kept or shown; a dummy only where `whatever` says so."""
    if not is_dummy(value) or (whatever and len(value) >= PIECE):
        _keys.setdefault(value, _needles(value))


def redacted(text: str) -> str:
    """`text` without any key; what was JSON is JSON afterwards."""
    if not _keys or not (spans := _found(text)):
        return text
    if text.lstrip()[:1] in ("{", "["):
        try:
            whole = orjson.dumps(redacted_json(orjson.loads(text)), option=orjson.OPT_NON_STR_KEYS).decode()
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            return _without(text, spans)
        return whole if not _found(whole) else _without(whole, _found(whole))
    return _without(text, spans)


def redacted_json(value: object) -> object:
    """A decoded JSON value without any key, also one in pieces over neighbouring strings; pictures as they are."""
    if not _keys:
        return value
    leaves = list(_leaves(value))
    joined = _BETWEEN.join(leaves)
    spans = _found(joined)
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
    """A line of a file of JSON lines, e.g. a batch's answers: as it is unless a key stands in it outside pictures."""
    if not _keys:
        return line
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        text = line.decode("utf-8", "surrogateescape")
        return redacted(text).encode("utf-8", "surrogateescape")
    clean = redacted_json(value)
    return line if clean is value else orjson.dumps(clean) + b"\n"


def is_picture(text: str) -> bool:
    """Whether a string is a picture in base64: by how it begins, and as one long word."""
    return len(text) > _SHORTEST_PICTURE and text.isascii() and " " not in text and bool(_PICTURE.match(text))


def _leaves(value: object) -> Iterator[str]:
    """Every name, string and number in the order of the text; a picture as nothing."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str):
        yield "" if is_picture(value) else value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)


def _rebuilt(value: object, clean: Iterator[str]) -> object:
    if isinstance(value, dict):
        return {next(clean): _rebuilt(inner, clean) for inner in value.values()}
    if isinstance(value, list):
        return [_rebuilt(inner, clean) for inner in value]
    if isinstance(value, str):
        cleaned = next(clean)
        return value if is_picture(value) else cleaned
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        cleaned = next(clean)
        return value if cleaned == str(value) else cleaned
    return value


# --- where a key stands ------------------------------------------------------------------------------------------


def _found(text: str) -> list[Span]:
    """Every stretch of the text that belongs to a key, in order, none overlapping."""
    spans: list[Span] = []
    layers = [text]
    for _ in range(_LAYERS):
        spans += _in_the_original(_in_layer(layers[-1]), layers)
        if not _ESCAPE.search(layers[-1]):
            break
        decoded = _ESCAPE.sub(_character, layers[-1])
        if decoded == layers[-1]:
            break
        layers.append(decoded)
    return _merged(spans)


def _in_layer(text: str) -> list[Span]:
    return [
        span
        for needles in list(_keys.values())
        for needle in needles
        if needle[:PIECE] in text
        for span in _pieces(text, needle)
    ]


def _pieces(text: str, needle: str) -> Iterator[Span]:
    """The stretches of each occurrence of a needle, in one piece or in several that are not far apart."""
    at = text.find(needle[:PIECE])
    while at >= 0:
        spans, have, here = [], 0, at
        while here >= 0:
            there = here
            while have < len(needle) and there < len(text) and text[there] == needle[have]:
                there, have = there + 1, have + 1
            spans.append((here, there))
            if have == len(needle):
                break
            here = text.find(needle[have : have + PIECE], there, there + REACH)
        if have >= min(len(needle), max(_LONG, math.ceil(MOST_PARTS * len(needle)))):
            yield from spans
            at = spans[-1][1] - 1
        at = text.find(needle[:PIECE], at + 1)


def _in_the_original(spans: list[Span], layers: list[str]) -> list[Span]:
    """Stretches of the last layer as stretches of the first, by the escapes that led from each to the next."""
    for text in reversed(layers[:-1]) if spans else ():
        places, shift = [], 0
        for escape in _ESCAPE.finditer(text):
            places.append((escape.start() - shift, escape.end()))
            shift += escape.end() - escape.start() - len(_character(escape))
        spans = [(_back(a, places), _back(b, places)) for a, b in spans]
    return spans


def _back(at: int, places: list[tuple[int, int]]) -> int:
    """A position behind the escapes as one before them.

    Args:
        places: of every escape where its character stands afterwards, and where it ends before; in order.
    """
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if places[middle][0] < at:
            low = middle + 1
        else:
            high = middle
    if not low:
        return at
    after, end = places[low - 1]
    return end + at - after - 1


def _character(escape: re.Match[str]) -> str:
    """The one character that an escape stands for; "?" for one that stands for none."""
    for group in (1, 2, 3, 4):
        if escape[group]:
            return _chr(int(escape[group], 16))
    if escape[5]:
        return _chr(int(escape[5]))
    if escape[6]:
        character = html.unescape(f"&{escape[6]};")
        return character if len(character) == 1 else "?"
    return _CONTROLS.get(escape[7], escape[7])


def _chr(code: int) -> str:
    return chr(code) if 0 < code < 0x110000 else "?"


def _merged(spans: list[Span]) -> list[Span]:
    kept: list[Span] = []
    for start, end in sorted(spans):
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    return kept


def _without(text: str, spans: list[Span]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], HIDDEN]
        at = end
    return "".join((*parts, text[at:]))


@cache
def _needles(value: str) -> tuple[str, ...]:
    """What is looked for: the key, and what no reading of escapes undoes, base64 and hex."""
    forms, read = {value: None}, value
    for _ in range(_LAYERS):  # a key may hold what looks like an escape, and is read as one where its text is
        read = _ESCAPE.sub(_character, read)
        forms |= {read: None}
    escaped = {value, quote(value, safe=""), orjson.dumps(value).decode()[1:-1].replace("/", "\\/")}
    for source in sorted(escaped):
        once = _cores(source.encode())
        twice = [core for inner in once for core in _cores(inner.encode())]
        for core in (*once, *twice):
            forms |= {core: None, core.replace("+", "-").replace("/", "_"): None}
    forms |= {value.encode().hex(): None, value.encode().hex().upper(): None}
    return tuple(form for form in forms if len(form) >= PIECE)


def _cores(data: bytes) -> list[str]:
    """What base64 of any text around `data` holds: its letters at each of three places, the mixed ends left off."""
    cores = []
    for before in range(3):
        coded = base64.b64encode(bytes(before) + data).decode()
        whole = (before + len(data)) * 8 // 6
        cores.append(coded[math.ceil(before * 8 / 6) : whole])
    return cores
