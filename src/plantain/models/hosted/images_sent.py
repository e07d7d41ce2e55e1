"""Images in the bytes of a request, found for the clearance of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import orjson
import pybase64

from plantain.privacy.permission import sha256_of
from plantain.records import Outgoing

SHORTEST = 80
"""Characters of base64 below which a text is not an image: the smallest PNG file needs 92. Hashes have 64."""

_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")
_URL_SAFE = str.maketrans("-_", "+/")

cleared_file: ContextVar[bool] = ContextVar("cleared_file", default=False)
"""Set while a cleared request file is uploaded: its pieces may contain half an image."""


@contextmanager
def sending_cleared_file() -> Iterator[None]:
    """Skip the check of images in requests inside the block: they send a file that `clear_file` checked."""
    token = cleared_file.set(True)
    try:
        yield
    finally:
        cleared_file.reset(token)


def images_in(content_type: str, body: bytes) -> set[Outgoing]:
    """Find every image in a request's body: base64 in JSON, files of a form. An unreadable body counts as an image."""
    kind, _, rest = content_type.partition(";")
    if not body:
        return set()
    if kind.strip().lower() == "application/json":
        found = _in_json(body)
    elif kind.strip().lower() == "multipart/form-data" and "boundary=" in rest:
        boundary = rest.partition("boundary=")[2].split(";")[0].strip().strip('"')
        found = _in_form(body, boundary.encode())
    else:
        found = (sha256_of(body),)
    return {Outgoing(sha256) for sha256 in found}


def images_in_lines(file: Path) -> set[Outgoing]:
    """Find every image in a batch job's request file, each with the id of its call, read from the line's key."""
    found: set[Outgoing] = set()
    with file.open("rb") as lines:
        for line in lines:
            request = orjson.loads(line)
            key = str(request.get("key") or request.get("custom_id") or "").partition("-")[0]
            call = int(key) if key.isdecimal() else None
            found |= {Outgoing(sha256, call) for sha256 in _in_value(request)}
    return found


def _in_json(body: bytes) -> Iterable[str]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return (sha256_of(body),)
    return _in_value(value)


def _in_value(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting += table.values()
            case list() as values:
                waiting += values
            case str() as text:
                yield from _in_text(text)


def _in_text(text: str) -> Iterable[str]:
    """Return the hash of the image that a text is, if it is one: anything long that is base64 from start to end."""
    found = _DATA_URL.match(text)
    payload = text[found.end() :] if found else text
    if len(payload) < SHORTEST:
        return ()
    try:
        return (sha256_of(pybase64.b64decode(payload.translate(_URL_SAFE), validate=True)),)
    except ValueError:
        return (sha256_of(payload.encode()),) if found else ()


def _in_form(body: bytes, boundary: bytes) -> Iterator[str]:
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary)[1:]:
        head, separator, payload = part.partition(b"\r\n\r\n")
        if not separator:
            continue
        if b"filename=" not in head.lower():
            yield from _in_text(payload.decode("utf-8", "replace"))
        elif payload:
            yield sha256_of(payload)
