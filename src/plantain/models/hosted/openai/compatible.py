"""The provider `openai-compatible`: any server that speaks OpenAI's formats (vLLM, SGLang, Ollama, a gateway).

A section `[providers.NAME] kind = "openai-compatible"` makes a provider of its own of it: a named endpoint.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from plantain.files.secrets import Secret, key_from_environment
from plantain.models.extras import require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.openai.provider import EXTRA
from plantain.models.hosted.openai.servers import ServerProfile, server_named
from plantain.records import InputError
from plantain.roles.options import ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.openai.endpoints import Endpoints
    from plantain.models.hosted.openai.survey import ProbedAddress

KIND = "openai-compatible"
KEYS = ("OPENAI_COMPATIBLE_API_KEY",)
MODELS: dict[str, tuple[str, ...]] = {}
EDITS = frozenset(
    {
        "image_size",
        "image_quality",
        "output_format",
        "background",
        "input_fidelity",
        "steps",
        "guidance",
        "true_cfg_scale",
        "negative_prompt",
        "mask",
    }
)
TAKES = EDITS | {
    "temperature",
    "top_p",
    "use_seed",
    "thinking",
    "max_output_tokens",
    "media_resolution",
    "server",
    "base_urls",
    "form",
}
CHOICES = {
    "thinking": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "media_resolution": ("low", "high", "auto"),
    "output_format": ("png", "jpeg", "webp"),
    "background": ("opaque", "auto"),
    "input_fidelity": ("low", "high"),
}


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The model for a role. A key is optional; OpenAI's own key is never sent to another server.

    Raises:
        InputError: no base_url, no extra, or an option that this format or kind of server does not have.
    """
    server, wire = _server(name, options), _endpoints(name, options)
    from plantain.models.hosted.editor import HostedEditor
    from plantain.models.hosted.openai.chat import ChatConversation
    from plantain.models.hosted.openai.served_editor import ServedPictureModel
    from plantain.models.hosted.writer_and_judge import language_role

    if role == "editor":
        return HostedEditor(ServedPictureModel(wire, options, server), options)
    return language_role(role, ChatConversation(wire, options, server), options)


async def probe(name: str, options: ProviderOptions) -> tuple[bool, str]:
    """One cheap call: a word. Raises as `load` does."""
    from plantain.models.hosted.openai.chat import ChatConversation
    from plantain.models.hosted.probing import probe_words

    return await probe_words(ChatConversation(_endpoints(name, options), options, _server(name, options)))


async def look(name: str, options: ProviderOptions) -> list[ProbedAddress]:
    """What stands at each address of a section: "section/model", or "section/" for whatever it serves."""
    endpoints = _endpoints(name, options)
    from plantain.models.hosted.openai.survey import survey

    server = _server(name, options)
    return [
        await survey(endpoint.wire, name.partition("/")[2], options, server) for endpoint in endpoints.all
    ]


def _server(name: str, options: ProviderOptions) -> ServerProfile:
    return server_named(options.server, f"providers.{name.partition('/')[0]}.server")


def _endpoints(name: str, options: ProviderOptions) -> Endpoints:
    """One connection for each address of the section."""
    require_extra(name, *EXTRA)
    section = name.partition("/")[0]
    options.check(section, TAKES, CHOICES)
    if not options.base_url:
        raise InputError(
            f"providers.{section}.base_url: is missing; give the server's address, e.g. http://127.0.0.1:8000/v1"
        )
    from plantain.models.hosted.openai.endpoints import Endpoints
    from plantain.models.hosted.openai.wire import CompatibleWire

    key = _key(section, options)
    wires = [CompatibleWire(name, key, options, url) for url in options.base_urls or (options.base_url,)]
    named = section != KIND or bool(options.server)
    return Endpoints(wires, _server(name, options), named=named)


def _key(section: str, options: ProviderOptions) -> Secret:
    """The key that the section names; the provider's usual one goes to no named endpoint: there may be many."""
    names = (options.api_key_env,) if options.api_key_env else KEYS if section == KIND else ()
    if not options.api_key_env and not any(os.environ.get(name, "").strip() for name in names):
        return Secret("")
    return key_from_environment(names, section, near=stays_in_the_house(options), later=options.key_later)
