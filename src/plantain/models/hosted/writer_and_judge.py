"""The hosted writer and judge: our prompts, any provider's language model."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial

import orjson

from plantain.models.hosted import blind
from plantain.models.hosted.answers import JsonObject, Unreadable, read_instruction
from plantain.models.hosted.asking import MOST_ASKS, Conversation, Question, ShownSmaller, ask_until_readable
from plantain.models.hosted.describer import HostedDescriber
from plantain.models.hosted.prompts import (
    Prompt,
    PromptLibrary,
    blind_prompt,
    checked_library,
    form_asked,
    judge_prompt,
    look_prompt,
    system_of,
    write_prompt,
)
from plantain.models.hosted.reports import Declined, Incomplete, read_report, report_schema
from plantain.records import Observations, Outcome, OutcomeKind, Rubric
from plantain.roles import EncodedImage, JudgeRequest, LookRequest, Reply, WriteRequest, failed
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA, digest_of

VERSION = "1"
"""Of this adapter; raised when the same model and prompt could be asked or read differently."""


class HostedWriter:
    """Writes instructions with a hosted language model, looking at the original picture."""

    def __init__(self, model: Conversation, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts)
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
    """Reports on edits by any rubric with a hosted language model, looking at the pictures.

    MedEBench's paper draws its two steps, differences and scores, as two; its published judge answers both at once, and
    so does this one: each draw is one call. A folder's own wording that asks for no JSON gets none: the answer is read
    as it comes, and asked for once. In the blind form it looks at the pictures alone in a call before; see `blind`.
    """

    def __init__(self, model: Conversation, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts)
        self._leniency = options.leniency
        self.looks_first = options.form == "blind"
        self.name = model.name
        self.fingerprint = self.fingerprint_by(MED_BANANA)

    def fingerprint_by(self, rubric: Rubric) -> str:
        """The prompts and the schema that the rubric makes, and how the model is asked.

        Raises:
            InputError: the rubric names a template that there is not.
        """
        if self.looks_first:
            blind.check_blind(rubric)
        templates = (blind.LOOK, blind.JUDGE) if self.looks_first else rubric.asked.templates
        forms = [blind.LOOK_SCHEMA, report_schema(rubric)] if self.looks_first else [self._form(rubric)]
        prompts = _fingerprint(self._library, self._model, (*templates, "again"), system_of(rubric))
        schema = hashlib.sha256(orjson.dumps(forms)).hexdigest()[:12]
        known = f"{rubric.name}@{rubric.version}:{digest_of(rubric)[:12]}"
        form = " form=blind" if self.looks_first else ""
        return f"{prompts} leniency={self._leniency}{form} rubric={known} schema={schema}"

    async def look(self, request: LookRequest) -> Reply[str]:
        """The first turn of the blind form: what differs between two pictures and which findings are in which, as JSON.

        The model learns nothing of instruction, finding or case; `malformed` when nothing could be read twice.
        """
        prompt, first = look_prompt(self._library), request.edited_first
        parts = blind.shown(prompt.text, request, first)
        question = Question(prompt.system, tuple(parts), request.seed, blind.LOOK_SCHEMA)
        read = partial(blind.read_look, edited_first=first)
        return await ask_until_readable(self._model, question, prompt, self._library, read)

    def _put(self, request: JudgeRequest) -> tuple[Prompt, list[str | EncodedImage], str]:
        """The prompt, what is shown with it in order, and what was seen before in words."""
        if self.looks_first:
            seen = blind.seen_of(request.seen)
            prompt = blind_prompt(self._library, request, self._leniency, seen.letters, seen.lines)
            return prompt, blind.shown(prompt.text, request, seen.edited_first), seen.description()
        prompt = judge_prompt(self._library, request, self._leniency)
        pictures = (request.original, request.edited, request.truth)
        shown = [
            part
            for pair in zip(request.rubric.asked.pictures, pictures, strict=True)
            if pair[1]
            for part in pair
            if part
        ]
        return prompt, [*shown, prompt.text], ""

    def question(self, request: JudgeRequest) -> Question:
        """What it asks of an edit, in words and pictures; a judge that learns from verdicts is asked the same."""
        return self._asked(request)[1]

    def _asked(self, request: JudgeRequest) -> tuple[Prompt, Question, str]:
        """The prompt, the question that it makes, and what was seen before in words."""
        prompt, shown, seen = self._put(request)
        form = report_schema(request.rubric) if self.looks_first else self._form(request.rubric)
        return prompt, Question(prompt.system, tuple(shown), request.seed, form), seen

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Observations per criterion; never a default. In the blind form `request.seen` is what `look` gave.

        An answer that lacks some numbers is asked for again once, and then taken with those that it has; the others
        are unscored with the reason. A judge that says that it will not is `refused`, a report that could not be read
        twice `malformed`.
        """
        rubric = request.rubric
        prompt, question, seen = self._asked(request)
        unread: list[Unreadable] = []

        def read(text: str) -> Observations:
            try:
                return read_report(text, rubric)
            except Unreadable as error:
                unread.append(error)
                raise

        reply = await ask_until_readable(
            self._model, question, prompt, self._library, read, 1 if question.schema is None else MOST_ASKS
        )
        if reply.value is not None:
            return replace(reply, value=replace(reply.value, differences=seen or reply.value.differences))
        if reply.outcome.kind is not OutcomeKind.MALFORMED:
            return reply
        partial = [error.report for error in unread if isinstance(error, Incomplete)]
        best = max(partial, key=_scored, default=None)
        if best is not None and _scored(best):
            best = replace(best, differences=seen or best.differences)
            return Reply(best, usage=reply.usage, raw=reply.raw)
        for error in reversed(unread):
            if isinstance(error, Declined):
                return failed(Outcome(OutcomeKind.REFUSED, str(error)), reply.usage, reply.raw)
        return reply

    def _form(self, rubric: Rubric) -> JsonObject | None:
        """The schema; None where numbers are asked for in a folder's own wording that wants no JSON."""
        in_numbers = all(criterion.scale is not None for criterion in rubric.criteria)
        return None if in_numbers and not form_asked(self._library, rubric) else report_schema(rubric)

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._model.aclose()


def _scored(report: Observations) -> int:
    """How many criteria are scored."""
    return sum(result.passed is not None for result in report.criteria.values())


def language_role(role: str, model: Conversation, options: ProviderOptions) -> object:
    """What a language model becomes in a role: "writer", "judge" or "describer"."""
    if options.shown_side is not None:
        model = ShownSmaller(model, options.shown_side)
    if role == "describer":
        return HostedDescriber(model, options)
    return HostedWriter(model, options) if role == "writer" else HostedJudge(model, options)


def _fingerprint(
    library: PromptLibrary, model: Conversation, prompts: tuple[str, ...], system: str = ""
) -> str:
    labels = ",".join(library.label(name, system) for name in prompts)
    return f"hosted@{VERSION} {model.name} {model.sampling} prompts={labels}"
