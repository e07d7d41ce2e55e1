"""From a request of the loop to the values of its prompt. Never an image's id, file name, group or note."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from plantain.findings import lines_on, shown_sides, sides_on, zones_on
from plantain.models.hosted.prompts.library import Prompt, PromptLibrary
from plantain.models.hosted.published import can_answer_in_lines, names_in
from plantain.records import (
    BUILD_DIRECTIONS,
    Asked,
    Attempt,
    Criterion,
    CriterionResult,
    Direction,
    FailureCode,
    Finding,
    Geometry,
    InputError,
    Licence,
    Observations,
    Outcome,
    OutcomeKind,
    Rubric,
    RubricCriterion,
    SourceImage,
    Verdict,
)
from plantain.roles import DescribeRequest, EncodedImage, JudgeRequest, WriteRequest
from plantain.rubrics import MED_BANANA, MEDEBENCH

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
    values |= _history_values(request.history, shows_failed_edit=request.failed_edit is not None)
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
    """Return the criteria that a prompt asks for in MedEBench's published format; () where it asks for our JSON.

    Raises:
        InputError: it asks for neither.
    """
    if not can_answer_in_lines(rubric):
        return ()
    finding, image, shown = _example()
    asked = JudgeRequest(image, shown, shown, "example", finding, Direction.ADD, rubric, 0, shown)
    text = judge_prompt(library, asked, "balanced").text
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


def look_prompt(library: PromptLibrary) -> Prompt:
    """What a judge that looks first is told beside the two pictures: the same for all."""
    return library.render("look", {})


def blind_prompt(
    library: PromptLibrary,
    request: JudgeRequest,
    leniency: str,
    letters: tuple[str, str],
    seen: Sequence[str],
) -> Prompt:
    """The prompt of such a judge's second turn.

    Args:
        letters: of the original and of the edit.
        seen: what it reported in its first turn, line by line.
    """
    values = _judged(request, leniency) | {"original": letters[0], "edited": letters[1], "seen": list(seen)}
    return library.render("blind", values)


def form_asked(library: PromptLibrary, rubric: Rubric) -> bool:
    """Whether a prompt for numbers asks for JSON with the rubric's names, as ours does; else any words will do."""
    finding, image, picture = _example()
    asked = JudgeRequest(image, picture, picture, "example", finding, Direction.ADD, rubric, 0, picture)
    text = judge_prompt(library, asked, "balanced").text
    return "JSON" in text and all(criterion.name in text for criterion in rubric.criteria)


def describe_prompt(library: PromptLibrary, request: DescribeRequest) -> Prompt:
    """Return the prompt that asks for a description of a real pair."""
    return library.render("describe", _pair(request.organ, request.task, request.prompt, request.given))


def procedures_prompt(library: PromptLibrary, organ: str, known: Sequence[str], most: int) -> Prompt:
    """Return the prompt that asks for procedures on an organ that change how it looks."""
    return library.render("procedures", {"organ": organ, "known": list(known), "most": most})


def checked_library(folder: Path | None) -> PromptLibrary:
    """Return the prompts of a run; a user's are all rendered once.

    Raises:
        InputError: a file cannot be read, replaces nothing, or cannot be rendered.
    """
    library = PromptLibrary(folder)
    if folder is not None:
        rehearse(library)
    return library


def rehearse(library: PromptLibrary) -> None:
    """Fills in every prompt once, so that a template that asks for what there is not is found before the first call.

    Raises:
        InputError: names the template and what it asked for.
    """
    finding, image, picture = _example()
    result = CriterionResult(False, 0.5, (FailureCode.TOO_SUBTLE,), "example")
    seen = Observations(
        dict.fromkeys(Criterion, result), dict.fromkeys(MED_BANANA.facts, False), False, "example"
    )
    verdict = Verdict("example", seen, False, False, 0.0, False)
    history = (
        Attempt("", 1, 1, "example", Outcome(OutcomeKind.NO_IMAGE, "example")),
        Attempt("", 1, 2, "example", verdict=verdict),
    )
    for direction in BUILD_DIRECTIONS:
        case = _case(finding, image, direction)
        library.render("write_initial", case)
        library.render("refine", case | _history_values(history, shows_failed_edit=True))
        for rubric in (
            MED_BANANA,
            MEDEBENCH,
            replace(MED_BANANA, asked=Asked()),
            replace(MEDEBENCH, asked=Asked()),
        ):
            for known, truth, variant in ((finding, picture, "P"), (None, None, "D")):
                if known is not None or rubric.asked != MED_BANANA.asked:
                    asked = JudgeRequest(
                        image, picture, picture, "example", known, direction, rubric, 0, truth, variant
                    )
                    judge_prompt(library, asked, "strict")
                    blind_prompt(library, asked, "strict", ("A", "B"), ("example",))
    look_prompt(library)
    for prompt in ("", "example"):
        library.render("describe", _pair("example", "example", prompt, {"modality": "example"}))
    library.render("procedures", {"organ": "example", "known": ["example"], "most": 1})
    library.render("edit", {"instruction": "example", "shown": "example"})
    library.render("edit_by_example", {"examples": ["example"], "instruction": "example", "shown": ""})
    library.render("again", {"problem": "example", "answer": "example"})


def _example() -> tuple[Finding, SourceImage, EncodedImage]:
    """What a prompt is tried with."""
    picture = EncodedImage(b"", "image/png")
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
    return finding, image, picture


def _history_values(history: Sequence[Attempt], *, shows_failed_edit: bool) -> dict[str, object]:
    return {"history": [_round(attempt) for attempt in history], "shows_failed_edit": shows_failed_edit}


def _judged(request: JudgeRequest, leniency: str) -> dict[str, object]:
    """What any judge's template may ask for; what is known of a finding only where there is one."""
    rubric, finding = request.rubric, request.finding
    case = _case(finding, request.image, request.direction) if finding is not None else {"finding": None}
    criteria = [_questioned(criterion) for criterion in rubric.criteria]
    return {
        "modality": _modality(request.image.modality),
        **case,
        "instruction": request.instruction,
        "text": request.instruction,
        "variant": request.variant,
        "shows_truth": request.truth is not None,
        "criteria": criteria,
        "dimensions": criteria,
        "most": max((criterion.scale[1] for criterion in rubric.criteria if criterion.scale), default=1),
        "flags": [{"name": name, "question": question} for name, question in rubric.facts.items()],
        "codes": list(rubric.codes),
        "differences": rubric.asked.differences,
        "opinion": rubric.asked.opinion,
        "leniency": leniency,
    }


def _questioned(criterion: RubricCriterion) -> dict[str, object]:
    least, most = criterion.scale or (0, 1)
    marks = [{"score": score, "meaning": meaning} for score, meaning in criterion.marks]
    values = {"name": criterion.name, "question": criterion.question, "marks": marks}
    return {**values, "scale": criterion.scale is not None, "least": least, "most": most}


def _pair(organ: str, task: str, prompt: str, given: Mapping[str, str]) -> dict[str, object]:
    facts = [{"what": what, "value": value} for what, value in given.items() if value]
    return {"organ": organ, "task": task, "prompt": prompt, "facts": facts}


def _modality(name: str) -> str:
    named = "medical photograph or scan" if name == "unknown" else name.replace("_", " ")
    return MODALITIES.get(name, named)


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
    values: dict[str, object] = {
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
        values["outcome"] = f"{outcome.kind.value.replace('_', ' ')}: {outcome.reason}".rstrip(": ")
    if attempt.verdict is not None:
        seen = attempt.verdict.observations
        values["results"] = [
            {
                "name": criterion,
                "passed": result.passed,
                "codes": ", ".join(result.codes),
                "evidence": result.evidence
                if result.value is None
                else f"{result.value:g}. {result.evidence}",
            }
            for criterion, result in seen.criteria.items()
        ]
        values |= {
            "judged": "has_disease" in seen.facts,
            "has_disease": seen.facts.get("has_disease", False),
            "other_disease": seen.facts.get("other_disease", False),
            "reason": seen.reason,
        }
    return values
