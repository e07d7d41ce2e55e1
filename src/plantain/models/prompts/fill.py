"""From a request of the loop to the values of its prompt. Never an image's id, file name, group or note."""

from __future__ import annotations

from plantain.findings import lines_on, sides_on, zones_on
from plantain.models.prompts.library import Prompt, PromptLibrary
from plantain.records import Attempt, Direction, FailureCode, Finding, SourceImage
from plantain.roles import JudgeRequest, WriteRequest

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
    values["history"] = [_round(attempt) for attempt in request.history]
    values["shows_failed_edit"] = request.failed_edit is not None
    return library.render("refine", values)


def judge_prompt(library: PromptLibrary, request: JudgeRequest, leniency: str) -> Prompt:
    """The judge's prompt for the request's direction."""
    values = _case(request.finding, request.image, request.direction)
    values |= {
        "instruction": request.instruction,
        "criteria": [
            {"name": criterion.name.value, "question": criterion.question}
            for criterion in request.rubric.criteria
        ],
        "codes": [code.value for code in FailureCode],
        "leniency": leniency,
    }
    name = "judge_add" if request.direction is Direction.ADD else "judge_remove"
    return library.render(name, values)


def _case(finding: Finding, image: SourceImage, direction: Direction) -> dict[str, object]:
    facts = [{"what": name, "value": getattr(image, name)} for name in _FACTS]
    return {
        "adding": direction is Direction.ADD,
        "finding": finding,
        "modality": MODALITIES.get(image.modality, image.modality.replace("_", " ")),
        "facts": [fact for fact in facts if fact["value"] != "unknown"],
        "labels": ", ".join(image.labels) or "nothing",
        "sides": sides_on(finding, image),
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
