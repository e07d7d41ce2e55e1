"""Fill a prompt with the values of a request. An image's id, file name, group and note are never used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from plantain.findings import lines_on, shown_sides, sides_on, zones_on
from plantain.models.hosted.prompts.library import Prompt, PromptLibrary
from plantain.models.hosted.reports import can_answer_in_lines, names_in
from plantain.records import (
    BUILD_DIRECTIONS,
    Asked,
    Attempt,
    Direction,
    Finding,
    Geometry,
    InputError,
    Licence,
    Rubric,
    RubricCriterion,
    SourceImage,
)
from plantain.roles import DescribeRequest, EncodedImage, JudgeRequest, WriteRequest
from plantain.rubrics import MED_BANANA, MEDEBENCH

MODALITIES = {
    "chest_xray": "frontal chest radiograph",
    "brain_mri": "slice of a brain MRI",
    "fundus": "colour fundus photograph",
    "unknown": "medical photograph or scan",
}

_FACTS = ("view", "projection", "position", "sequence", "contrast", "plane", "laterality")


def write_prompt(library: PromptLibrary, request: WriteRequest) -> Prompt:
    """Return the first instruction's prompt, or the refining one as soon as there is a history."""
    values = _case(request.finding, request.image, request.task.direction)
    if not request.history:
        return library.render("write_initial", values)
    values |= {
        "history": [_round(attempt) for attempt in request.history],
        "shows_failed_edit": request.failed_edit is not None,
    }
    return library.render("refine", values)


def judge_prompt(library: PromptLibrary, request: JudgeRequest, leniency: str) -> Prompt:
    """Return the judge's prompt, from the template that the rubric names for the request's direction."""
    rubric = request.rubric
    name = rubric.asked.templates[-1 if request.direction is Direction.REMOVE else 0]
    return library.render(name, _judged(request, leniency), system_of(rubric))


def system_of(rubric: Rubric) -> str:
    """Return the template of the rubric's system message; "" for the one that belongs to its prompt."""
    return "" if rubric.asked.system == "system" else rubric.asked.system


def lines_asked(library: PromptLibrary, rubric: Rubric) -> tuple[str, ...]:
    """Return the criteria that a prompt requests in MedEBench's published format; () if it requests our JSON.

    Raises:
        InputError: it requests neither.
    """
    if not can_answer_in_lines(rubric):
        return ()
    text = judge_prompt(library, _example_of(rubric), "balanced").text
    if "JSON" in text and all(criterion.name in text for criterion in rubric.criteria):
        return ()
    named = names_in(text)
    if not named:
        raise InputError(
            f"prompt {rubric.asked.templates[0]}.md.j2: asks neither for JSON with the keys of the rubric "
            f"{rubric.name} nor for lines such as `Editing Accuracy: n/10`"
        )
    return named


def with_images(text: str, images: Mapping[str, Sequence[EncodedImage]]) -> list[str | EncodedImage]:
    """Return a prompt's text with an image at each mark, such as `<before>`: the next one of that name.

    A value cannot contain a mark: its angle brackets are replaced. Marks beyond the images are dropped.
    """
    left = {name: iter(found) for name, found in images.items()}
    parts: list[str | EncodedImage] = []
    for number, piece in enumerate(re.split(f"<({'|'.join(images)})>", text)):
        if number % 2:
            parts += [image for image in [next(left[piece], None)] if image is not None]
        elif piece.strip():
            parts.append(piece.strip())
    return parts


def blind_prompt(
    library: PromptLibrary,
    request: JudgeRequest,
    leniency: str,
    letters: tuple[str, str],
    seen: Sequence[str],
) -> Prompt:
    """Return the prompt of a blind judge's second turn.

    Args:
        letters: of the original and of the edit.
        seen: lines of its report in the first turn.
    """
    values = _judged(request, leniency) | {"original": letters[0], "edited": letters[1], "seen": list(seen)}
    return library.render("blind", values)


def describe_prompt(library: PromptLibrary, request: DescribeRequest) -> Prompt:
    """Return the prompt that asks for a description of a real pair."""
    facts = [{"what": what, "value": value} for what, value in request.given.items() if value]
    values = {"organ": request.organ, "task": request.task, "prompt": request.prompt, "facts": facts}
    return library.render("describe", values)


def procedures_prompt(library: PromptLibrary, organ: str, known: Sequence[str], most: int) -> Prompt:
    """Return the prompt that asks for procedures on an organ that change how it looks."""
    return library.render("procedures", {"organ": organ, "known": list(known), "most": most})


def checked_library(folder: Path | None) -> PromptLibrary:
    """Return the prompts of a run; all templates of a user are rendered once, so that errors appear before any call.

    Raises:
        InputError: a file cannot be read, replaces nothing, or cannot be rendered.
    """
    library = PromptLibrary(folder)
    if folder is not None:
        _render_all(library)
    return library


def _render_all(library: PromptLibrary) -> None:
    finding, image = _example()
    result = dict.fromkeys(("name", "codes", "evidence"), "example") | {"passed": False}
    attempt = {"round": 1, "results": [result], "judged": True, "has_disease": False, "other_disease": False}
    attempt |= {"instruction": "example", "reason": "example"}
    history = [{**attempt, "outcome": "example"}, {**attempt, "outcome": ""}]
    for direction in BUILD_DIRECTIONS:
        case = _case(finding, image, direction)
        library.render("write_initial", case)
        library.render("refine", {**case, "history": history, "shows_failed_edit": True})
        plain = [replace(rubric, asked=Asked()) for rubric in (MED_BANANA, MEDEBENCH)]
        for rubric in (MED_BANANA, MEDEBENCH, *plain):
            full = replace(_example_of(rubric), direction=direction)
            asked = [full, replace(full, finding=None, truth=None, variant="D")]
            for request in asked[: 1 if rubric == MED_BANANA else 2]:
                judge_prompt(library, request, "strict")
                blind_prompt(library, request, "strict", ("A", "B"), ("example",))
    library.render("look", {})
    for prompt in ("", "example"):
        facts = [{"what": "modality", "value": "example"}]
        library.render("describe", {"organ": "example", "task": "example", "prompt": prompt, "facts": facts})
    procedures_prompt(library, "example", ["example"], 1)
    library.render("edit", {"instruction": "example", "shown": "example"})
    library.render("edit_by_example", {"examples": ["example"], "instruction": "example", "shown": ""})
    library.render("again", {"problem": "example", "answer": "example"})


def _example() -> tuple[Finding, SourceImage]:
    text = "example"
    finding = Finding("Example", text, text, text, text, sides=("left",), zones=("upper",))
    geometry = Geometry(1, 1, "pad", 0, 0, 1, 1)
    image = SourceImage("", "", text, (text,), Licence.OPEN, "", "", geometry, view="frontal")
    return finding, image


def _example_of(rubric: Rubric) -> JudgeRequest:
    finding, image = _example()
    shown = EncodedImage(b"", "image/png")
    return JudgeRequest(image, shown, shown, "example", finding, Direction.ADD, rubric, 0, shown)


def _judged(request: JudgeRequest, leniency: str) -> dict[str, object]:
    """Return the variables of a judge's template; those of a finding only if there is one."""
    rubric, finding = request.rubric, request.finding
    keys = {criterion.key for criterion in rubric.criteria}
    case = _case(finding, request.image, request.direction) if finding is not None else {"finding": None}
    return {
        "modality": _modality(request.image.modality),
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
        "leniency": leniency,
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


def _modality(name: str) -> str:
    return MODALITIES.get(name, name.replace("_", " "))


def _case(finding: Finding, image: SourceImage, direction: Direction) -> dict[str, object]:
    facts = [{"what": name, "value": getattr(image, name)} for name in _FACTS]
    return {
        "adding": direction is Direction.ADD,
        "finding": finding,
        "modality": _modality(image.modality),
        "facts": [fact for fact in facts if fact["value"] != "unknown"],
        "labels": ", ".join(image.labels) or "nothing",
        "sides": sides_on(finding, image),
        "shown": shown_sides(image),
        "zones": zones_on(finding, image),
        "signs": lines_on(finding.signs, finding.zones, image, None),
        "secondary_signs": lines_on(finding.secondary_signs, finding.zones, image, None),
    }


def _round(attempt: Attempt) -> dict[str, object]:
    outcome, verdict = attempt.edit_outcome, attempt.verdict
    failed = outcome is not None and not outcome.ok
    why = f"{outcome.kind.value.replace('_', ' ')}: {outcome.reason}".rstrip(": ") if outcome else ""
    facts = verdict.observations.facts if verdict else {}
    results = verdict.observations.criteria.items() if verdict else ()
    return {
        "round": attempt.round,
        "instruction": attempt.instruction,
        "outcome": why if failed else "",
        "results": [
            {
                "name": name,
                "passed": result.passed,
                "codes": ", ".join(result.codes),
                "evidence": f"{result.value:g}. {result.evidence}"
                if result.value is not None
                else result.evidence,
            }
            for name, result in results
        ],
        "judged": "has_disease" in facts,
        "has_disease": facts.get("has_disease", False),
        "other_disease": facts.get("other_disease", False),
        "reason": verdict.observations.reason if verdict else "",
    }
