"""The hosted writer, judge and describer: our prompts, any provider's language model.

In the blind form the judge compares two images without the instruction, which a second call adds. The seed of the call
decides which image is shown as A; the order is recorded, so that position bias can be measured. In both turns the fixed
text comes before the images.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import orjson

from plantain.models.hosted.answers import (
    JsonObject,
    Unreadable,
    object_schema,
    read_instruction,
    read_object,
)
from plantain.models.hosted.asking import LanguageModel, LanguageRole
from plantain.models.hosted.editor import HostedEditor, ImageModel
from plantain.models.hosted.prompts import (
    describe_prompt,
    with_images,
    write_prompt,
)
from plantain.models.hosted.reports import (
    blind_prompt,
    judge_prompt,
    lines_asked,
    read_lines,
    read_report,
    report_schema,
    system_of,
)
from plantain.records import InputError, Observations, Rubric
from plantain.roles import (
    ChangeDescription,
    DescribeRequest,
    EncodedImage,
    JudgeRequest,
    LookRequest,
    Reply,
    WriteRequest,
)
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA, digest_of

VERSION = "1"
"""Version of this adapter, part of fingerprints; raise it with each change of requests or reading."""

LONGEST = 1200
"""Characters of any one answer; longer ones are requested again, never cut."""

_TEXT: JsonObject = {"type": "string"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}
_FIELDS = ("modality", "action", "entity", "region", "context", "prompt", "rephrasings", "description")
DESCRIPTION = object_schema({name: _TEXTS if name == "rephrasings" else _TEXT for name in _FIELDS})


class HostedDescriber(LanguageRole):
    """A describer that shows a hosted language model both images of a pair, joined to one image."""

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        super().__init__(model, options)
        self.fingerprint = f"describe@{VERSION} {self._asked_by(('describe', 'again'))}"

    async def describe(self, request: DescribeRequest) -> Reply[ChangeDescription]:
        """Describe a pair; `malformed` after two unreadable answers. A prompt in the request is kept."""
        prompt = describe_prompt(self._library, request)
        read = partial(read_description, given=request.prompt)
        return await self._ask(prompt, (request.pair, prompt.text), request.seed, read, DESCRIPTION)


def read_description(text: str, given: str) -> ChangeDescription:
    """Parse a describer's answer: every field is required and at most `LONGEST` characters long.

    Args:
        text: the answer.
        given: the owner's prompt, which replaces the one in the answer; "" if there is none.

    Raises:
        Unreadable: a field is missing or too long, or no rephrasing differs from the prompt.
    """
    found = read_object(text, {"description", "action"})
    texts = {name: _text(found, name) for name in _FIELDS if name != "rephrasings"}
    prompt = given or texts["prompt"]
    others = _new(_list(found, "rephrasings"), [prompt])
    if not others:
        raise Unreadable("rephrasings: none of them differs from the instruction")
    if any(len(one) > LONGEST for one in others):
        raise Unreadable("rephrasings: one is far longer than a sentence")
    del texts["prompt"]
    return ChangeDescription(prompt=prompt, rephrasings=others, **texts)


def _new(proposed: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return each proposal once, without the known ones, whatever their case and full stop."""
    seen = {_plain(one) for one in known} | {""}
    kept: dict[str, str] = {}
    for one in proposed:
        if _plain(one) not in seen:
            kept.setdefault(_plain(one), one)
    return tuple(kept.values())


def _plain(text: str) -> str:
    return text.casefold().strip(" .!")


def _list(found: JsonObject, name: str) -> list[str]:
    listed = found.get(name)
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise Unreadable(f"{name} must be a list of sentences")
    return [" ".join(one.split()) for one in listed]


def _text(found: JsonObject, name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"{name} is missing")
    if len(value) > LONGEST:
        raise Unreadable(f"{name} has {len(value)} characters; a sentence is required")
    return " ".join(value.split())


class HostedWriter(LanguageRole):
    """A writer of instructions that shows a hosted language model the original image."""

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        super().__init__(model, options)
        self.fingerprint = f"hosted@{VERSION} {self._asked_by(('write_initial', 'refine', 'again'))}"

    async def write(self, request: WriteRequest) -> Reply[str]:
        """Return an instruction; `malformed` after two unreadable answers."""
        prompt = write_prompt(self._library, request)
        images = (request.original, request.failed_edit) if request.failed_edit else (request.original,)
        return await self._ask(prompt, (*images, prompt.text), request.seed, read_instruction)


class HostedJudge(LanguageRole):
    """A judge of edits by any rubric that uses a hosted language model.

    It requests JSON by the rubric's schema, or MedEBench's published answer format if the prompts do. In the blind
    form the first call shows the images without the instruction.
    """

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        super().__init__(model, options)
        self._leniency = options.leniency
        self.looks_first = options.form == "blind"
        self.fingerprint = self.fingerprint_by(MED_BANANA)

    def fingerprint_by(self, rubric: Rubric) -> str:
        """Return the fingerprint for a rubric: its prompts, its schema, and the model's settings.

        Raises:
            InputError: the rubric names an unknown template.
        """
        if self.looks_first:
            _check_blind(rubric)
        templates = BLIND_TEMPLATES if self.looks_first else rubric.asked.templates
        forms = [LOOK_SCHEMA] if self.looks_first else []
        if self.looks_first or not lines_asked(self._library, rubric):
            forms.append(report_schema(rubric))
        prompts = self._asked_by((*templates, "again"), system_of(rubric))
        schema = hashlib.sha256(orjson.dumps(forms)).hexdigest()[:12]
        known = f"{rubric.name}@{rubric.version}:{digest_of(rubric)[:12]}"
        form = " form=blind" if self.looks_first else ""
        return f"hosted@{VERSION} {prompts} leniency={self._leniency}{form} rubric={known} schema={schema}"

    async def look(self, request: LookRequest) -> Reply[str]:
        """Make the first call of a blind judge; return differences between two images and findings of each, as JSON.

        The request contains neither instruction, finding nor case; `malformed` after two unreadable answers.
        """
        prompt, first = self._library.render("look", {}), request.edited_first
        parts = _blindly_shown(prompt.text, request, first)
        read = partial(read_look, edited_first=first)
        return await self._ask(prompt, parts, request.seed, read, LOOK_SCHEMA)

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Judge an edit; return observations per criterion, or `malformed` after two unreadable reports.

        In the blind form `request.seen` is the reply of `look`.
        """
        rubric, seen = request.rubric, ""
        lines = () if self.looks_first else lines_asked(self._library, rubric)
        if self.looks_first:
            looked = seen_of(request.seen)
            prompt = blind_prompt(self._library, request, self._leniency, looked.letters, looked.lines)
            parts, seen = _blindly_shown(prompt.text, request, looked.edited_first), looked.description()
        else:
            prompt = judge_prompt(self._library, request, self._leniency)
            parts = _shown(prompt.text, request)
        schema = None if lines else report_schema(rubric)

        def read(text: str) -> Observations:
            return read_lines(text, rubric, lines) if lines else read_report(text, rubric, request.direction)

        reply = await self._ask(prompt, parts, request.seed, read, schema)
        if reply.value is not None and seen:
            return replace(reply, value=replace(reply.value, differences=seen))
        return reply


def _shown(text: str, request: JudgeRequest) -> list[str | EncodedImage]:
    """Return a judge's prompt with its images: at their marks, or before the text, each after its name."""
    images = {"before": request.original, "edited": request.edited, "truth": request.truth}
    parts = with_images(text, {name: [image] if image else [] for name, image in images.items()})
    if len(parts) > 1:
        return parts
    named = zip(request.rubric.asked.captions, images.values(), strict=True)
    return [part for label, image in named if image for part in (label, image) if part] + parts


BLIND_TEMPLATES = "look", "blind"
"""Prompts of the two turns of the blind form."""

OWN_FORM = frozenset({"judge_add", "judge_remove", "rubric"})
"""Our prompts for a rubric's questions; a rubric that names another prompt has a wording of its own."""

_FLAG: JsonObject = {"type": "boolean"}
_NUMBER: JsonObject = {"type": "number"}
_LISTS: dict[str, JsonObject] = {
    "differences": {"place": _TEXT, "in_a": _TEXT, "in_b": _TEXT, "confidence": _NUMBER},
    "findings": {"evidence": _TEXT, "name": _TEXT, "in_a": _FLAG, "in_b": _FLAG, "confidence": _NUMBER},
}
LOOK_SCHEMA = object_schema(
    {name: {"type": "array", "items": object_schema(entry)} for name, entry in _LISTS.items()}
)
"""Schema of the first turn's answer, with the evidence first."""


@dataclass(frozen=True, slots=True)
class BlindDescription:
    """A blind judge's description of two images.

    Attributes:
        edited_first: True if the edit was shown as image A.
        lines: one for each difference and finding, in the judge's words.
    """

    edited_first: bool
    lines: tuple[str, ...]

    @property
    def letters(self) -> tuple[str, str]:
        """Return the letters of (original, edit): ("A", "B"), or ("B", "A") if the edit was shown first."""
        return ("B", "A") if self.edited_first else ("A", "B")

    def description(self) -> str:
        """Return the description as text, for the record of a verdict."""
        original, edited = self.letters
        return "\n".join((f"Image {original} is the original, image {edited} the edit.", *self.lines))


def _check_blind(rubric: Rubric) -> None:
    """Raise InputError for a rubric with a wording of its own: the blind form has its own prompts."""
    other = [name for name in rubric.asked.templates if name not in OWN_FORM]
    if any(criterion.key for criterion in rubric.criteria):
        other = ["bare answers"]
    if other or rubric.asked.system != "system":
        raise InputError(
            f'form = "blind": the rubric {rubric.name} uses {other[0] if other else rubric.asked.system}, a wording of '
            'its own; the blind form is for the judge of a build: use form = "plain" here'
        )


def _blindly_shown(
    text: str, request: LookRequest | JudgeRequest, edited_first: bool
) -> list[str | EncodedImage]:
    """Return a prompt's text with the two images at their marks, `<a>` and `<b>`."""
    a, b = (request.edited, request.original) if edited_first else (request.original, request.edited)
    return with_images(text, {"a": [a], "b": [b]})


def read_look(text: str, *, edited_first: bool) -> str:
    """Parse a blind judge's first answer; return it as JSON with order, differences and findings.

    Raises:
        Unreadable: no such object was found, or a field of an entry is missing or invalid.
    """
    found = read_object(text, set(_LISTS))
    kept: JsonObject = {"edited_first": edited_first}
    for name, asked in _LISTS.items():
        entries = found.get(name)
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise Unreadable(f"{name} must be a list of objects")
        kept[name] = [_entry(entry, name, asked) for entry in entries]
    return orjson.dumps(kept).decode()


def _entry(entry: JsonObject, name: str, asked: JsonObject) -> JsonObject:
    shown: JsonObject = {}
    for key, schema in asked.items():
        value = entry.get(key)
        if schema == _TEXT and not (isinstance(value, str) and value.strip()):
            raise Unreadable(f"{name}: {key} must be a text")
        if schema == _FLAG and not isinstance(value, bool):
            raise Unreadable(f"{name}: {key} must be true or false")
        if schema == _NUMBER and not _is_share(value):
            continue  # the confidence is optional
        shown[key] = value
    return shown


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def seen_of(look: str) -> BlindDescription:
    """Read a description back from the journal's text (`read_look`). Raise ValueError if `look` is empty."""
    if not look:
        raise ValueError("a judge that looks first needs its first answer in `seen`")
    report = orjson.loads(look)
    lines = [
        f"Difference, {one['place']}: in A {one['in_a']}; in B {one['in_b']}{_sure(one)}"
        for one in report["differences"]
    ] or ["No difference between A and B."]
    lines += [
        f"Finding, {one['name']}, in {_where(one)}: {one['evidence']}{_sure(one)}"
        for one in report["findings"]
    ] or ["No finding in A or in B."]
    return BlindDescription(report["edited_first"], tuple(lines))


def _where(entry: dict[str, object]) -> str:
    letters: Sequence[str] = [letter for letter, key in (("A", "in_a"), ("B", "in_b")) if entry[key]]
    return " and ".join(letters) or "neither"


def _sure(entry: dict[str, object]) -> str:
    return f" (sure to {entry['confidence']:g})" if "confidence" in entry else ""


def in_role(
    role: str,
    options: ProviderOptions,
    language: Callable[[], LanguageModel],
    image: Callable[[], ImageModel],
) -> object:
    """Make a model for a role: "editor" from `image()`; "writer", "judge" or "describer" from `language()`."""
    if role == "editor":
        return HostedEditor(image(), options)
    model = language()
    model.shown_side = options.shown_side
    roles = {"writer": HostedWriter, "judge": HostedJudge, "describer": HostedDescriber}
    return roles[role](model, options)
