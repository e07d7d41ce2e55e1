"""Records to JSON and back, exactly: orjson writes, pydantic reads and checks."""

from __future__ import annotations

import dataclasses
from functools import cache

import orjson
from pydantic import TypeAdapter

from plantain.journal.rows import JsonValue
from plantain.records import Observations, SourceImage, Usage

_OPTIONS = orjson.OPT_NON_STR_KEYS
"""Keys keep their order: a replayed history must read exactly as it did the first time."""


@cache
def _images() -> TypeAdapter[SourceImage]:
    return TypeAdapter(SourceImage)


@cache
def _usages() -> TypeAdapter[Usage]:
    return TypeAdapter(Usage)


@cache
def _observations() -> TypeAdapter[Observations]:
    return TypeAdapter(Observations)


def clean_text(text: str) -> str:
    """`text` without lone surrogates, which providers' JSON can smuggle in and UTF-8 cannot hold."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(inner) for inner in value]
    return value


def to_json(record: SourceImage | Usage | Observations | dict[str, JsonValue]) -> str:
    """A record as compact JSON. Numbers must be finite."""
    try:
        return orjson.dumps(record, option=_OPTIONS).decode()
    except orjson.JSONEncodeError:
        plain = record if isinstance(record, dict) else dataclasses.asdict(record)
        return orjson.dumps(_clean(plain), option=_OPTIONS).decode()


def image_from_json(text: str) -> SourceImage:
    return _images().validate_json(text)


def usage_from_json(text: str) -> Usage:
    return _usages().validate_json(text)


def observations_from_json(text: str) -> Observations:
    return _observations().validate_json(text)


def dict_from_json(text: str) -> dict[str, JsonValue]:
    """A JSON object; anything else raises ValueError."""
    value: JsonValue = orjson.loads(text)
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value
