"""A judge's report: the JSON schema that asks for it, made from the rubric, and what an answer says of each criterion.

Either an answer says every decisive thing plainly, or it is `Unreadable`. There are no default verdicts. A number that
is missing or off its scale leaves its criterion unscored, where the others can stand without it.
"""

from __future__ import annotations

import math

import orjson

from plantain.models.hosted.answers import JsonObject, Unreadable, read_object
from plantain.models.hosted.scores.replies import other_scale, parse_scores
from plantain.models.hosted.scores.words import DIMENSIONS
from plantain.records import CriterionResult, Observations, Rubric, RubricCriterion


class Declined(Unreadable):
    """The judge says that it will not score this; asking again is not the way to change its mind."""


class Incomplete(Unreadable):
    """Some numbers could be read and others not.

    Attributes:
        report: what could be read, the rest unscored with its reason.
    """

    def __init__(self, message: str, report: Observations) -> None:
        super().__init__(message)
        self.report = report


def report_schema(rubric: Rubric) -> JsonObject:
    """The JSON schema of a judge's report, in the subset that both providers' strict modes take.

    What was seen comes before what it amounts to, so that a model that writes from left to right looks first.
    """
    properties: JsonObject = {"differences": _TEXT} if rubric.asked.differences else {}
    properties |= {c.name: _object(_criterion_schema(c, rubric)) for c in rubric.criteria}
    properties |= dict.fromkeys(rubric.facts, _FLAG)
    if rubric.asked.opinion:
        properties |= {"reason": _TEXT, "qualified": _FLAG}
    return _object(properties)


_TEXT: JsonObject = {"type": "string"}
_FLAG: JsonObject = {"type": "boolean"}


def _criterion_schema(criterion: RubricCriterion, rubric: Rubric) -> JsonObject:
    names: JsonObject = {"type": "array", "items": {"type": "string", "enum": list(rubric.codes)}}
    codes: JsonObject = {"codes": names} if rubric.codes else {}
    if criterion.scale is None:
        return {"evidence": _TEXT, **codes, "passed": _FLAG, "confidence": {"type": "number"}}
    return {"reason": _TEXT, **codes, "score": {"type": "integer"}}


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def write_report(report: Observations, rubric: Rubric) -> str:
    """A report as a judge would answer it, in the order of `report_schema`: what `read_report` reads as this report.

    What was not said (confidence, an opinion) is left out.

    Raises:
        ValueError: a criterion is unscored, which no answer can say.
    """
    answer: JsonObject = {"differences": report.differences} if rubric.asked.differences else {}
    for criterion in rubric.criteria:
        result = report.criteria.get(criterion.name)
        if result is None or result.passed is None:
            raise ValueError(f"{criterion.name} is unscored")
        codes: JsonObject = {"codes": list(result.codes)} if rubric.codes else {}
        if criterion.scale is not None:
            assert result.value is not None
            answer[criterion.name] = {"reason": result.evidence, **codes, "score": int(result.value)}
        else:
            sure: JsonObject = {} if result.confidence is None else {"confidence": result.confidence}
            answer[criterion.name] = {"evidence": result.evidence, **codes, "passed": result.passed, **sure}
    answer |= {name: report.facts[name] for name in rubric.facts}
    if rubric.asked.opinion:
        opinion: JsonObject = {} if report.opinion is None else {"qualified": report.opinion}
        answer |= {"reason": report.reason, **opinion}
    return orjson.dumps(answer).decode()


def read_report(text: str, rubric: Rubric) -> Observations:
    """A judge's report from its answer: bare, fenced or with prose around it.

    Decisive are `passed` of every criterion that passes or fails, and every fact: each must be a JSON boolean or the
    string "true" or "false" in any case. A number is a whole one on its scale; MedEBench's are also taken from words
    that plainly say them. Not decisive, and kept only where they are plain: `confidence` (a number in [0, 1], else
    none), `qualified` (else no opinion), `codes` (an unknown one is kept in the evidence), texts.

    Raises:
        Incomplete: all that is decisive is there, and some numbers are not.
        Declined: nothing was scored, and the judge says that it will not.
        Unreadable: no report, several different ones, a key twice, or something decisive missing or of a wrong type.
    """
    in_words = all(c.name in DIMENSIONS and c.scale == (0, 10) for c in rubric.criteria)
    try:
        found = read_object(text, {c.name for c in rubric.criteria} | set(rubric.facts))
    except Unreadable:
        if not in_words:
            raise
        found = {}
    problems: list[str] = []
    criteria: dict[str, CriterionResult] = {}
    for criterion in rubric.criteria:
        result = _criterion(found.get(criterion.name), criterion, rubric, problems)
        if result is not None:
            criteria[criterion.name] = result
    facts = {name: _flag(found, name, "", problems) for name in rubric.facts}
    if problems:
        raise Unreadable("; ".join(problems))
    other = other_scale(text) if in_words else ""
    if in_words and (other or any(result.passed is None for result in criteria.values())):
        as_asked = {} if other else {name: one for name, one in criteria.items() if one.passed is not None}
        criteria = _from_words(text, criteria, rubric) | as_asked
    report = Observations(
        criteria,
        {name: bool(fact) for name, fact in facts.items()},
        _plain_flag(found.get("qualified")) if rubric.asked.opinion else None,
        _reason(text, found, criteria, rubric),
        _text(found.get("differences")) if rubric.asked.differences else "",
    )
    _refuse_unscored(report)
    return report


def _refuse_unscored(report: Observations) -> None:
    missing = {name: result.evidence for name, result in report.criteria.items() if result.passed is None}
    if missing and set(missing.values()) == {"refusal"} and len(missing) == len(report.criteria):
        raise Declined("the judge declined to score this picture")
    if missing:
        raise Incomplete("; ".join(f"{name}: {why}" for name, why in missing.items()), report)


def _criterion(
    value: object, criterion: RubricCriterion, rubric: Rubric, problems: list[str]
) -> CriterionResult | None:
    """What an answer says of a criterion; None, and a problem, where something decisive is not said."""
    if criterion.scale is not None:
        return _number(value, criterion, rubric)
    if not isinstance(value, dict):
        problem = "is missing" if value is None else "is not an object"
        problems.append(f"{criterion.name} {problem}")
        return None
    passed = _flag(value, "passed", f"{criterion.name}.", problems)
    if passed is None:
        return None
    codes, evidence = _codes(value, "evidence", rubric)
    return CriterionResult(passed, _confidence(value.get("confidence")), codes, evidence)


def _number(value: object, criterion: RubricCriterion, rubric: Rubric) -> CriterionResult:
    least, most = criterion.scale or (0, 1)
    plain = isinstance(value, dict) and value.keys() <= {"reason", "codes", "score"}
    number = value.get("score") if isinstance(value, dict) and plain else None
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        problem = (
            "is missing"
            if number is None
            else f"is {str(number)[:40]}, no whole number from {least} to {most}"
        )
        return CriterionResult(None, evidence=f"score {problem}")
    assert isinstance(value, dict)
    codes, evidence = _codes(value, "reason", rubric)
    return CriterionResult(rubric.passes(criterion.name, number), None, codes, evidence, float(number))


def _from_words(
    text: str, criteria: dict[str, CriterionResult], rubric: Rubric
) -> dict[str, CriterionResult]:
    """The criteria by what the whole answer plainly says of each."""
    read: dict[str, CriterionResult] = {}
    scores = parse_scores(text)
    for name, result in criteria.items():
        value = scores[name].value
        if value is None:
            read[name] = CriterionResult(None, evidence=scores[name].reason)
        else:
            words = result.evidence if result.passed is not None else ""
            read[name] = CriterionResult(rubric.passes(name, value), None, (), words, value)
    return read


def _reason(text: str, found: JsonObject, criteria: dict[str, CriterionResult], rubric: Rubric) -> str:
    """The judge's own summary; where none is asked for, its words on each criterion, or all of a reply in prose."""
    if rubric.asked.opinion:
        return _text(found.get("reason"))
    if not found:
        return text.strip()[:4000]
    parts = {
        c.short or c.name: criteria[c.name].evidence
        for c in rubric.criteria
        if criteria[c.name].passed is not None
    }
    return " ".join(f"{short}: {words}" for short, words in parts.items() if words)


def _flag(found: JsonObject, key: str, where: str, problems: list[str]) -> bool | None:
    value = _plain_flag(found.get(key))
    if value is None:
        problem = "is missing" if found.get(key) is None else "must be true or false"
        problems.append(f"{where}{key} {problem}")
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


def _codes(value: JsonObject, words: str, rubric: Rubric) -> tuple[tuple[str, ...], str]:
    """The rubric's codes that are named, and the text of `words` with all others that are."""
    stated = value.get("codes")
    given = [stated] if isinstance(stated, str) else stated if isinstance(stated, list) else []
    names = [item.strip().casefold() for item in given if isinstance(item, str) and item.strip()]
    unknown = ", ".join(name for name in names if name not in rubric.codes)
    evidence = _text(value.get(words))
    codes = tuple(dict.fromkeys(name for name in names if name in rubric.codes))
    return codes, f"{evidence} [other codes: {unknown}]".strip() if unknown else evidence


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
