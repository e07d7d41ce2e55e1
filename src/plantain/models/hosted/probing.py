"""One cheap call to a model, to see that key, address and id work."""

from __future__ import annotations

from typing import Protocol

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.asking import Conversation, Question
from plantain.models.hosted.faults import Fault

QUESTION = Question("", ("Answer with the word ready.",), seed=0)


class Wire(Protocol):
    """A connection that can ask for a model's card."""

    async def look_up(self) -> JsonObject: ...

    async def aclose(self) -> None: ...


async def probe_words(model: Conversation) -> tuple[bool, str]:
    """Asks a language model for one word; says who answered."""
    try:
        heard = await model.ask(QUESTION)
    finally:
        await model.aclose()
    if not heard.outcome.ok:
        return False, heard.outcome.reason
    served = heard.usage.served_model or "no model named"
    tokens = f"{heard.usage.input_tokens} tokens in, {heard.usage.output_tokens} out"
    return True, f"{heard.problem or heard.text.strip()[:60]} (served by {served}; {tokens})"


async def probe_card(wire: Wire) -> tuple[bool, str]:
    """Asks for an image model's card, which is free; an edit would cost a picture."""
    try:
        await wire.look_up()
    except Fault as fault:
        return False, fault.outcome.reason
    finally:
        await wire.aclose()
    return True, "the provider knows this model (asked for its card, made no picture)"
