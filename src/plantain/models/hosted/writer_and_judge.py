"""The hosted writer, judge and describer: our prompts, any provider's language model, asked at most twice for an answer
that can be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TypeVar

import orjson

from plantain.models.hosted.answers import (
    JsonObject,
    Unreadable,
    read_instruction,
    read_object,
    record,
)
from plantain.models.hosted.editor import HostedEditor, ImageModel
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.prompts import Prompt, describe_prompt, with_images, write_prompt
from plantain.models.hosted.reports import (
    checked_library,
    judge_prompt,
    lines_asked,
    object_schema,
    read_lines,
    read_report,
    report_schema,
    system_of,
)
from plantain.records import OK, Observations, Outcome, OutcomeKind, Rubric, Usage
from plantain.roles import (
    ChangeDescription,
    DescribeRequest,
    EncodedImage,
    JudgeRequest,
    Reply,
    WriteRequest,
    failed,
)
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA, digest_of

T = TypeVar("T")

MOST_ASKS = 2
"""Requests to a writer or judge within one call, at most; a budget reserves that many answers."""

ROOMIER = 2
"""A cut answer is requested again with this multiple of its limit: the same limit would cut it again."""

_COUNTS = [
    one.name
    for one in fields(Usage)
    if one.name.endswith("_tokens") or one.name in ("images", "reported_usd")
]
_NAMES = ("served_model", "tier", "finish_reason", "response_id", "ran_on")

VERSION = "1"
"""Version of this adapter, part of fingerprints; raise it with each change of requests or reading."""

LONGEST = 1200
"""Characters of any one answer; longer ones are requested again, never cut."""

_TEXT: JsonObject = {"type": "string"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}
_FIELDS = ("modality", "action", "entity", "region", "context", "prompt", "rephrasings", "description")
DESCRIPTION = object_schema({name: _TEXTS if name == "rephrasings" else _TEXT for name in _FIELDS})


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a language model.

    Attributes:
        system: the system message; "" for none.
        parts: texts and images in order.
        seed: seed, for providers that accept one.
        schema: JSON schema of the answer; None for plain text.
        room: multiple of the usual limit of an answer's tokens.
    """

    system: str
    parts: tuple[str | EncodedImage, ...] = field(repr=False)
    seed: int
    schema: JsonObject | None = None
    room: int = 1


@dataclass(eq=False)
class LanguageModel:
    """One language model at one provider.

    Attributes:
        name: "provider/model".
        sampling: every setting that its answers depend on.
        send: sends a question; returns the answer's body, or raises Fault.
        read_text, read_usage: read that body; `read_text` raises Fault.
        aclose: closes the connection; the next call opens another.
    """

    name: str
    sampling: str
    send: Callable[[Question], Awaitable[JsonObject]]
    read_text: Callable[[JsonObject], str]
    read_usage: Callable[[JsonObject], Usage]
    aclose: Callable[[], Awaitable[None]]

    async def ask(self, question: Question) -> tuple[str, Usage, JsonObject]:
        """Send a question; return (text, usage, body) of the answer.

        Raises:
            Fault: no answer came, or it cannot be read; then with status 200, usage and body.
        """
        body = await self.send(question)
        del question
        usage = self.read_usage(body)
        try:
            return self.read_text(body), usage, body
        except Fault as fault:
            raise replace(fault, usage=usage, raw=body) from None


class LanguageRole:
    """Base class of hosted writer, judge and describer: a language model and the run's prompts."""

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts)
        self.name = model.name

    async def aclose(self) -> None:
        """Close the connection; it opens again with the next call."""
        await self._model.aclose()

    async def probe(self) -> tuple[bool, str]:
        """Make one cheap call and close the connection; return (True if it was answered, one line on how)."""
        try:
            words, usage, _ = await self._model.ask(Question("", ("Answer with the word ready.",), seed=0))
        except Fault as fault:
            return False, fault.outcome.reason
        finally:
            await self.aclose()
        tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
        return True, f"{words.strip()[:60]} (served by {usage.served_model or 'no model named'}; {tokens})"

    def _asked_by(self, prompts: Iterable[str], system: str = "") -> str:
        """Return model, sampling, and prompts with their hashes, for a fingerprint."""
        labels = ",".join(self._library.label(name, system) for name in prompts)
        return f"{self.name} {self._model.sampling} prompts={labels}"

    async def _ask(
        self,
        prompt: Prompt,
        parts: Sequence[str | EncodedImage],
        seed: int,
        read: Callable[[str], T],
        schema: JsonObject | None = None,
    ) -> Reply[T]:
        """Ask, and ask a second time if the answer cannot be read; then it is malformed.

        An empty or unreadable answer is requested again with the error, a cut one with twice the token limit.

        Args:
            prompt: the prompt whose text is in `parts`.
            parts, seed, schema: as in `Question`.
            read: returns the value of a text, or raises `Unreadable`.

        Returns:
            The value, or the outcome; usage and raw are those of all asks together.
        """
        question = asked = Question(prompt.system, tuple(parts), seed, schema)
        usages: list[Usage] = []
        bodies: list[JsonObject] = []
        problem = ""
        for _ in range(MOST_ASKS):
            words, cut, outcome, before, problem = "", False, OK, problem, ""
            try:
                words, usage, body = await self._model.ask(asked)
            except Fault as fault:
                usage, body, cut, outcome = fault.usage or Usage(), fault.raw, fault.cut, fault.outcome
                if fault.status == 200 and outcome.kind is OutcomeKind.MALFORMED and not outcome.fatal:
                    problem, outcome = outcome.reason, OK
            if usage != Usage() or not outcome.costs_nothing:
                usages.append(usage)
            bodies.append(body)
            total = _together(usages, several=len(bodies) > 1)
            raw = record(prompt.label, self._model.sampling, bodies)
            if not outcome.ok:
                if asked.room > 1 and outcome.kind is OutcomeKind.MALFORMED:
                    # The model refused our doubled limit: the recipe's own setting is not at fault.
                    outcome = Outcome(OutcomeKind.MALFORMED, f"{before} ({outcome.reason})")
                return failed(outcome, total, raw)
            try:
                if not problem:
                    return Reply(read(words), OK, total, raw)
            except Unreadable as error:
                problem = str(error)
            again = self._library.render("again", {"problem": problem, "answer": words}).text
            asked = replace(question, room=ROOMIER) if cut else replace(question, parts=(*parts, again))
        return failed(Outcome(OutcomeKind.MALFORMED, problem), total, raw)


def _together(usages: Sequence[Usage], *, several: bool) -> Usage:
    """Return the usage of several asks: sums of known counts, the latest names, and each ask."""
    if not usages or not several:
        return usages[0] if usages else Usage()
    sums: dict[str, float | None] = {}
    for name in _COUNTS:
        counts = [n for usage in usages if (n := getattr(usage, name)) is not None]
        sums[name] = sum(counts) if counts else None
    latest = {
        name: next(filter(None, (getattr(one, name) for one in reversed(usages))), "") for name in _NAMES
    }
    return Usage(
        asks=tuple(usages),
        **latest,  # type: ignore[arg-type]
        **sums,  # type: ignore[arg-type]
    )


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
    """Parse a describer's answer: every field is required and at most 1,200 characters long.

    Args:
        text: the answer.
        given: the owner's prompt, which replaces the one in the answer; "" if there is none.

    Raises:
        Unreadable: a field is missing or too long, or no rephrasing differs from the prompt.
    """
    found = read_object(text, {"description", "action"})
    texts = {name: _sentence(found.get(name), name) for name in _FIELDS if name != "rephrasings"}
    prompt = given or texts["prompt"]
    listed = found.get("rephrasings")
    if not isinstance(listed, list):
        raise Unreadable("rephrasings must be a list of sentences")
    others: dict[str, str] = {}
    for one in listed:
        sentence = _sentence(one, "rephrasings")
        others.setdefault(_plain(sentence), sentence)
    others.pop(_plain(prompt), None)
    if not others:
        raise Unreadable("rephrasings: none of them differs from the instruction")
    del texts["prompt"]
    return ChangeDescription(prompt=prompt, rephrasings=tuple(others.values()), **texts)


def _plain(text: str) -> str:
    return text.casefold().strip(" .!")


def _sentence(value: object, name: str) -> str:
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
        return await self._ask(prompt, (request.original, prompt.text), request.seed, read_instruction)


class HostedJudge(LanguageRole):
    """A judge of edits by any rubric that uses a hosted language model.

    It requests JSON by the rubric's schema, or MedEBench's published answer format if the prompts do.
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
        """Judge an edit; return observations per criterion, or `malformed` after two unreadable reports."""
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
    """Make a model for a role: "editor" from `image()`; "writer", "judge" or "describer" from `language()`."""
    if role == "editor":
        return HostedEditor(image(), options)
    roles = {"writer": HostedWriter, "judge": HostedJudge, "describer": HostedDescriber}
    return roles[role](language(), options)
