"""Echoes of a key as servers, gateways and proxies write them, and a search for keys that shares no code with ours."""

from __future__ import annotations

import base64
import codecs
import html
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote

KEYS = (
    "sk-fake-0123456789abcdef-plantain",
    "AIzaSyD9tK2_4fQvX-w8b1LmN0pQrStUvWxYz12",
    "Zm9/vYm+FyQ2Jhe/nF1eA==7Kd",
    'p"a\\ss<w>ord&1234%5678',
)
"""As OpenAI's, as Google's, with letters that base64 has and JSON or URLs escape, with all that is ever escaped."""


def _json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda k: k,
    "json": _json,
    "json, slashes": lambda k: _json(k).replace("/", "\\/"),
    "percent": lambda k: quote(k, safe=""),
    "percent, lower case": lambda k: re.sub(r"%..", lambda m: m[0].lower(), quote(k, safe="")),
    "base64": _b64,
    "base64, url": lambda k: base64.urlsafe_b64encode(k.encode()).decode(),
    "base64 of bearer": lambda k: _b64(f"Bearer {k}"),
    "base64 of user": lambda k: _b64(f"u:{k}"),
    "base64 of a header, one": lambda k: _b64(f"x{k} and more"),
    "base64 of a header, two": lambda k: _b64(f"xy{k}\r\nHost: a"),
    "pieces of 8": lambda k: '", "'.join(re.findall(r"(?s).{8,15}(?=.{8})|.{8,}", k)),
    "pieces in objects": lambda k: '"}, {"type": "text", "text": "'.join((k[:9], k[9:17], k[17:])),
    "pieces on lines": lambda k: "\n   ".join((k[:12], k[12:])),
    "twice": lambda k: f"{k}{k}",
}
"""Promised forms: as it is, JSON-escaped, URL-encoded, in base64, and split over chunks."""

PLACES: dict[str, Callable[[str], str]] = {
    "alone": lambda e: e,
    "sentence": lambda e: f"Incorrect API key provided: {e}. You can find yours at https://example.org/keys.",
    "address": lambda e: f"https://example.org/v1/models?key={e}&alt=json",
}


def corpus() -> Iterator[tuple[str, str, str]]:
    """Yield (name, key, text): every key in every encoding in every place, 180 in all."""
    for key in KEYS:
        for coding, encode in ENCODINGS.items():
            for place, put in PLACES.items():
                yield f"{key[:3]} {coding} {place}", key, put(encode(key))


def shows(text: str, key: str) -> bool:
    """Return True if a reader with the usual decoders finds the key: each up to four deep, then joined pieces."""
    seen, front = {text}, {text}
    for _ in range(4):
        front = {new for old in front for new in _decoded(old)} - seen
        seen |= front
    strip = re.compile(r'["\s\[\]{},]')
    bare = {strip.sub("", one).replace("type:texttext:", "") for one in seen}
    forms = (key, key.encode().hex())
    return any(form in one for form in forms for one in seen) or any(
        strip.sub("", key) in one for one in bare
    )


def _decoded(text: str) -> Iterator[str]:
    yield unquote(text)
    yield html.unescape(text)
    yield re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", _unescaped, text, flags=re.DOTALL)
    for run in re.findall(r"[A-Za-z0-9+/_\n-]{12,}", text):
        letters = run.replace("\n", "").replace("-", "+").replace("_", "/")
        for start in range(4):
            cut = letters[start:]
            yield base64.b64decode(cut + "A" * (-len(cut) % 4)).decode("latin-1")


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return codecs.decode(escape[0], "unicode_escape") if code[0] in "ux" and len(code) > 1 else code
