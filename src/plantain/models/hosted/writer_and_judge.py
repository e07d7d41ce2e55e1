"""The hosted writer, judge and describer: our prompts, any provider's language model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
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
    judge_prompt,
    lines_asked,
    read_lines,
    read_report,
    report_schema,
    system_of,
)
from plantain.records import Observations, Rubric
from plantain.roles import (
    ChangeDescription,
    DescribeRequest,
    EncodedImage,
    JudgeRequest,
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
    """Describes changes with a hosted language model that looks at one image with both sides."""

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        super().__init__(model, options)
        self.fingerprint = f"describe@{VERSION} {self._asked_by(('describe', 'again'))}"

    async def describe(self, request: DescribeRequest) -> Reply[ChangeDescription]:
        """Return the description of a pair; `malformed` after two unreadable answers. A given prompt is kept."""
        prompt = describe_prompt(self._library, request)
        read = partial(read_description, given=request.prompt)
        return await self._ask(prompt, (request.pair, prompt.text), request.seed, read, DESCRIPTION)


def read_description(text: str, given: str) -> ChangeDescription:
    """Return the description in a model's answer: every field is required and at most `LONGEST` characters long.

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
    """Writes instructions with a hosted language model that is shown the original image."""

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        super().__init__(model, options)
        self.fingerprint = f"hosted@{VERSION} {self._asked_by(('write_initial', 'refine', 'again'))}"

    async def write(self, request: WriteRequest) -> Reply[str]:
        """Return an instruction; `malformed` after two unreadable answers."""
        prompt = write_prompt(self._library, request)
        return await self._ask(prompt, (request.original, prompt.text), request.seed, read_instruction)


class HostedJudge(LanguageRole):
    """Reports on edits by any rubric with a hosted language model.

    Requests JSON by the rubric's schema, or MedEBench's published answer format if the prompts request that.
    """

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        super().__init__(model, options)
        self.fingerprint = self.fingerprint_by(MED_BANANA)

    def fingerprint_by(self, rubric: Rubric) -> str:
        """Return the fingerprint for a rubric: its prompts, its schema, and the model's settings.

        Raises:
            InputError: the rubric names an unknown template.
        """
        forms = [] if lines_asked(self._library, rubric) else [report_schema(rubric)]
        prompts = self._asked_by((*rubric.asked.templates, "again"), system_of(rubric))
        schema = hashlib.sha256(orjson.dumps(forms)).hexdigest()[:12]
        known = f"{rubric.name}@{rubric.version}:{digest_of(rubric)[:12]}"
        return f"hosted@{VERSION} {prompts} rubric={known} schema={schema}"

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Return observations per criterion; `malformed` after two incomplete or unreadable reports."""
        rubric, lines = request.rubric, lines_asked(self._library, request.rubric)
        prompt = judge_prompt(self._library, request)
        schema = None if lines else report_schema(rubric)

        def read(text: str) -> Observations:
            return read_lines(text, rubric, lines) if lines else read_report(text, rubric, request.direction)

        return await self._ask(prompt, _shown(prompt.text, request), request.seed, read, schema)


def _shown(text: str, request: JudgeRequest) -> list[str | EncodedImage]:
    """Return a judge's prompt with its images: at their marks, or before the text, each after its name."""
    images = {"before": request.original, "edited": request.edited, "truth": request.truth}
    parts = with_images(text, {name: [image] if image else [] for name, image in images.items()})
    if len(parts) > 1:
        return parts
    named = zip(request.rubric.asked.captions, images.values(), strict=True)
    return [part for label, image in named if image for part in (label, image) if part] + parts


def in_role(
    role: str,
    options: ProviderOptions,
    language: Callable[[], LanguageModel],
    image: Callable[[], ImageModel],
) -> object:
    """Return a provider's model in a role: "editor" with `image`; "writer", "judge" or "describer" with `language`."""
    if role == "editor":
        return HostedEditor(image(), options)
    model = language()
    model.shown_side = options.shown_side
    roles = {"writer": HostedWriter, "judge": HostedJudge, "describer": HostedDescriber}
    return roles[role](model, options)
