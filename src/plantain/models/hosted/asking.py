"""Ask a language model at most twice for a readable answer, with prompts checked before the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

import orjson

from plantain.models.hosted.answers import JsonObject, Unreadable, scrub
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.prompts import Prompt, PromptLibrary, case_of
from plantain.models.hosted.reports import blind_prompt, example_case, example_of, judge_prompt
from plantain.pixels.decode import declared_size, decode_untrusted
from plantain.pixels.encode import encode_png, resize
from plantain.privacy.permission import made_from
from plantain.records import BUILD_DIRECTIONS, OK, Asked, Outcome, OutcomeKind, Usage
from plantain.roles import EncodedImage, Reply, failed
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA, MEDEBENCH

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
        shown_side: longest side in pixels to which images are reduced; None: not reduced.
    """

    name: str
    sampling: str
    send: Callable[[Question], Awaitable[JsonObject]]
    read_text: Callable[[JsonObject], str]
    read_usage: Callable[[JsonObject], Usage]
    aclose: Callable[[], Awaitable[None]]
    shown_side: int | None = None

    async def ask(self, question: Question) -> tuple[str, Usage, JsonObject]:
        """Send a question; return (text, usage, body) of the answer.

        Raises:
            Fault: no answer came, or it cannot be read; then with status 200, usage and body.
        """
        if self.shown_side is not None:
            question = await asyncio.to_thread(_smaller, question, self.shown_side)
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


def checked_library(folder: Path | None) -> PromptLibrary:
    """Load the prompts of a run, and render all of a user's templates once to find errors before any call.

    Raises:
        InputError: a file cannot be read or rendered, or its name is not that of a template.
    """
    library = PromptLibrary(folder)
    if folder is not None:
        _render_all(library)
    return library


def _render_all(library: PromptLibrary) -> None:
    finding, image = example_case()
    result = dict.fromkeys(("name", "codes", "evidence"), "example") | {"passed": False}
    attempt = {"round": 1, "results": [result], "judged": True, "has_disease": False, "other_disease": False}
    attempt |= {"instruction": "example", "reason": "example"}
    history = [{**attempt, "outcome": "example"}, {**attempt, "outcome": ""}]
    for direction in BUILD_DIRECTIONS:
        case = case_of(finding, image, direction)
        library.render("write_initial", case)
        library.render("refine", {**case, "history": history, "shows_failed_edit": True})
        plain = [replace(rubric, asked=Asked()) for rubric in (MED_BANANA, MEDEBENCH)]
        for rubric in (MED_BANANA, MEDEBENCH, *plain):
            full = replace(example_of(rubric), direction=direction)
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


def _smaller(question: Question, side: int) -> Question:
    parts = (part if isinstance(part, str) else shown_at(part, side) for part in question.parts)
    return replace(question, parts=tuple(parts))


def shown_at(image: EncodedImage, side: int) -> EncodedImage:
    """Reduce an image to at most `side` pixels on its longer side, as PNG; a smaller one is unchanged."""
    width, height = declared_size(image.data)
    longer = max(width, height)
    if longer <= side:
        return image
    pixels = decode_untrusted(image.data, "image")
    small = resize(pixels, max(1, round(width * side / longer)), max(1, round(height * side / longer)))
    return EncodedImage(made_from(encode_png(small), image.data), "image/png")


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
        thought_summary="\n".join(usage.thought_summary for usage in usages if usage.thought_summary),
        asks=tuple(replace(usage, thought_summary="") for usage in usages),
        **latest,  # type: ignore[arg-type]
        **sums,  # type: ignore[arg-type]
    )


def record(prompt: str, sampling: str, answers: Sequence[JsonObject]) -> str:
    """Return a call's record for the journal as JSON: prompt label, sampling, and the shortened body of each answer."""
    kept = {"prompt": prompt, "sampling": sampling, "answers": [scrub(answer) for answer in answers]}
    return orjson.dumps(kept).decode()
