"""What a hosted model answered, read without guessing: a judge's report as JSON, an instruction as plain text.

Either the answer says every decisive thing plainly, or it is `Unreadable` with a sentence that the model can be asked
again with. There are no default verdicts.
"""

from __future__ import annotations

import json
import math
import re

from plantain.records import Criterion, CriterionResult, FailureCode, Observations, Rubric

JsonObject = dict[str, object]

LONGEST_ANSWER = 200_000
LONGEST_INSTRUCTION = 4_000
MOST_STARTS = 200
"""Opening braces at which a report is looked for in prose, so that hostile text costs little."""

_THOUGHT = re.compile(r"<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```[a-zA-Z]*\s*\n(.*?)\n?```\Z", re.DOTALL)


class Unreadable(ValueError):
    """An answer that does not say what was asked. The message is one line, meant for the model that gave it."""


def report_schema(rubric: Rubric) -> JsonObject:
    """The JSON schema of a judge's report, in the subset that both providers' strict modes take.

    Evidence comes before the decision in every criterion, so that a model that writes from left to right looks first.
    """
    criterion: JsonObject = {
        "type": "object",
        "properties": {
            "evidence": {"type": "string"},
            "codes": {
                "type": "array",
                "items": {"type": "string", "enum": [code.value for code in FailureCode]},
            },
            "passed": {"type": "boolean"},
            "confidence": {"type": "number"},
        },
        "required": ["evidence", "codes", "passed", "confidence"],
        "additionalProperties": False,
    }
    properties: JsonObject = {c.name.value: criterion for c in rubric.criteria}
    properties |= {
        "has_disease": {"type": "boolean"},
        "other_disease": {"type": "boolean"},
        "reason": {"type": "string"},
        "qualified": {"type": "boolean"},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_report(text: str, rubric: Rubric) -> Observations:
    """A judge's report from its answer: bare, fenced or with prose around it.

    Decisive are `passed` of every criterion, `has_disease` and `other_disease`: each must be a JSON boolean or the
    string "true" or "false" in any case. Not decisive, and kept only where they are plain: `confidence` (a number in
    [0, 1], else none), `qualified` (else no opinion), `codes` (an unknown one is kept in the evidence), texts.

    Raises:
        Unreadable: no report, several different ones, a key twice, or something decisive missing or of a wrong type.
    """
    found = read_object(text, {c.name.value for c in rubric.criteria} | {"has_disease", "other_disease"})
    problems: list[str] = []
    criteria: dict[Criterion, CriterionResult] = {}
    for criterion in rubric.criteria:
        result = _criterion(found.get(criterion.name.value), criterion.name.value, problems)
        if result is not None:
            criteria[criterion.name] = result
    has_disease = _flag(found, "has_disease", "", problems)
    other_disease = _flag(found, "other_disease", "", problems)
    if problems or has_disease is None or other_disease is None:
        raise Unreadable("; ".join(problems))
    opinion = _plain_flag(found.get("qualified"))
    return Observations(criteria, has_disease, other_disease, opinion, _text(found.get("reason")))


def read_instruction(text: str) -> str:
    """An instruction from a writer's answer, without thoughts, code fence or quotation marks around it.

    Raises:
        Unreadable: nothing is left, or it is longer than an editor would follow.
    """
    said = _THOUGHT.sub("", text).strip()
    fenced = _FENCE.match(said)
    if fenced:
        said = fenced.group(1).strip()
    if len(said) > 1 and (said[0], said[-1]) in (('"', '"'), ("“", "”")) and said[0] not in said[1:-1]:
        said = said[1:-1].strip()
    if not said:
        raise Unreadable("the answer was empty; answer with the instruction alone")
    if len(said) > LONGEST_INSTRUCTION:
        raise Unreadable(
            f"the answer has {len(said)} characters; answer with an instruction of two to six sentences"
        )
    return said


def read_object(text: str, marks: set[str]) -> JsonObject:
    """The one JSON object with one of these keys in a text: bare, fenced or with prose around it.

    Raises:
        Unreadable: none, several different ones, or a key twice.
    """
    said = _THOUGHT.sub("", text).strip()
    if not said:
        raise Unreadable("the answer was empty; answer with the JSON object alone")
    if len(said) > LONGEST_ANSWER:
        raise Unreadable("the answer is far too long; answer with the JSON object alone")
    reports: list[JsonObject] = []
    decoder = json.JSONDecoder(object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
    at, starts = said.find("{"), 0
    while at >= 0 and starts < MOST_STARTS:
        starts += 1
        try:
            value, end = decoder.raw_decode(said, at)
        except Unreadable:
            raise
        except (ValueError, RecursionError):  # also a number of more digits than Python reads
            at = said.find("{", at + 1)
            continue
        if isinstance(value, dict) and marks & value.keys() and value not in reports:
            reports.append(value)
        at = said.find("{", end)
    if not reports:
        raise Unreadable("there was no complete JSON object with the report in the answer")
    if len(reports) > 1:
        raise Unreadable(f"there were {len(reports)} different reports in the answer; give one")
    return reports[0]


def _no_key_twice(pairs: list[tuple[str, object]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise Unreadable(f"{key!r} was answered twice and differently")
        found[key] = value
    return found


def _no_constant(name: str) -> float:
    raise Unreadable(f"{name} is not JSON")


def _criterion(value: object, name: str, problems: list[str]) -> CriterionResult | None:
    if not isinstance(value, dict):
        said = "is missing" if value is None else "is not an object"
        problems.append(f"{name} {said}")
        return None
    passed = _flag(value, "passed", f"{name}.", problems)
    if passed is None:
        return None
    codes, unknown = _codes(value.get("codes"))
    evidence = _text(value.get("evidence"))
    if unknown:
        evidence = f"{evidence} [other codes: {', '.join(unknown)}]".strip()
    return CriterionResult(passed, _confidence(value.get("confidence")), codes, evidence)


def _flag(found: JsonObject, key: str, where: str, problems: list[str]) -> bool | None:
    value = _plain_flag(found.get(key))
    if value is None:
        said = "is missing" if found.get(key) is None else "must be true or false"
        problems.append(f"{where}{key} {said}")
    return value


def _plain_flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().casefold())
    return None


def _confidence(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value) if 0.0 <= value <= 1.0 else None


def _codes(value: object) -> tuple[tuple[FailureCode, ...], list[str]]:
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    known = {code.value: code for code in FailureCode}
    names = [item.strip().casefold() for item in given if isinstance(item, str) and item.strip()]
    codes = tuple(dict.fromkeys(known[name] for name in names if name in known))
    return codes, [name for name in names if name not in known]


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
