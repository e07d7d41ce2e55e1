"""A provider's JSON body: decoding it, reading typed fields, and the form in which the journal keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import orjson

from plantain.models.hosted.answers import JsonObject

OPAQUE = 1_000
"""A string without a space that is longer than this is data, not words."""

LONGEST_TEXT = 20_000

MOST = 10**9
"""No call has a count beyond this; its price would end a run."""


def load_json(content: str | bytes) -> object:
    """Decode JSON; lone surrogates, which models can write and orjson refuses, become "?"."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        value = json.loads(text)
        return orjson.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def error_of(content: str) -> JsonObject:
    """Return the error object of a body, whatever it is wrapped in; {} if there is none."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return {}
    error = body.get("error", body)
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return {}
    return (
        error if "message" in error or "detail" not in error else {**error, "message": str(error["detail"])}
    )


def kind_of(content: str) -> str:
    """Describe a body that is not the expected JSON."""
    start = content.lstrip()[:200]
    if not start:
        return "an empty body"
    return "an HTML page" if start.startswith("<") else f"a body of {len(content)} characters"


def scrub(value: object) -> object:
    """Return a JSON value as the journal keeps it: without long strings and numbers beyond 64 bits."""
    if isinstance(value, dict):
        return {str(name): scrub(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [scrub(inner) for inner in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if not isinstance(value, str) or len(value) <= OPAQUE:
        return value
    if " " not in value[:OPAQUE]:
        return f"({len(value)} characters of data)"
    return (
        value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]} (cut from {len(value)} characters)"
    )


def objects(value: object) -> list[JsonObject]:
    """Return the objects of a list; [] if it is not a list."""
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def child(body: JsonObject, name: str) -> JsonObject:
    """Return an object inside a body; {} if it is missing or of another type."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def text(body: JsonObject, name: str) -> str:
    """Return a string of a body; "" if it is missing or of another type."""
    value = body.get(name)
    return value if isinstance(value, str) else ""


def count(body: JsonObject, name: str) -> int | None:
    """Return a count of a body; None if it is missing, negative, beyond `MOST`, or of another type.

    Gateways write whole numbers as 350.0 or, as protocol buffers do for long ones, as "350".
    """
    value = body.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST else None


def stated(fields: Mapping[str, object]) -> JsonObject:
    """Return the fields of a request that are set."""
    return {name: value for name, value in fields.items() if value not in (None, "")}


def add_counts(*counts: int | None) -> int | None:
    """Return the sum of the known counts; None if none is known."""
    known = [n for n in counts if n is not None]
    return sum(known) if known else None


def whole_usage(
    read: int | None,
    written: int | None,
    total: int | None,
    *,
    least: int | None,
    cached: int | None,
    answered: bool,
) -> tuple[int | None, int | None]:
    """Return all tokens read and written, where an answer omits one or counts it in another way.

    Args:
        read, written, total: as the answer states them.
        least: the part of `written` that is not thinking: a total without room for it is wrong.
        cached: read from a cache; more than `read` if the server counts it separately, as the total shows; else
            `read` is unknown.
        answered: words or an image came. Then a zero means unknown; without an answer, unknown means zero.
    """
    if read is not None and cached is not None and cached > read:
        if total != read + cached + (written or 0):
            return None, written or None
        read += cached
    if answered:
        read, written = read or None, written or None
    if read is None and written is not None and total is not None and total > written:
        read = total - written
    if read is not None and total is not None and total > read and total - read >= (least or 0):
        written = total - read
    if written is None and read is not None and not answered:
        written = 0
    return read, written
