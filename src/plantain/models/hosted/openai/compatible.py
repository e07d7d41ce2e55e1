"""The provider `openai-compatible`: any server that speaks OpenAI's chat format (vLLM, SGLang, Ollama, a gateway)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from plantain.files.secrets import Secret, key_from_environment
from plantain.models.extras import require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.openai.provider import EXTRA
from plantain.records import InputError
from plantain.roles.options import ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.openai.chat import ChatConversation

KEYS = ("OPENAI_COMPATIBLE_API_KEY",)
MODELS: dict[str, tuple[str, ...]] = {}
TAKES = frozenset({"temperature", "top_p", "use_seed", "thinking", "max_output_tokens", "form"})


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The model for a role: writer or judge. A key is optional; OpenAI's own key is never sent to another server.

    Raises:
        InputError: no base_url, no extra, an editor was asked for, or an option that this format does not have.
    """
    if role == "editor":
        raise InputError(f"models.editor: {name!r} can be a writer or a judge, not an editor")
    conversation = _conversation(name, options)
    from plantain.models.hosted.writer_and_judge import language_role

    return language_role(role, conversation, options)


async def probe(name: str, options: ProviderOptions) -> tuple[bool, str]:
    """One cheap call: a word. Raises as `load` does."""
    conversation = _conversation(name, options)
    from plantain.models.hosted.probing import probe_words

    return await probe_words(conversation)


def _conversation(name: str, options: ProviderOptions) -> ChatConversation:
    require_extra(name, *EXTRA)
    options.check("openai-compatible", TAKES)
    if options.jobs is not None:
        raise InputError(
            'providers.openai-compatible.transport: "batch" is Gemini\'s and OpenAI\'s own; use "online"'
        )
    if not options.base_url:
        raise InputError(
            "providers.openai-compatible.base_url: is missing; say where the server is, e.g. http://127.0.0.1:8000/v1"
        )
    from plantain.models.hosted.openai.chat import ChatConversation
    from plantain.models.hosted.openai.wire import OpenAIWire

    return ChatConversation(OpenAIWire(name, _key(options), options, options.base_url), options)


def _key(options: ProviderOptions) -> Secret:
    if options.api_key_env:
        return key_from_environment(
            (options.api_key_env,),
            "openai-compatible",
            near=stays_in_the_house(options),
            later=options.key_later,
        )
    if not any(os.environ.get(name, "").strip() for name in KEYS):
        return Secret("")
    return key_from_environment(
        KEYS, "openai-compatible", near=stays_in_the_house(options), later=options.key_later
    )
