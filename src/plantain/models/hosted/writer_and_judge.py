"""The hosted writer and judge: our prompts, any provider's language model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import orjson

from plantain.models.hosted import blind
from plantain.models.hosted.answers import read_instruction
from plantain.models.hosted.asking import LanguageModel, LanguageRole
from plantain.models.hosted.describer import HostedDescriber
from plantain.models.hosted.editor import HostedEditor, ImageModel
from plantain.models.hosted.prompts.fill import (
    blind_prompt,
    judge_prompt,
    lines_asked,
    system_of,
    with_images,
    write_prompt,
)
from plantain.models.hosted.published import read_lines
from plantain.models.hosted.reports import read_report, report_schema
from plantain.records import Observations, Rubric
from plantain.roles import EncodedImage, JudgeRequest, LookRequest, Reply, WriteRequest
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA, digest_of

VERSION = "1"
"""Version of this adapter, part of fingerprints; raise it with each change of requests or reading."""


class HostedWriter(LanguageRole):
    """Writes instructions with a hosted language model that is shown the original image."""

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        super().__init__(model, options)
        self.fingerprint = f"hosted@{VERSION} {self._asked_by(('write_initial', 'refine', 'again'))}"

    async def write(self, request: WriteRequest) -> Reply[str]:
        """Return an instruction; `malformed` after two unreadable answers."""
        prompt = write_prompt(self._library, request)
        images = (request.original, request.failed_edit) if request.failed_edit else (request.original,)
        return await self._ask(prompt, (*images, prompt.text), request.seed, read_instruction)


class HostedJudge(LanguageRole):
    """Reports on edits by any rubric with a hosted language model.

    Requests JSON by the rubric's schema, or MedEBench's published answer format if the prompts request that. In the
    blind form the first call shows the images without the instruction; see `blind`.
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
            blind.check_blind(rubric)
        templates = (blind.LOOK, blind.JUDGE) if self.looks_first else rubric.asked.templates
        forms = [blind.LOOK_SCHEMA] if self.looks_first else []
        if self.looks_first or not lines_asked(self._library, rubric):
            forms.append(report_schema(rubric))
        prompts = self._asked_by((*templates, "again"), system_of(rubric))
        schema = hashlib.sha256(orjson.dumps(forms)).hexdigest()[:12]
        known = f"{rubric.name}@{rubric.version}:{digest_of(rubric)[:12]}"
        form = " form=blind" if self.looks_first else ""
        return f"hosted@{VERSION} {prompts} leniency={self._leniency}{form} rubric={known} schema={schema}"

    async def look(self, request: LookRequest) -> Reply[str]:
        """Return the first turn of the blind form as JSON: differences between two images, and findings of each.

        The request contains neither instruction, finding nor case; `malformed` after two unreadable answers.
        """
        prompt, first = self._library.render("look", {}), request.edited_first
        parts = blind.shown(prompt.text, request, first)
        read = partial(blind.read_look, edited_first=first)
        return await self._ask(prompt, parts, request.seed, read, blind.LOOK_SCHEMA)

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Return observations per criterion; `malformed` after two incomplete or unreadable reports.

        In the blind form `request.seen` is the reply of `look`.
        """
        rubric, seen = request.rubric, ""
        lines = () if self.looks_first else lines_asked(self._library, rubric)
        if self.looks_first:
            looked = blind.seen_of(request.seen)
            prompt = blind_prompt(self._library, request, self._leniency, looked.letters, looked.lines)
            parts, seen = blind.shown(prompt.text, request, looked.edited_first), looked.description()
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
    named = zip(request.rubric.asked.pictures, images.values(), strict=True)
    return [part for label, image in named if image for part in (label, image) if part] + parts


def in_role(
    role: str,
    options: ProviderOptions,
    language: Callable[[], LanguageModel],
    image: Callable[[], ImageModel],
) -> object:
    """Return a provider's model in a role: "editor" by an image model; "writer", "judge" or "describer" by text."""
    if role == "editor":
        return HostedEditor(image(), options)
    model = language()
    model.shown_side = options.shown_side
    roles = {"writer": HostedWriter, "judge": HostedJudge, "describer": HostedDescriber}
    return roles[role](model, options)
