"""The hosted writer and judge: our prompts, any provider's language model."""

from __future__ import annotations

import hashlib

import orjson

from plantain.models.hosted.answers import read_instruction, read_report, report_schema
from plantain.models.hosted.asking import Conversation, Question, ask_until_readable
from plantain.models.hosted.describer import HostedDescriber
from plantain.models.hosted.prompts import PromptLibrary, checked_library, judge_prompt, write_prompt
from plantain.models.hosted.scale_judge import HostedScaleJudge
from plantain.records import Observations
from plantain.roles import JudgeRequest, Reply, WriteRequest
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA

VERSION = "1"
"""Of this adapter; raised when the same model and prompt could be asked or read differently."""


class HostedWriter:
    """Writes instructions with a hosted language model, looking at the original picture."""

    def __init__(self, model: Conversation, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts, options.edition)
        self.name = model.name
        self.fingerprint = _fingerprint(self._library, model, ("write_initial", "refine", "again"))

    async def write(self, request: WriteRequest) -> Reply[str]:
        """An instruction; `malformed` when none could be read twice."""
        prompt = write_prompt(self._library, request)
        pictures = (request.original, request.failed_edit) if request.failed_edit else (request.original,)
        question = Question(prompt.system, (*pictures, prompt.text), request.seed)
        return await ask_until_readable(self._model, question, prompt, self._library, read_instruction)

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._model.aclose()


class HostedJudge:
    """Reports on edits with a hosted language model, looking at original and edited picture."""

    def __init__(self, model: Conversation, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts, options.edition)
        self._leniency = options.leniency
        self.name = model.name
        schema = hashlib.sha256(orjson.dumps(report_schema(MED_BANANA))).hexdigest()[:12]
        prompts = _fingerprint(self._library, model, ("judge_add", "judge_remove", "again"))
        self.fingerprint = f"{prompts} leniency={self._leniency} schema={schema}"

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Observations per criterion; `malformed` when the report could not be read twice. Never a default."""
        prompt = judge_prompt(self._library, request, self._leniency)
        question = Question(
            prompt.system,
            ("Original:", request.original, "Edited:", request.edited, prompt.text),
            request.seed,
            report_schema(request.rubric),
        )
        return await ask_until_readable(
            self._model, question, prompt, self._library, lambda text: read_report(text, request.rubric)
        )

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._model.aclose()


def language_role(role: str, model: Conversation, options: ProviderOptions) -> object:
    """What a language model becomes in a role: "writer", "judge", "scale judge" or "describer"."""
    if role == "describer":
        return HostedDescriber(model, options)
    if role == "writer":
        return HostedWriter(model, options)
    return HostedScaleJudge(model, options) if role == "scale judge" else HostedJudge(model, options)


def _fingerprint(library: PromptLibrary, model: Conversation, prompts: tuple[str, ...]) -> str:
    labels = ",".join(library.label(name) for name in prompts)
    return f"hosted@{VERSION} {model.name} {model.sampling} prompts={labels}"
