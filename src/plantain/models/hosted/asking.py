"""Asking a language model until its answer can be read: twice at most, and never a guess in place of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

import orjson

from plantain.models.hosted.answers import JsonObject, Unreadable
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.pictures import shown_at
from plantain.models.hosted.prompts import Prompt, PromptLibrary
from plantain.records import OK, Outcome, OutcomeKind, Usage
from plantain.roles import EncodedImage, Reply, failed

T = TypeVar("T")

MOST_ASKS = 2
"""How often a writer or judge may be asked within one call; a budget reserves that many answers."""

ROOMIER = 2
"""An answer that was cut at its limit is asked for again under this multiple of it: the same would be cut again."""

_ADDED = tuple(
    name for name in (f.name for f in fields(Usage)) if name.endswith("_tokens") or name == "images"
)


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a language model.

    Attributes:
        system: who it is and how data is marked.
        parts: texts and pictures in order.
        seed: for providers that take one.
        schema: JSON schema of the answer; None for plain text.
        room: multiple of the usual limit of an answer's tokens.
    """

    system: str
    parts: tuple[str | EncodedImage, ...] = field(repr=False)
    seed: int
    schema: JsonObject | None = None
    room: int = 1


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer of a language model.

    Attributes:
        text: its words.
        usage, raw: what it consumed, and the body as JSON.
        outcome: not ok where there was no answer to read; then there is nothing to ask again.
        problem: why the words cannot be used though there was an answer (cut, empty); "" where they can.
        cut: it ended at its limit.
    """

    text: str = ""
    usage: Usage = field(default_factory=Usage)
    raw: str = "{}"
    outcome: Outcome = OK
    problem: str = ""
    cut: bool = False


async def hear(
    sent: Awaitable[JsonObject],
    read_text: Callable[[JsonObject], str],
    read_usage: Callable[[JsonObject], Usage],
    scrub: Callable[[JsonObject], object],
) -> Heard:
    """Waits for an answer and reads it; an answer that came but is cut or empty is a problem, a fault an outcome."""
    usage, raw = Usage(), "{}"
    try:
        body = await sent
        usage, raw = read_usage(body), orjson.dumps(scrub(body)).decode()
        return Heard(read_text(body), usage, raw)
    except Fault as fault:
        usage = fault.usage or usage
        if fault.raw:
            raw = orjson.dumps(fault.raw).decode()
        answered = fault.status == 200 and fault.outcome.kind is OutcomeKind.MALFORMED
        if answered and not fault.outcome.fatal:
            return Heard("", usage, raw, problem=fault.outcome.reason, cut=fault.cut)
        return Heard("", usage, raw, outcome=fault.outcome)


class Conversation(Protocol):
    """One language model at one provider; `sampling` names all, beside the question, that its answers depend on."""

    @property
    def name(self) -> str: ...

    @property
    def sampling(self) -> str: ...

    async def ask(self, question: Question) -> Heard: ...

    async def aclose(self) -> None: ...


class ShownSmaller:
    """A language model that is shown every picture at a longest side; `sampling` says so."""

    def __init__(self, model: Conversation, side: int) -> None:
        self._model, self._side = model, side
        self.name, self.sampling = model.name, model.sampling

    async def ask(self, question: Question) -> Heard:
        """The answer, to a question whose pictures were made smaller."""
        return await self._model.ask(await asyncio.to_thread(with_smaller, question, self._side))

    async def aclose(self) -> None:
        await self._model.aclose()


def with_smaller(question: Question, side: int) -> Question:
    """A question whose pictures are no longer than `side` pixels. Decodes."""
    parts = (part if isinstance(part, str) else shown_at(part, side) for part in question.parts)
    return replace(question, parts=tuple(parts))


@dataclass(frozen=True, slots=True)
class _SecondAsk:
    """What a second ask has beside the first: room, and what was said of the first answer."""

    room: int
    parts: tuple[str | EncodedImage, ...]

    def asked(self, question: Question) -> Question:
        return replace(question, room=self.room, parts=(*question.parts, *self.parts))


_PASSING = frozenset({OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED})
_SECOND_ASKS: WeakKeyDictionary[Conversation, dict[tuple[object, ...], _SecondAsk]] = WeakKeyDictionary()
"""Second asks that the wire has failed, by the seed and words of their questions, until their calls are tried again."""


async def ask_until_readable(
    model: Conversation,
    question: Question,
    prompt: Prompt,
    library: PromptLibrary,
    read: Callable[[str], T],
    asks: int = MOST_ASKS,
) -> Reply[T]:
    """Asks, and asks once more where the answer is unusable; then it is malformed.

    An empty or unreadable answer is asked for again with the error, a cut one with twice the room. Where the wire fails
    the second ask, the next try of the call begins with that ask: what the first one brought is not bought again.

    Args:
        read: makes the value of a text, or raises `Unreadable`.
        asks: how often at most.

    Returns:
        The value, or the outcome; usage and raw are those of all asks together.
    """
    usages: list[Usage] = []
    raws: list[str] = []
    problem = ""
    left = _SECOND_ASKS.setdefault(model, {})
    words = (question.seed, *(part for part in question.parts if isinstance(part, str)))
    second = left.pop(words, None)
    asked = second.asked(question) if second else question
    for number in range(1 if second else 0, asks):
        heard = await model.ask(asked)
        if heard.usage != Usage() or not heard.outcome.costs_nothing:
            usages.append(heard.usage)
        usage = together(usages, several=len(raws) > 0)
        raws.append(heard.raw)
        raw = record(prompt.label, model.sampling, raws)
        if not heard.outcome.ok:
            if asked.room > question.room and heard.outcome.kind is OutcomeKind.MALFORMED:
                # Twice the room was more than this model has: that is no fault of the setting that the recipe names.
                return failed(
                    Outcome(OutcomeKind.MALFORMED, f"{problem} ({heard.outcome.reason})"), usage, raw
                )
            if number and heard.outcome.kind in _PASSING:
                left[words] = _SecondAsk(asked.room, asked.parts[len(question.parts) :])
            return failed(heard.outcome, usage, raw)
        problem = heard.problem
        if not problem:
            try:
                return Reply(read(heard.text), OK, usage, raw)
            except Unreadable as error:
                problem = str(error)
        if heard.cut:
            asked = replace(question, room=ROOMIER)
        else:
            again = library.render("again", {"problem": problem, "answer": heard.text})
            asked = replace(question, parts=(*question.parts, again.text))
    return failed(Outcome(OutcomeKind.MALFORMED, problem), usage, raw)


def together(usages: Sequence[Usage], *, several: bool) -> Usage:
    """Usage of several asks: counts added where any is known, names of the latest one that has any, and each ask."""
    if not usages or not several:
        return usages[0] if usages else Usage()

    def latest(name: str) -> str:
        return next((value for usage in reversed(usages) if (value := getattr(usage, name))), "")

    sums: dict[str, int | None] = {}
    for name in _ADDED:
        counts = [n for usage in usages if (n := getattr(usage, name)) is not None]
        sums[name] = sum(counts) if counts else None
    return Usage(
        served_model=latest("served_model"),
        tier=latest("tier"),
        finish_reason=latest("finish_reason"),
        response_id=latest("response_id"),
        thought_summary="\n".join(usage.thought_summary for usage in usages if usage.thought_summary),
        ran_on=latest("ran_on"),
        asks=tuple(replace(usage, thought_summary="") for usage in usages),
        **sums,
    )


def record(prompt: str, sampling: str, answers: list[str], note: str = "") -> str:
    """What the journal keeps of a call as raw: which prompt, how it was asked, and every answer."""
    kept: dict[str, object] = {"prompt": prompt, "sampling": sampling}
    if note:
        kept["note"] = note
    kept["answers"] = [orjson.Fragment(answer or "{}") for answer in answers]
    return orjson.dumps(kept).decode()
