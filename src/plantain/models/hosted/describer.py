"""The hosted describer: puts a real pair into words, and names procedures, with any provider's language model."""

from __future__ import annotations

from collections.abc import Sequence

from plantain.models.hosted.answers import JsonObject, Unreadable, read_object
from plantain.models.hosted.asking import Conversation, Question, ask_until_readable
from plantain.models.hosted.prompts import checked_library, describe_prompt, procedures_prompt
from plantain.roles import ChangeDescription, DescribeRequest, Reply
from plantain.roles.options import ProviderOptions

VERSION = "1"
"""Of this adapter; raised when the same model and prompt could be asked or read differently."""

LONGEST = 1200
"""Characters of any one answer; longer ones are asked for again, never cut."""

_TEXTS = ("modality", "action", "entity", "region", "context", "prompt", "description")


class HostedDescriber:
    """Describes changes with a hosted language model that looks at one picture with both images."""

    def __init__(self, model: Conversation, options: ProviderOptions) -> None:
        self._model = model
        self._library = checked_library(options.prompts)
        self.name = model.name
        labels = ",".join(self._library.label(name) for name in ("describe", "procedures", "again"))
        self.fingerprint = f"describe@{VERSION} {model.name} {model.sampling} prompts={labels}"

    async def describe(self, request: DescribeRequest) -> Reply[ChangeDescription]:
        """The pair in words; `malformed` when they could not be read twice. A prompt that was given stays as it is."""
        prompt = describe_prompt(self._library, request)
        question = Question(prompt.system, (request.pair, prompt.text), request.seed, description_schema())
        return await ask_until_readable(
            self._model, question, prompt, self._library, lambda text: read_description(text, request.prompt)
        )

    async def procedures(
        self, organ: str, known: Sequence[str], most: int, seed: int
    ) -> Reply[tuple[str, ...]]:
        """Procedures on an organ that are not known yet, at most so many."""
        prompt = procedures_prompt(self._library, organ, known, most)
        texts: JsonObject = {"type": "array", "items": {"type": "string"}}
        question = Question(prompt.system, (prompt.text,), seed, _object({"procedures": texts}))
        return await ask_until_readable(
            self._model, question, prompt, self._library, lambda text: read_procedures(text, known, most)
        )

    async def aclose(self) -> None:
        """Closes the connection; it opens again with the next call."""
        await self._model.aclose()


def description_schema() -> JsonObject:
    """The JSON schema of a description, in the subset that both providers' strict modes take."""
    properties: JsonObject = {}
    for name in (*_TEXTS[:-1], "rephrasings", _TEXTS[-1]):
        properties[name] = (
            {"type": "array", "items": {"type": "string"}} if name == "rephrasings" else {"type": "string"}
        )
    return _object(properties)


def read_description(text: str, given: str) -> ChangeDescription:
    """A description from an answer: every part must be there, whole and of sensible length.

    Args:
        text: the answer.
        given: the prompt that the owner wrote, which is kept whatever the answer says; "" where there is none.

    Raises:
        Unreadable: says what is missing or too long.
    """
    found = read_object(text, {"description", "action"})
    texts = {name: _text(found, name) for name in _TEXTS}
    prompt = given or texts["prompt"]
    listed = found.get("rephrasings")
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise Unreadable("rephrasings must be a list of sentences")
    others = _others([" ".join(one.split()) for one in listed], [prompt])
    if not others:
        raise Unreadable("rephrasings: none of them differs from the instruction")
    if any(len(one) > LONGEST for one in others):
        raise Unreadable("rephrasings: one is far longer than a sentence")
    del texts["prompt"]
    return ChangeDescription(prompt=prompt, rephrasings=others, **texts)


def read_procedures(text: str, known: Sequence[str], most: int) -> tuple[str, ...]:
    """Procedures from an answer, without those that are known.

    Raises:
        Unreadable: there is no list of texts.
    """
    listed = read_object(text, {"procedures"}).get("procedures")
    if not isinstance(listed, list) or not all(isinstance(one, str) and len(one) <= 200 for one in listed):
        raise Unreadable("procedures must be a list of short texts")
    return _others([" ".join(one.split()).rstrip(".") for one in listed], known)[:most]


def _others(proposed: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """What is said, each once and none of what is known, whatever case and full stop."""
    seen = {_plain(one) for one in known} | {""}
    kept = []
    for one in proposed:
        if _plain(one) not in seen:
            seen.add(_plain(one))
            kept.append(one)
    return tuple(kept)


def _plain(text: str) -> str:
    return text.casefold().strip(" .!")


def _text(found: JsonObject, name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"{name} is missing")
    if len(value) > LONGEST:
        raise Unreadable(f"{name} has {len(value)} characters; a sentence was asked for")
    return " ".join(value.split())


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
