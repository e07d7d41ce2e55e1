"""From a request of the loop to the values of its prompt. Never an image's id, file name, group or note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from plantain.findings import lines_on, shown_sides, sides_on, zones_on
from plantain.models.hosted.prompts.library import Prompt, PromptLibrary
from plantain.records import (
    BUILD_DIRECTIONS,
    Attempt,
    Criterion,
    CriterionResult,
    Direction,
    FailureCode,
    Finding,
    Geometry,
    Licence,
    Observations,
    Outcome,
    OutcomeKind,
    RubricCriterion,
    SourceImage,
    Verdict,
)
from plantain.roles import DescribeRequest, JudgeRequest, ScaleRequest, WriteRequest
from plantain.rubrics import MEDEBENCH, ScaleRubric

MODALITIES = {
    "chest_xray": "frontal chest radiograph",
    "brain_mri": "slice of a brain MRI",
    "fundus": "colour fundus photograph",
}

_FACTS = ("view", "projection", "position", "sequence", "contrast", "plane", "laterality")


def write_prompt(library: PromptLibrary, request: WriteRequest) -> Prompt:
    """The first instruction's prompt, or the refining one as soon as there is a history."""
    values = _case(request.finding, request.image, request.task.direction)
    if not request.history:
        return library.render("write_initial", values)
    values |= _told(request.history, shows_failed_edit=request.failed_edit is not None)
    return library.render("refine", values)


def judge_prompt(library: PromptLibrary, request: JudgeRequest, leniency: str) -> Prompt:
    """The judge's prompt for the request's direction."""
    values = _case(request.finding, request.image, request.direction)
    values |= _asked(request.instruction, request.rubric.criteria, leniency)
    name = "judge_add" if request.direction is Direction.ADD else "judge_remove"
    return library.render(name, values)


def scale_prompt(library: PromptLibrary, request: ScaleRequest, rubric: ScaleRubric) -> Prompt:
    """The prompt that asks for scores on a benchmark's output; its system's words are its own."""
    values = _scaled(request.image.modality, request.text, request.variant, rubric)
    prompt = library.render("scale", values | {"shows_truth": request.truth is not None})
    return replace(prompt, system=library.render("scale_system", {}).text)


def scale_form_asked(library: PromptLibrary, rubric: ScaleRubric) -> bool:
    """Whether the prompt for scores asks for JSON with the rubric's names, as ours does; else any words will do."""
    example = _scaled("unknown", "example", "P", rubric) | {"shows_truth": True}
    text = library.render("scale", example).text
    return "JSON" in text and all(dimension.name in text for dimension in rubric.dimensions)


def describe_prompt(library: PromptLibrary, request: DescribeRequest) -> Prompt:
    """The prompt that asks for a real pair in words; its system's words are its own."""
    prompt = library.render("describe", _pair(request.organ, request.task, request.prompt, request.told))
    return replace(prompt, system=library.render("describe_system", {}).text)


def procedures_prompt(library: PromptLibrary, organ: str, known: Sequence[str], most: int) -> Prompt:
    """The prompt that asks for procedures on an organ that change how it looks."""
    prompt = library.render("procedures", {"organ": organ, "known": list(known), "most": most})
    return replace(prompt, system=library.render("describe_system", {}).text)


def checked_library(folder: Path | None, edition: int = 0) -> PromptLibrary:
    """The prompts of a run, every one of them tried; of ours the given edition, 0 for the latest.

    Raises:
        InputError: a file cannot be read, replaces nothing, or cannot be filled in.
    """
    library = PromptLibrary(folder, edition)
    if folder is not None:
        rehearse(library)
    return library


def rehearse(library: PromptLibrary) -> None:
    """Fills in every prompt once, so that a template that asks for what there is not is found before the first call.

    Raises:
        InputError: names the template and what it asked for.
    """
    finding = Finding(
        "Example", "example", "example", "example", "example", sides=("left",), zones=("upper",)
    )
    image = SourceImage(
        "",
        "",
        "example",
        ("example",),
        Licence.OPEN,
        "",
        "",
        Geometry(1, 1, "pad", 0, 0, 1, 1),
        view="frontal",
    )
    reports = [CriterionResult(False, 0.5, (FailureCode.TOO_SUBTLE,), "example")]
    seen = Observations(dict.fromkeys(Criterion, reports[0]), False, False, False, "example")
    verdict = Verdict("example", seen, False, False, 0.0, False)
    history = (
        Attempt("", 1, 1, "example", Outcome(OutcomeKind.NO_IMAGE, "example")),
        Attempt("", 1, 2, "example", verdict=verdict),
    )
    for direction in BUILD_DIRECTIONS:
        case = _case(finding, image, direction)
        library.render("write_initial", case)
        library.render("refine", case | _told(history, shows_failed_edit=True))
        name = "judge_add" if direction is Direction.ADD else "judge_remove"
        library.render(name, case | _asked("example", (), "strict"))
    for variant, shows_truth in (("P", True), ("D", False)):
        library.render("scale", _scaled("eye", "example", variant, MEDEBENCH) | {"shows_truth": shows_truth})
    library.render("scale_system", {})
    library.render("describe_system", {})
    for prompt in ("", "example"):
        library.render("describe", _pair("example", "example", prompt, {"modality": "example"}))
    library.render("procedures", {"organ": "example", "known": ["example"], "most": 1})
    library.render("edit", {"instruction": "example", "shown": "example"})
    library.render("edit_by_example", {"examples": ["example"], "instruction": "example", "shown": ""})
    library.render("again", {"problem": "example", "answer": "example"})


def _told(history: Sequence[Attempt], *, shows_failed_edit: bool) -> dict[str, object]:
    return {"history": [_round(attempt) for attempt in history], "shows_failed_edit": shows_failed_edit}


def _asked(instruction: str, criteria: Sequence[RubricCriterion], leniency: str) -> dict[str, object]:
    return {
        "instruction": instruction,
        "criteria": [{"name": c.name.value, "question": c.question} for c in criteria],
        "codes": [code.value for code in FailureCode],
        "leniency": leniency,
    }


def _pair(organ: str, task: str, prompt: str, told: Mapping[str, str]) -> dict[str, object]:
    facts = [{"what": what, "value": value} for what, value in told.items() if value]
    return {"organ": organ, "task": task, "prompt": prompt, "facts": facts}


def _scaled(modality: str, text: str, variant: str, rubric: ScaleRubric) -> dict[str, object]:
    dimensions = [
        {
            "name": dimension.name,
            "question": dimension.question,
            "marks": [{"score": score, "meaning": meaning} for score, meaning in dimension.marks],
        }
        for dimension in rubric.dimensions
    ]
    said = "medical photograph or scan" if modality == "unknown" else modality.replace("_", " ")
    return {
        "modality": MODALITIES.get(modality, said),
        "text": text,
        "variant": variant,
        "most": rubric.most,
        "dimensions": dimensions,
    }


def _case(finding: Finding, image: SourceImage, direction: Direction) -> dict[str, object]:
    facts = [{"what": name, "value": getattr(image, name)} for name in _FACTS]
    return {
        "adding": direction is Direction.ADD,
        "finding": finding,
        "modality": MODALITIES.get(image.modality, image.modality.replace("_", " ")),
        "facts": [fact for fact in facts if fact["value"] != "unknown"],
        "labels": ", ".join(image.labels) or "nothing",
        "sides": sides_on(finding, image),
        "shown": shown_sides(image),
        "zones": zones_on(finding, image),
        "signs": lines_on(finding.signs, finding.zones, image, None),
        "secondary_signs": lines_on(finding.secondary_signs, finding.zones, image, None),
    }


def _round(attempt: Attempt) -> dict[str, object]:
    outcome = attempt.edit_outcome
    told: dict[str, object] = {
        "round": attempt.round,
        "instruction": attempt.instruction,
        "outcome": "",
        "results": [],
        "judged": False,
        "has_disease": False,
        "other_disease": False,
        "reason": "",
    }
    if outcome is not None and not outcome.ok:
        told["outcome"] = f"{outcome.kind.value.replace('_', ' ')}: {outcome.reason}".rstrip(": ")
    if attempt.verdict is not None:
        seen = attempt.verdict.observations
        told["results"] = [
            {
                "name": criterion.value,
                "passed": result.passed,
                "codes": ", ".join(code.value for code in result.codes),
                "evidence": result.evidence,
            }
            for criterion, result in seen.criteria.items()
        ]
        told |= {
            "judged": True,
            "has_disease": seen.has_disease,
            "other_disease": seen.other_disease,
            "reason": seen.reason,
        }
    return told
