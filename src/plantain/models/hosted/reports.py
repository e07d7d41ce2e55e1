"""A judge's report and its prompt: JSON by the schema of the rubric, or MedEBench's lines `Editing Accuracy: 8/10`.

A report is complete or `Unreadable`: there are no default verdicts. The published format is that of the paper's judging
prompts (H.2, H.3, an answer is in E.1); its published script also requests `Contextual Preservation`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from plantain.models.hosted.answers import (
    JsonObject,
    Unreadable,
    read_object,
    without_thoughts,
)
from plantain.models.hosted.prompts import Prompt, PromptLibrary, case_of, modality_of
from plantain.records import (
    BUILD_DIRECTIONS,
    Asked,
    CriterionResult,
    Direction,
    Finding,
    Geometry,
    InputError,
    Licence,
    Observations,
    Rubric,
    RubricCriterion,
    SourceImage,
)
from plantain.roles import EncodedImage, JudgeRequest
from plantain.rubrics import MED_BANANA, MEDEBENCH

_TEXT: JsonObject = {"type": "string"}
_FLAG: JsonObject = {"type": "boolean"}


def object_schema(properties: JsonObject) -> JsonObject:
    """Return the JSON schema of an object with these properties, all required, as OpenAI and Gemini accept it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def report_schema(rubric: Rubric) -> JsonObject:
    """Return the JSON schema of a judge's report by a rubric.

    Evidence comes before the decision, so that the model describes the images before it decides.
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
    """Parse a judge's report: JSON, bare, fenced or with prose around it.

    Required are `passed` of every criterion without a scale and every fact (true or false, also as a string in any
    case), and `score` of every other criterion: a whole number on its scale. `confidence` outside [0, 1] is dropped, a
    missing `qualified` is None, an unknown code is kept in the evidence. A criterion with a key is a bare true or
    false; one that is answered by a fact passes for a removal if the fact is false.

    Raises:
        Unreadable: no report, several different ones, a key with two values, or a required value missing or invalid.
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


SCALE = (0, 10)
_BRACKETS = r"(?:[^\S\n]*\((?:%s|0[ \t]*[-–][ \t]*10)\))*"
LABELS = {
    "editing_accuracy": r"editing\s+accuracy" + _BRACKETS % "EA",
    "context_preservation": r"context(?:ual)?\s+preservation" + _BRACKETS % "CP",
    "visual_quality": r"visual\s+quality" + _BRACKETS % "VQ",
}
"""Criterion -> pattern of its published name, with or without the short one and the scale."""

_NAMES = "|".join(f"(?P<{name}>{label})" for name, label in LABELS.items())
_LINE = re.compile(
    rf"(?im)^(?![^\w\n]*<!--)[^\w\n(~]*(?:\(?(?:\d+|[a-z])[.)][^\S\n]*)?(?:{_NAMES})[^\S\n]*"
    r"(?:[:：﹕∶=]|[-–—](?=\s))?[^\S\n]*[\[(]?(?P<value>[+−-]?\d+(?:\.\d+)?)(?P<rest>.*)$"
)
"""A line that states a score, markup removed: list mark, name, optional short name, scale and separator, number."""

_SCALE = re.compile(
    r"[\])]?\s*(?:[/／∕⁄]|\(?(?:out )?of\b)\s*\[?(?P<most>\d+(?:\.\d+)?)[\])]*", re.IGNORECASE
)
_NOT_ALONE = re.compile(r"[^\W_]|\+|\.\d|[\])]?\s*(?:%|[/／∕⁄]|,\d)")
"""A continuation that makes the number part of a longer number, a percentage or a fraction."""

_RANGE = re.compile(r"[\])]?\s*(?:[-–~]|(?:to|or)\b)\s*\d", re.IGNORECASE)
_RANGE_AFTER_SCALE = re.compile(
    r"(?i)[\s,]*(?:[-–~]\d|(?:~|to\b|or\b)\s*[\[(]?(?![\d.]+\s*%)\d|"
    r"[-–—]\s*[\[(]?[\d.]+[\])]*\s*(?:[/／∕⁄=]|(?:out\s+)?of\s+10\b|(?:points?|pts?)?[.\s]*$))"
)
"""A second score; after `8/10` a reason may start with another number: `8/10 - 2 of 3 teeth are gone`."""

_SECOND = re.compile(r"\]?\s*(?:(?:→|[-=]?>)\s*|(?<=\s)(?!10(?:\.0+)?\s*$))\d+(?:\.\d+)?\s*(?:/\s*10\s*)?$")
"""A second number that ends the line: a correction, or another column of a table, unless it can be the scale."""

_MARKUP = re.compile(r"[*_`#|\\]+|</?(?:b|strong|i|em|u)>", re.IGNORECASE)


def names_in(text: str) -> tuple[str, ...]:
    """Find criteria by their published labels (MedEBench) in a text; return the criteria's names."""
    return tuple(name for name, label in LABELS.items() if re.search(label, text, re.IGNORECASE))


def can_answer_in_lines(rubric: Rubric) -> bool:
    """Return True if a judge can answer in MedEBench's format: each criterion has its label and scale 0 to 10."""
    return all(criterion.name in LABELS and criterion.scale == SCALE for criterion in rubric.criteria)


def read_lines(text: str, rubric: Rubric, asked: Collection[str]) -> Observations:
    """Parse a judge's answer in MedEBench's published format.

    A line states a criterion's value if it starts, after markup, with its name followed by `n/10`, `[n]/10` or `n`.
    Equal values count once. The reason follows on the same line or below.

    Args:
        text: the answer.
        rubric: the rubric; criteria that were not requested are unscored.
        asked: the criteria that the prompt requests.

    Raises:
        Unreadable: a criterion has no value, different values, another denominator, or a value off the scale.
    """
    plain = _MARKUP.sub("", without_thoughts(text))
    lines = list(_LINE.finditer(plain))
    bounds = [*(line.start() for line in lines), len(plain)]
    values: dict[str, set[float]] = {name: set() for name in LABELS}
    reasons = dict.fromkeys(LABELS, "")
    problems: list[str] = []
    for line, end in zip(lines, bounds[1:], strict=True):
        name = next(name for name in LABELS if line[name])
        scale = _SCALE.match(line["rest"])
        rest = line["rest"][scale.end() :] if scale else line["rest"]
        value = float(line["value"].replace("−", "-"))
        other = (_RANGE_AFTER_SCALE if scale else _RANGE).match(rest) or _NOT_ALONE.match(rest)
        other = other or _SECOND.match(rest)
        if other or (scale and float(scale["most"]) != SCALE[1]) or not 0 <= value <= 10:
            problems.append(f"{name} must be a number from 0 to 10, not {line['value']}{line['rest'][:20]}")
        values[name].add(value)
        reasons[name] = reasons[name] or (rest.lstrip(" ])\t,.;:-–—") + plain[line.end() : end]).strip()
    criteria: dict[str, CriterionResult] = {}
    for criterion in rubric.criteria:
        stated = sorted(values[criterion.name])
        if len(stated) == 1:
            passed = rubric.passes(criterion.name, stated[0])
            criteria[criterion.name] = CriterionResult(passed, None, (), reasons[criterion.name], stated[0])
        elif stated:
            problems.append(f"{criterion.name} has different values: {', '.join(f'{n:g}' for n in stated)}")
        elif criterion.name in asked:
            problems.append(f"{criterion.name} has no line such as `{_label(criterion.name)}: n/10`")
        else:
            criteria[criterion.name] = CriterionResult(None, evidence="not requested")
    if problems:
        raise Unreadable("; ".join(problems))

    words = [f"{c.short or c.name}: {reasons[c.name]}" for c in rubric.criteria if reasons[c.name]]
    return Observations(criteria, reason=" ".join(words), differences=plain[: bounds[0]].strip()[:4000])


def _label(name: str) -> str:
    return name.replace("context_", "contextual_").replace("_", " ").title()


# --- the prompt that asks for it ---------------------------------------------------------------------


def judge_prompt(library: PromptLibrary, request: JudgeRequest) -> Prompt:
    """Make the judge's prompt from the template that the rubric names for the request's direction."""
    rubric = request.rubric
    name = rubric.asked.templates[-1 if request.direction is Direction.REMOVE else 0]
    return library.render(name, _judged(request), system_of(rubric))


def system_of(rubric: Rubric) -> str:
    """Return the name of the rubric's system template; "" for the default of its prompt."""
    return "" if rubric.asked.system == "system" else rubric.asked.system


def lines_asked(library: PromptLibrary, rubric: Rubric) -> tuple[str, ...]:
    """Return the criteria that a prompt requests in MedEBench's published format; () if it requests JSON.

    Raises:
        InputError: the prompt requests neither format, although the rubric allows both.
    """
    if not can_answer_in_lines(rubric):
        return ()
    text = judge_prompt(library, example_of(rubric)).text
    if "JSON" in text and all(criterion.name in text for criterion in rubric.criteria):
        return ()
    named = names_in(text)
    if not named:
        raise InputError(
            f"prompt {rubric.asked.templates[0]}.md.j2: asks neither for JSON with the keys of the rubric "
            f"{rubric.name} nor for lines such as `Editing Accuracy: n/10`"
        )
    return named


def _judged(request: JudgeRequest) -> dict[str, object]:
    """Return the variables of a judge's template; those of a finding only if there is one."""
    rubric, finding = request.rubric, request.finding
    keys = {criterion.key for criterion in rubric.criteria}
    case = case_of(finding, request.image, request.direction) if finding is not None else {"finding": None}
    return {
        "modality": modality_of(request.image.modality),
        **case,
        "instruction": request.instruction,
        "variant": request.variant,
        "shows_truth": request.truth is not None,
        "criteria": [_questioned(criterion) for criterion in rubric.criteria],
        "most": max((criterion.scale[1] for criterion in rubric.criteria if criterion.scale), default=1),
        "flags": [
            {"name": name, "question": question}
            for name, question in rubric.facts.items()
            if name not in keys
        ],
        "codes": list(rubric.codes),
        "differences": rubric.asked.differences,
        "opinion": rubric.asked.opinion,
        "decides": "qualified" in keys,
    }


def _questioned(criterion: RubricCriterion) -> dict[str, object]:
    least, most = criterion.scale or (0, 1)
    marks = [{"score": score, "meaning": meaning} for score, meaning in criterion.marks]
    values = {
        "name": criterion.key or criterion.name,
        "bare": bool(criterion.key),
        "question": criterion.question,
        "marks": marks,
    }
    return {**values, "scale": criterion.scale is not None, "least": least, "most": most}


def example_case() -> tuple[Finding, SourceImage]:
    """Make an example finding and image record, so that prompts can be rendered before any call."""
    text = "example"
    finding = Finding("Example", text, text, text, text, sides=("left",), zones=("upper",))
    geometry = Geometry(1, 1, "pad", 0, 0, 1, 1)
    image = SourceImage("", "", text, (text,), Licence.OPEN, "", "", geometry, view="frontal")
    return finding, image


def example_of(rubric: Rubric) -> JudgeRequest:
    """Make an example judge request for a rubric, so that its prompt can be rendered before any call."""
    finding, image = example_case()
    shown = EncodedImage(b"", "image/png")
    return JudgeRequest(image, shown, shown, "example", finding, Direction.ADD, rubric, 0, shown)


def checked_library(folder: Path | None) -> PromptLibrary:
    """Load the prompts of a run, and render all of a user's templates once to find errors before any call.

    Raises:
        InputError: a file cannot be read or rendered, or its name is not that of a template.
    """
    library = PromptLibrary(folder)
    if folder is not None:
        _render_all(library)
    return library


def _render_all(library: PromptLibrary) -> None:
    finding, image = example_case()
    result = dict.fromkeys(("name", "codes", "evidence"), "example") | {"passed": False}
    attempt = {"round": 1, "results": [result], "judged": True, "has_disease": False, "other_disease": False}
    attempt |= {"instruction": "example", "reason": "example"}
    history = [{**attempt, "outcome": "example"}, {**attempt, "outcome": ""}]
    for direction in BUILD_DIRECTIONS:
        case = case_of(finding, image, direction)
        library.render("write_initial", case)
        library.render("refine", {**case, "history": history})
        plain = [replace(rubric, asked=Asked()) for rubric in (MED_BANANA, MEDEBENCH)]
        for rubric in (MED_BANANA, MEDEBENCH, *plain):
            full = replace(example_of(rubric), direction=direction)
            asked = [full, replace(full, finding=None, truth=None, variant="D")]
            for request in asked[: 1 if rubric == MED_BANANA else 2]:
                judge_prompt(library, request)
    for prompt in ("", "example"):
        library.render(
            "describe", dict.fromkeys(("organ", "task", "modality"), "example") | {"prompt": prompt}
        )
    library.render("edit", {"instruction": "example", "shown": "example"})
    library.render("edit_by_example", {"examples": ["example"], "instruction": "example", "shown": ""})
    library.render("again", {"problem": "example", "answer": "example"})
