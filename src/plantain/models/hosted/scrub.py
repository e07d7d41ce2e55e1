"""A provider's answer as the journal keeps it: without picture bytes or other long opaque strings."""

from __future__ import annotations

from plantain.models.hosted.answers import JsonObject

OPAQUE = 1_000
"""A string without a space that is longer than this is data, not words."""

LONGEST_TEXT = 20_000

MOST = 10**9
"""A count beyond this is none: no model reads so much in a call, and its price would end a run."""

SHORT = -(2**63), 2**64
"""Whole numbers from the first on and below the second can be kept as numbers."""


def scrub(value: object) -> object:
    """A JSON value with long strings shortened and long numbers as text, at any depth; it holds no key any more."""
    if isinstance(value, dict):
        return {str(name): scrub(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [scrub(inner) for inner in value]
    if isinstance(value, int) and not SHORT[0] <= value < SHORT[1]:
        return str(value)
    if not isinstance(value, str):
        return value
    if len(value) > OPAQUE and " " not in value[:OPAQUE]:
        return f"({len(value)} characters of data)"
    return (
        value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]} (cut from {len(value)} characters)"
    )


def objects(value: object) -> list[JsonObject]:
    """The objects of a list of a body; none where it is no list."""
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def child(body: JsonObject, name: str) -> JsonObject:
    """An object inside a body; empty where it is missing or of another type."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def text(body: JsonObject, name: str) -> str:
    """A string of a body; "" where it is missing or of another type."""
    value = body.get(name)
    return value if isinstance(value, str) else ""


def count(body: JsonObject, name: str) -> int | None:
    """A count of a body; None where it is missing, negative, beyond all that can be, or of another type.

    Gateways write whole numbers as 350.0 or, as protocol buffers do for long ones, as "350".
    """
    value = body.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST else None


def add_counts(*counts: int | None) -> int | None:
    """The sum of those that are known; None where none is."""
    known = [n for n in counts if n is not None]
    return sum(known) if known else None


def read_and_written(
    read: int | None,
    written: int | None,
    total: int | None,
    *,
    least: int | None,
    cached: int | None,
    answered: bool,
) -> tuple[int | None, int | None]:
    """All tokens that were read and all that were written, where an answer leaves one out or counts it otherwise.

    Args:
        read, written: by the parts that the answer names.
        total: of both, by the provider.
        least: the part of what was written that is no thinking: a total that has no room for it is no total.
        cached: read from a cache; where it is more than what was read, a server counts it beside that.
        answered: whether words or a picture came. Then something was read and written, and a zero says nothing; without
            an answer, what is not told was nothing.
    """
    if read is not None and cached is not None and cached > read:
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
