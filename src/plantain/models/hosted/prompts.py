"""The prompt templates: found, fingerprinted, and filled so that text from data cannot become an instruction.

An image's id, file name, group and note are never used."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from plantain.files.opening import MAX_TEXT_BYTES, open_folder, read_inside, replace_file
from plantain.files.templates import StrangersTemplates
from plantain.findings import lines_on, shown_sides, sides_on, zones_on
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
from plantain.records.messages import suggest
from plantain.roles import DescribeRequest, EncodedImage, JudgeRequest, WriteRequest
from plantain.rubrics import MED_BANANA, MEDEBENCH

OURS, PUBLISHED = "ours", "published"
BUILT_IN = Path(__file__).with_name("templates")
TEMPLATES = tuple(sorted(file.name.removesuffix(".md.j2") for file in BUILT_IN.glob("*.md.j2")))
SYSTEMS = {
    **dict.fromkeys(("judge_add", "judge_remove", "rubric", "look", "blind"), "judge_system"),
    "describe": "describe_system",
}
"""Prompt -> template of its system message, where that is not `system`."""

_LONGEST = 4000
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+"
)
_LOOK_ALIKES = str.maketrans({"<": "‹", ">": "›", "{": "(", "}": ")", "`": "'"})


def as_data(value: object) -> object:
    """Return a value as one line without control or invisible characters, marks or template syntax.

    Angle brackets become look-alikes, so that no value can close the data block or open another; braces become
    parentheses. Text beyond 4,000 characters is cut and marked.
    """
    if isinstance(value, (int, float)):
        return value
    text = _HIDDEN.sub(" ", str(value)).translate(_LOOK_ALIKES)
    text = re.sub(r" {2,}", " ", text).strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} (cut)"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One rendered prompt.

    Attributes:
        label: name and hash of its template, its parts and its system message: changes with their wording.
        system, text: the messages.
    """

    label: str
    system: str
    text: str


class PromptLibrary:
    """The templates of a run: ours, each replaced by the folder's template of the same name.

    Raises:
        InputError: the folder or a file of it cannot be used; names the file.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None:
            _refuse_unknown(folder)
        self._sources = {name: _read(name, folder) for name in TEMPLATES}
        self._templates = _compiled(tuple((f"{name}.md.j2", text) for name, text in self._sources.items()))

    def label(self, name: str, system: str = "") -> str:
        """Return a prompt's name and hash; `system` as in `render`."""
        parts = ("case", "requirements", "report", system or SYSTEMS.get(name, "system"))
        text = "\x1f".join(self._sources[part] for part in (name, *parts))
        return f"{name}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def render(self, name: str, values: Mapping[str, object], system: str = "") -> Prompt:
        """Return a prompt with its values filled in by `as_data`.

        Args:
            name: of the template.
            values: of its variables.
            system: template of the system message; "" for the one that belongs to the prompt.

        Raises:
            InputError: a user's template uses an unknown variable.
        """
        text = self._templates.fill(f"{name}.md.j2", values)
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        message = self._templates.fill(f"{system or SYSTEMS.get(name, 'system')}.md.j2", {}).strip()
        return Prompt(self.label(name, system), message, text)


def prompts_folder(name: str) -> Path | None:
    """Return the folder of a set of prompts: "ours" (None), "published" or a folder of templates.

    Raises:
        InputError: no such folder.
    """
    if name == OURS:
        return None
    folder = BUILT_IN / PUBLISHED if name == PUBLISHED else Path(name)
    if folder.is_dir():
        return folder
    hint = suggest(name, (OURS, PUBLISHED), otherwise=f"name a folder of templates, {OURS} or {PUBLISHED}")
    raise InputError(f"--prompts {name}: no such folder; {hint}")


def write_prompts(folder: Path) -> list[Path]:
    """Write our templates into a folder, for editing and for `--prompts`; return their paths.

    Raises:
        InputError: a file of that name exists.
    """
    library = PromptLibrary()
    paths = {folder / f"{name}.md.j2": text for name, text in library._sources.items()}
    if there := next((path for path in paths if os.path.lexists(path)), None):
        raise InputError(f"--to {folder}: {there.name} exists")
    open_folder(folder)
    for path, text in paths.items():
        replace_file(path, text.encode())
    return list(paths)


@lru_cache(maxsize=8)
def _compiled(sources: tuple[tuple[str, str], ...]) -> StrangersTemplates:
    """Compile once per process: it takes as long as a hundred calls."""
    return StrangersTemplates(dict(sources), as_data)


@cache
def _ours(file: str) -> str:
    return (BUILT_IN / file).read_text("utf-8")


def _read(name: str, folder: Path | None) -> str:
    file = f"{name}.md.j2"
    if folder is None or not os.path.lexists(folder / file):
        return _ours(file)
    try:
        return read_inside(folder, folder / file, MAX_TEXT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"prompt {folder / file}: cannot be read: {error}") from None


def _refuse_unknown(folder: Path) -> None:
    known = [f"{name}.md.j2" for name in TEMPLATES]
    if not folder.is_dir():
        raise InputError(f"prompts: {folder} is not a folder")
    for path in sorted(folder.glob("*.j2")):
        if path.name not in known:
            raise InputError(f"prompts: {path}: replaces nothing; known: {', '.join(known)}")


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
