"""The provider `gemini`: which of its models are known, and loading one for a role."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from plantain.files.secrets import key_from_environment
from plantain.models.extras import has_module, require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.known import roles_at
from plantain.records import InputError
from plantain.roles.batch_rules import BatchRules
from plantain.roles.options import ForWords, Free, ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.gemini.wire import GeminiTransport, GeminiWire

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
EXTRA = ("gemini", "google.genai", "pybase64")
SENDS_BY = "GOOGLE_GENAI_HTTP_CLIENT"
"""The SDK's own switch: by which package it sends where nobody hands it a client. We do, and it looks all the same."""
MODELS = roles_at("gemini")


class GeminiOptions(ProviderOptions):
    """What Gemini models take at any address. The choices are those of the installed SDK.

    Attributes:
        use_seed: send the call's seed.
        thinking_budget: how much a writer or judge may think in tokens, for models that take a number.
        safety: threshold of the adjustable filters.
        service_tier: how soon and at which price it answers.
    """

    use_seed: bool = True
    thinking: ForWords[Literal["", "none", "minimal", "low", "medium", "high", "xhigh"]] = ""
    thinking_budget: ForWords[int | None] = Field(default=None, ge=-1)
    media_resolution: ForWords[Literal["", "low", "medium", "high"]] = ""
    safety: Literal[
        "", "BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"
    ] = ""
    service_tier: Literal["", "flex", "standard", "priority"] = ""


class Settings(GeminiOptions):
    """`[providers.gemini]`.

    Attributes:
        transport: "batch" sends calls as jobs, at half the price, within a day.
        batch: how large these jobs may become.
    """

    transport: Free[Literal["online", "batch"]] = "online"
    batch: Free[BatchRules] = BatchRules()


def load(name: str, role: str, options: Settings) -> object:
    """The model for a role; an id that we do not know is taken at its word.

    Raises:
        InputError: the extra or the key is missing, or an option is none of Gemini's.
    """
    return role_of(_wire(name, options), role, options)


def role_of(wire: GeminiWire, role: str, options: GeminiOptions) -> object:
    """Return what a model becomes in a role, online or by batch jobs."""
    transport = _transport(wire, options)
    from plantain.models.hosted.editor import HostedEditor
    from plantain.models.hosted.gemini.conversation import GeminiConversation
    from plantain.models.hosted.gemini.picture_model import GeminiPictureModel
    from plantain.models.hosted.writer_and_judge import language_role

    if role == "editor":
        return HostedEditor(GeminiPictureModel(transport, options), options)
    return language_role(role, GeminiConversation(transport, options), options)


async def probe(name: str, options: Settings) -> tuple[bool, str]:
    """One cheap call: a word from a language model, the card of a known editor. Raises as `load` does."""
    return await probe_wire(_wire(name, options), MODELS.get(options.listed or name) == ("editor",), options)


async def probe_wire(wire: GeminiWire, editor: bool, options: GeminiOptions) -> tuple[bool, str]:
    """The same over a connection."""
    from plantain.models.hosted.gemini.conversation import GeminiConversation
    from plantain.models.hosted.probing import probe_card, probe_words

    return await (probe_card(wire) if editor else probe_words(GeminiConversation(wire, options)))


def _transport(wire: GeminiWire, options: GeminiOptions) -> GeminiTransport:
    """The wire itself, or jobs over it."""
    if options.jobs is None:
        return wire
    from plantain.models.hosted.batch.client import BatchClient

    assert isinstance(options.jobs, BatchClient) and isinstance(options, Settings)
    from plantain.models.hosted.gemini.batch import GeminiBatch

    return GeminiBatch(wire, options.jobs, options.batch)


def require_sdk(name: str) -> None:
    """Makes sure that the SDK is there and can open a client. Raises InputError with what to do."""
    require_extra(name, *EXTRA)
    if os.environ.get(SENDS_BY, "").strip().lower() == "httpx" and not has_module("httpx"):
        raise InputError(
            f"{name}: the environment has {SENDS_BY}=httpx, and the package httpx is not installed: unset it, or set "
            "it to httpx2, by which everything is sent here"
        )


def _wire(name: str, options: Settings) -> GeminiWire:
    require_sdk(name)
    key = key_from_environment(
        (options.api_key_env,) if options.api_key_env else KEYS,
        "gemini",
        near=stays_in_the_house(options),
        later=options.key_later,
    )
    from plantain.models.hosted.gemini.wire import GeminiWire

    return GeminiWire(name, key, options)
