"""Records to JSON and back, exactly: orjson writes, pydantic reads and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter

from plantain.journal.rows import JsonValue

T = TypeVar("T")

_OPTIONS = orjson.OPT_NON_STR_KEYS
"""Keys keep their order: a replayed history must read exactly as it did the first time."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def clean_text(text: str) -> str:
    """Replace lone surrogates, which providers' JSON can contain and UTF-8 cannot, by "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def dumps(record: object) -> bytes:
    """Return a record, or a collection of records, as compact JSON."""
    return orjson.dumps(record, option=_OPTIONS)


def to_json(record: object) -> str:
    """Return a record as compact JSON, its texts cleaned. Numbers must be finite."""
    try:
        return dumps(record).decode()
    except orjson.JSONEncodeError:
        return dumps(_clean(record)).decode()


def from_json(kind: type[T], text: str) -> T:
    """Return the record of that class, every field checked. Raises ValueError."""
    record: T = _adapter(kind).validate_json(text)  # type: ignore[arg-type]  # a class is hashable
    return record


def dict_from_json(text: str) -> dict[str, JsonValue]:
    """Return a JSON object; raise ValueError for anything else."""
    value: JsonValue = orjson.loads(text)
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def _clean(value: Any) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: _clean(getattr(value, field.name)) for field in fields(value)}
    return value
