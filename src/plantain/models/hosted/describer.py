"""The hosted describer: describes a real pair and proposes procedures, with any provider's language model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plantain.models.hosted.answers import JsonObject, Unreadable, object_schema, read_object
from plantain.models.hosted.asking import LanguageModel, LanguageRole
from plantain.models.hosted.prompts.fill import describe_prompt, procedures_prompt
from plantain.roles import ChangeDescription, DescribeRequest, Reply
from plantain.roles.options import ProviderOptions

VERSION = "1"
"""Version of this adapter, part of fingerprints; raise it with each change of requests or reading."""

LONGEST = 1200
"""Characters of any one answer; longer ones are requested again, never cut."""

_TEXT: JsonObject = {"type": "string"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}
_FIELDS = ("modality", "action", "entity", "region", "context", "prompt", "rephrasings", "description")
DESCRIPTION = object_schema({name: _TEXTS if name == "rephrasings" else _TEXT for name in _FIELDS})
PROCEDURES = object_schema({"procedures": _TEXTS})


class HostedDescriber(LanguageRole):
    """Describes changes with a hosted language model that looks at one image with both sides."""

    def __init__(self, model: LanguageModel, options: ProviderOptions) -> None:
        super().__init__(model, options)
        self.fingerprint = f"describe@{VERSION} {self._asked_by(('describe', 'procedures', 'again'))}"

    async def describe(self, request: DescribeRequest) -> Reply[ChangeDescription]:
        """Return the description of a pair; `malformed` after two unreadable answers. A given prompt is kept."""
        prompt = describe_prompt(self._library, request)
        read = partial(read_description, given=request.prompt)
        return await self._ask(prompt, (request.pair, prompt.text), request.seed, read, DESCRIPTION)

    async def procedures(
        self, organ: str, known: Sequence[str], most: int, seed: int
    ) -> Reply[tuple[str, ...]]:
        """Return at most `most` procedures on an organ that are not known yet."""
        prompt = procedures_prompt(self._library, organ, known, most)
        read = partial(read_procedures, known=known, most=most)
        return await self._ask(prompt, (prompt.text,), seed, read, PROCEDURES)


def read_description(text: str, given: str) -> ChangeDescription:
    """Read a description: every field is required and at most `LONGEST` characters long.

    Args:
        text: the answer.
        given: the owner's prompt, which replaces the one in the answer; "" if there is none.

    Raises:
        Unreadable: a field is missing or too long.
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


def read_procedures(text: str, known: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the procedures that are not known yet. Raise Unreadable if a list of short texts is missing."""
    listed = _list(read_object(text, {"procedures"}), "procedures")
    if any(len(one) > 200 for one in listed):
        raise Unreadable("procedures must be a list of short texts")
    return _new([one.rstrip(".") for one in listed], known)[:most]


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
