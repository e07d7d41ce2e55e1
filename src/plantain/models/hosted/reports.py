"""A judge's report as JSON: the schema that asks for it, made from the rubric, and the reading of an answer.

A report is whole or `Unreadable`: there are no default verdicts.
"""

from __future__ import annotations

import math

from plantain.models.hosted.answers import JsonObject, Unreadable, object_schema, read_object
from plantain.records import CriterionResult, Direction, Observations, Rubric, RubricCriterion

_TEXT: JsonObject = {"type": "string"}
_FLAG: JsonObject = {"type": "boolean"}


def report_schema(rubric: Rubric) -> JsonObject:
    """Return the JSON schema of a judge's report.

    Evidence comes before the decision, so that a model that writes from left to right looks first.
    """
    properties: JsonObject = {"differences": _TEXT} if rubric.asked.differences else {}
    for c in rubric.criteria:
        properties[c.key or c.name] = _FLAG if c.key else object_schema(_criterion_schema(c, rubric))
    properties |= dict.fromkeys(rubric.facts, _FLAG)
    if rubric.asked.opinion:
        properties |= {"reason": _TEXT, "qualified": _FLAG}
    return object_schema(properties)


def _criterion_schema(criterion: RubricCriterion, rubric: Rubric) -> JsonObject:
    names: JsonObject = {"type": "array", "items": {"type": "string", "enum": list(rubric.codes)}}
    codes: JsonObject = {"codes": names} if rubric.codes else {}
    if criterion.scale is None:
        return {"evidence": _TEXT, **codes, "passed": _FLAG, "confidence": {"type": "number"}}
    return {"reason": _TEXT, **codes, "score": {"type": "integer"}}


def read_report(text: str, rubric: Rubric, direction: Direction = Direction.ADD) -> Observations:
    """Read a judge's report from its answer: bare, fenced or with prose around it.

    Required are `passed` of every criterion without a scale and every fact (true or false, also as a string in any
    case), and `score` of every other criterion: a whole number on its scale. `confidence` outside [0, 1] is dropped, a
    missing `qualified` is None, an unknown code is kept in the evidence. A criterion with a key is a bare true or
    false; one that is answered by a fact passes for a removal if the fact is false.

    Raises:
        Unreadable: no report, several different ones, a key with two values, or something required missing or wrong.
    """
    found = read_object(text, {c.key or c.name for c in rubric.criteria} | set(rubric.facts))
    problems: list[str] = []
    criteria: dict[str, CriterionResult] = {}
    for criterion in rubric.criteria:
        value = found.get(criterion.name)
        if criterion.key:
            answer = _required_flag(found, criterion.key, "", problems)
            undone = criterion.key in rubric.facts and direction is Direction.REMOVE
            criteria[criterion.name] = CriterionResult(answer != undone)
        elif not isinstance(value, dict):
            problems.append(f"{criterion.name} {'is missing' if value is None else 'is not an object'}")
        elif criterion.scale is None:
            criteria[criterion.name] = _decided(value, criterion, rubric, problems)
        else:
            criteria[criterion.name] = _scored(value, criterion, rubric, problems)
    facts = {name: _required_flag(found, name, "", problems) for name in rubric.facts}
    if problems:
        raise Unreadable("; ".join(dict.fromkeys(problems)))
    opinion = rubric.asked.opinion
    words = [f"{c.short or c.name}: {criteria[c.name].evidence}" for c in rubric.criteria]
    return Observations(
        criteria,
        facts,
        _flag(found.get("qualified")) if opinion else None,
        _text(found.get("reason")) if opinion else " ".join(words),
        _text(found.get("differences")) if rubric.asked.differences else "",
    )


def _decided(
    value: JsonObject, criterion: RubricCriterion, rubric: Rubric, problems: list[str]
) -> CriterionResult:
    codes, evidence = _codes(value, "evidence", rubric)
    passed = _required_flag(value, "passed", f"{criterion.name}.", problems)
    sure = value.get("confidence")
    number = isinstance(sure, (int, float)) and not isinstance(sure, bool) and math.isfinite(sure)
    confidence = float(sure) if number and 0.0 <= sure <= 1.0 else None  # type: ignore[arg-type, operator]
    return CriterionResult(passed, confidence, codes, evidence)


def _scored(
    value: JsonObject, criterion: RubricCriterion, rubric: Rubric, problems: list[str]
) -> CriterionResult:
    least, most = criterion.scale or (0, 1)
    score, others = value.get("score"), value.keys() - {"reason", "codes", "score"}
    codes, evidence = _codes(value, "reason", rubric)
    if others:  # such as "max": 5
        problems.append(f"{criterion.name} has unexpected keys: {', '.join(sorted(others))[:40]}")
    if isinstance(score, bool) or not isinstance(score, int) or not least <= score <= most:
        problems.append(f"{criterion.name}.score must be a whole number from {least} to {most}")
        return CriterionResult(None)
    return CriterionResult(rubric.passes(criterion.name, score), None, codes, evidence, float(score))


def _required_flag(found: JsonObject, key: str, where: str, problems: list[str]) -> bool:
    value = _flag(found.get(key))
    if value is None:
        problems.append(f"{where}{key} {'is missing' if found.get(key) is None else 'must be true or false'}")
    return bool(value)


def _flag(value: object) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().casefold())
    return value if isinstance(value, bool) else None


def _codes(value: JsonObject, words: str, rubric: Rubric) -> tuple[tuple[str, ...], str]:
    """Return the rubric's codes that are named, and the text of `words`, with unknown codes appended."""
    stated = value.get("codes")
    given = [stated] if isinstance(stated, str) else stated if isinstance(stated, list) else []
    names = [item.strip().casefold() for item in given if isinstance(item, str) and item.strip()]
    unknown = ", ".join(name for name in names if name not in rubric.codes)
    evidence = _text(value.get(words))
    codes = tuple(dict.fromkeys(name for name in names if name in rubric.codes))
    return codes, f"{evidence} [other codes: {unknown}]".strip() if unknown else evidence


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
