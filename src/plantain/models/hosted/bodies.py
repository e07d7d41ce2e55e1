"""A body that a provider sent, before anything is made of it: its JSON, and the error that it tells of."""

from __future__ import annotations

import json

import orjson

from plantain.models.hosted.answers import JsonObject


def nests_deeper(value: object, most: int) -> bool:
    """Whether lists and objects stand in each other deeper than any answer's; what walks them calls itself."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def load_json(content: str | bytes) -> object:
    """JSON, also with lone surrogates, which models can write and orjson rightly refuses; they become "?"."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        value = json.loads(text)
        return orjson.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def error_of(content: str) -> JsonObject:
    """The error object of a body, whatever it is wrapped in."""
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
    if "message" not in error and "detail" in error:
        return {**error, "message": str(error["detail"])}
    return error


def text_of(error: JsonObject, name: str) -> str:
    """A field of an error in words; "" where it has none."""
    value = error.get(name)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def kind_of(content: str) -> str:
    """What a body is that is not the JSON that was expected."""
    start = content.lstrip()[:200]
    if not start:
        return "an empty body"
    return "an HTML page" if start.startswith("<") else f"a body of {len(content)} characters"
