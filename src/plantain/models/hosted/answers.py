"""Read the text of a model's answer without guessing: one JSON object, or an instruction as plain text."""

from __future__ import annotations

import json
import re

JsonObject = dict[str, object]

LONGEST_ANSWER = 200_000
LONGEST_INSTRUCTION = 4_000
MOST_STARTS = 200
"""Opening braces at which a report is looked for in prose, so that hostile text costs little."""

_THOUGHT = re.compile(r"<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```[a-zA-Z]*\s*\n(.*?)\n?```\Z", re.DOTALL)


class Unreadable(ValueError):
    """An answer that is not in the form asked for. The message is one line, sent to the model that gave it."""


def without_thoughts(text: str) -> str:
    """Return an answer without `<think>` blocks and surrounding space.

    Raises:
        Unreadable: nothing is left, or it is longer than any report.
    """
    answer = _THOUGHT.sub("", text).strip()
    if not answer:
        raise Unreadable("the answer was empty")
    if len(answer) > LONGEST_ANSWER:
        raise Unreadable("the answer is far too long")
    return answer


def read_instruction(text: str) -> str:
    """Return the instruction of a writer's answer, without thoughts, code fence or quotation marks around it.

    Raises:
        Unreadable: nothing is left, or it is longer than an editor would follow.
    """
    answer = without_thoughts(text)
    if fenced := _FENCE.match(answer):
        answer = fenced.group(1).strip()
    quoted = len(answer) > 1 and (answer[0], answer[-1]) in (('"', '"'), ("“", "”"))
    if quoted and answer[0] not in answer[1:-1]:
        answer = answer[1:-1].strip()
    if not answer:
        raise Unreadable("the answer was empty; answer with the instruction alone")
    if len(answer) > LONGEST_INSTRUCTION:
        raise Unreadable(
            f"the answer has {len(answer)} characters; answer with an instruction of two to six sentences"
        )
    return answer


def read_object(text: str, marks: set[str]) -> JsonObject:
    """Return the one JSON object with one of these keys in a text: bare, fenced or with prose around it.

    Raises:
        Unreadable: none, several different ones, or one key with two values.
    """
    answer = without_thoughts(text)
    reports: list[JsonObject] = []
    decoder = json.JSONDecoder(object_pairs_hook=_one_value_per_key, parse_constant=_no_constant)
    at, starts = answer.find("{"), 0
    while at >= 0 and starts < MOST_STARTS:
        starts += 1
        try:
            value, end = decoder.raw_decode(answer, at)
        except Unreadable:
            raise
        except (ValueError, RecursionError):  # also a number of more digits than Python reads
            at = answer.find("{", at + 1)
            continue
        if isinstance(value, dict) and marks & value.keys() and value not in reports:
            reports.append(value)
        at = answer.find("{", end)
    if not reports:
        raise Unreadable("there was no complete JSON object with the report in the answer")
    if len(reports) > 1:
        raise Unreadable(f"there were {len(reports)} different reports in the answer; give one")
    return reports[0]


def object_schema(properties: JsonObject) -> JsonObject:
    """Return the JSON schema of an object, in the subset that both providers' strict modes take."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_value_per_key(pairs: list[tuple[str, object]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise Unreadable(f"{key!r} was answered twice and differently")
        found[key] = value
    return found


def _no_constant(name: str) -> float:
    raise Unreadable(f"{name} is not JSON")
