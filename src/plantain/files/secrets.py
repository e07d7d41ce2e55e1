"""API keys: read them from the environment, and remove them from all text that enters or leaves the program.

Text is redacted where it enters (a provider's body, as soon as it is decoded) and where it leaves (the journal, pages,
the terminal): a key as it is, URL-encoded, JSON-escaped, in base64, or split over streamed chunks. Raw bytes are never
changed.
"""

from __future__ import annotations

import base64
import json
import logging
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TextIO, cast
from urllib.parse import quote, unquote

import orjson

from plantain.records import InputError

_HOLDS_A_KEY = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD)(_?\d+)?\Z|API_KEY|BEARER_TOKEN|SECRET|PASSWORD", re.IGNORECASE
)
"""Variables of the environment that hold keys by their name."""

_PROXY = re.compile(r"_PROXY\Z", re.IGNORECASE)
"""Variables that hold the address of a proxy, often with a user's name and password."""


class Secret:
    """An API key that is never printed, logged or pickled; only `reveal` returns `value`, the key in clear text."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        hide(value)

    def reveal(self) -> str:
        """Return the key in clear text; use it only in requests."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a key is never written to a file")


class MissingKey(InputError):
    """Raised if no API key is set, or only a placeholder; only calls to a provider need a key."""


def _redact_logs() -> None:
    """Remove every key from log records before any handler sees them: SDKs log headers and bodies as they are."""
    made = logging.getLogRecordFactory()
    if made is not _record:
        _factories.append(made)
        logging.setLogRecordFactory(_record)


def _record(*args: object, **named: object) -> logging.LogRecord:
    record = _factories[-1](*args, **named)
    record.msg, record.args = redacted(record.getMessage()), ()
    return record


_factories: list[Callable[..., logging.LogRecord]] = []


DISGUISES = re.compile(
    r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, which could have a terminal do something, and those that turn the direction of text."""


def harmless(text: str) -> str:
    """Escape control characters, so that a terminal shows instead of executes them; JSON keeps its meaning."""
    return DISGUISES.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x7F else f"\\u{code:04x}"


class RedactedStream:
    """A text stream that redacts keys and escapes control characters.

    Args:
        stream: the stream that it writes to.
        commands: True to keep control characters, for a console that removes harmful ones itself.
    """

    def __init__(self, stream: TextIO, *, commands: bool = False) -> None:
        self.redacts, self._commands = stream, commands

    def write(self, text: str) -> int:
        shown = redacted(text)
        self.redacts.write(shown if self._commands else harmless(shown))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.redacts, name)


def redact_terminal() -> None:
    """Redact all known keys in stdout and stderr, including tracebacks and keys in the environment."""
    hide_environment()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, RedactedStream):
            setattr(sys, name, cast(TextIO, RedactedStream(stream)))


def hide_environment() -> None:
    """Redact, from now on, the keys and proxy passwords that environment variables contain."""
    for name, value in os.environ.items():
        if _HOLDS_A_KEY.search(name):
            hide(value.strip())
        elif _PROXY.search(name) and "@" in value:
            # Sent to a proxy as base64 of name and password together.
            written = value.strip().rpartition("@")[0].rpartition("://")[2]
            for both in {written, unquote(written)}:
                hide(both, whatever=True)
                hide(both.partition(":")[2])


def key_from_environment(
    names: tuple[str, ...], provider: str, *, near: bool = False, later: bool = False
) -> Secret:
    """Return the key in the first of these environment variables that is set.

    Args:
        names: names of variables, the usual one first.
        provider: the provider's name in messages.
        near: True if the address is this machine's or on the premises, where any word may be the key.
        later: True if no model is called yet: a missing key, or a placeholder, is returned as an empty key.

    Raises:
        MissingKey: not `later`, and none is set, or it is a placeholder and the address is not `near`.
    """
    for name in names:
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        if is_dummy(value) and not near:
            if later:
                return Secret("")
            raise MissingKey(
                f"{provider}: {name} holds a placeholder, too short or too plain for a key; such a word is taken "
                "only by servers on this machine or with on_premises = true"
            )
        key = Secret(value)
        _redact_logs()
        return key
    if later:
        return Secret("")
    raise MissingKey(
        f"{provider}: no key; set the environment variable {names[0]}"
        + (f" (or {' or '.join(names[1:])})" if len(names) > 1 else "")
    )


def environment_without_keys(named: Collection[str] = ()) -> dict[str, str]:
    """Return the environment for another program: without keys, except the variables that its settings name.

    Proxy addresses are passed unchanged, since the program may need them to reach a server.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name in named or _PROXY.search(name) or not (_HOLDS_A_KEY.search(name) or redacted(value) != value)
    }


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
    """Return True if a key is a placeholder: "x", "none", "EMPTY", "not-needed", "0000000000000000".

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
    """Redact a key in all later output; a placeholder (`is_dummy`) only with `whatever` and 8 characters or more."""
    if not is_dummy(value) or (whatever and len(value) >= _PIECE):
        _keys.setdefault(value, _forms(value))


def keys_hidden() -> bool:
    """Return True if any key is being redacted."""
    return bool(_keys)


def redacted(text: str) -> str:
    """Replace each known key in a text by "[key]"; JSON stays valid."""
    return _without(text, _found(text)) if _keys else text


def redacted_json(value: object) -> object:
    """Remove keys from a decoded JSON value, also those split over neighbouring strings.

    The same object is returned if it contains none.
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
    """Remove keys from a line of JSON Lines, e.g. of a batch job's answers; unchanged if it contains none."""
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
