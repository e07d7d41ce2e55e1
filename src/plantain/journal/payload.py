"""Records to JSON and back, exactly: orjson writes, pydantic reads and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache

import orjson
from pydantic import TypeAdapter

from plantain.journal.rows import JsonValue
from plantain.records import CriterionResult, Observations, SourceImage, Usage, Verdict

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
"""Keys keep their order: a replayed history must read exactly as it did the first time."""

_REPORT = frozenset({"criteria", "opinion", "reason", "differences"})
"""Keys of a report that are not facts, which stand beside them."""


@cache
def _images() -> TypeAdapter[SourceImage]:
    return TypeAdapter(SourceImage)


@cache
def _usages() -> TypeAdapter[Usage]:
    return TypeAdapter(Usage)


@cache
def _results() -> TypeAdapter[dict[str, CriterionResult]]:
    return TypeAdapter(dict[str, CriterionResult])


@cache
def _verdicts() -> TypeAdapter[Verdict]:
    return TypeAdapter(Verdict)


def clean_text(text: str) -> str:
    """`text` without lone surrogates, which providers' JSON can smuggle in and UTF-8 cannot hold."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(inner) for inner in value]
    return _clean(plain(value)) if is_dataclass(value) else value


def plain(record: object) -> dict[str, object]:
    """A record's fields by name. A report's facts stand beside its criteria, and what no rubric of old had is left out
    where it is empty, so that what a run of the first edition stored and hashed stays what it was.

    Raises TypeError for anything that is no record.
    """
    if not is_dataclass(record) or isinstance(record, type):
        raise TypeError(f"{type(record).__name__} is no record")
    row = {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(record, CriterionResult) and record.value is None:
        del row["value"]
    if isinstance(record, Usage) and not record.asks:
        del row["asks"]
    if isinstance(record, Observations):
        criteria, facts, differences = row.pop("criteria"), row.pop("facts"), row.pop("differences")
        row = {"criteria": criteria, **facts, **row}
        if differences:
            row["differences"] = differences
    return row


def dumps(record: object) -> bytes:
    """A record, or what holds records, as compact JSON."""
    return orjson.dumps(record, default=plain, option=_OPTIONS)


def to_json(record: SourceImage | Usage | Observations | dict[str, JsonValue]) -> str:
    """A record as compact JSON. Numbers must be finite."""
    try:
        return dumps(record).decode()
    except orjson.JSONEncodeError:
        return orjson.dumps(_clean(record), option=_OPTIONS).decode()


def image_from_json(text: str) -> SourceImage:
    return _images().validate_json(text)


def usage_from_json(text: str) -> Usage:
    return _usages().validate_json(text)


def observations_from_json(text: str) -> Observations:
    return observations_of(dict_from_json(text))


def observations_of(row: Mapping[str, object]) -> Observations:
    """The report of `plain`. Raises ValueError for what is none."""
    facts = {name: value for name, value in row.items() if name not in _REPORT}
    opinion, texts = row.get("opinion"), (row.get("reason", ""), row.get("differences", ""))
    if not all(isinstance(value, bool) for value in (*facts.values(), opinion is None or opinion)):
        raise ValueError("a report's facts and opinion are true or false")
    if "criteria" not in row or not all(isinstance(text, str) for text in texts):
        raise ValueError("a report has criteria, and its reason is text")
    criteria = _results().validate_python(row["criteria"])
    return Observations(criteria, facts, opinion, *texts)  # type: ignore[arg-type]  # checked above


def verdict_of(row: object) -> Verdict:
    """The verdict of `plain`. Raises ValueError for what is none."""
    if not isinstance(row, Mapping) or not isinstance(row.get("observations"), Mapping):
        raise ValueError("a verdict has observations")
    return _verdicts().validate_python({**row, "observations": observations_of(row["observations"])})


def dict_from_json(text: str) -> dict[str, JsonValue]:
    """A JSON object; anything else raises ValueError."""
    value: JsonValue = orjson.loads(text)
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value
