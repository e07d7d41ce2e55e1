"""The provider `openai-compatible`: any server that speaks OpenAI's formats (vLLM, SGLang, Ollama, a gateway).

A section `[providers.NAME] kind = "openai-compatible"` makes a provider of its own of it: a named endpoint.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator, model_validator

from plantain.files.secrets import Secret, key_from_environment
from plantain.models.extras import require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.openai.provider import EXTRA
from plantain.models.hosted.openai.servers import ServerProfile, server_named
from plantain.records import InputError
from plantain.roles.options import ForEditors, ForWords, Free, ProviderOptions, checked_url

if TYPE_CHECKING:
    from plantain.models.hosted.openai.endpoints import Endpoints
    from plantain.models.hosted.openai.survey import ProbedAddress

KIND = "openai-compatible"
KEYS = ("OPENAI_COMPATIBLE_API_KEY",)
MODELS: dict[str, tuple[str, ...]] = {}


class Settings(ProviderOptions):
    """`[providers.openai-compatible]`, and every section of that `kind`.

    `base_url` may be a list, of servers with the same model: each request goes to the one with the fewest.

    Attributes:
        base_urls: all addresses of a model that several servers serve; `base_url` is the first.
        server: what the server is, e.g. "vllm": which names and settings it takes.
        use_seed: send the call's seed.
        image_quality: quality of an edited image, e.g. "high".
        input_fidelity: how closely an editor keeps to what it was given.
        mask: send the region where the change belongs to the editor; benchmarks know one.
        background: background of an edited image.
        output_format: file format of an edited image.
        steps: denoising steps of a diffusion editor.
        guidance: how strongly it follows the instruction.
        true_cfg_scale: its classifier-free guidance.
        negative_prompt: what it should keep out of the image.
    """

    base_urls: Free[tuple[str, ...]] = ()
    server: str = ""
    use_seed: bool = True
    thinking: ForWords[Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]] = ""
    media_resolution: ForWords[Literal["", "low", "high", "auto"]] = ""
    image_quality: ForEditors[str] = ""
    input_fidelity: ForEditors[Literal["", "low", "high"]] = ""
    mask: ForEditors[bool] = False
    background: ForEditors[Literal["", "opaque", "auto"]] = ""
    output_format: ForEditors[Literal["", "png", "jpeg", "webp"]] = ""
    steps: ForEditors[int | None] = Field(default=None, ge=1, le=10_000)
    guidance: ForEditors[float | None] = Field(default=None, ge=0.0, le=1000.0)
    true_cfg_scale: ForEditors[float | None] = Field(default=None, ge=0.0, le=1000.0)
    negative_prompt: ForEditors[str] = ""

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.base_urls or super().addresses

    @model_validator(mode="before")
    @classmethod
    def _several_addresses(cls, table: Any) -> Any:
        urls = table.get("base_url") if isinstance(table, dict) else None
        if not isinstance(urls, (list, tuple)) or not urls:
            return table
        return {**table, "base_url": urls[0], "base_urls": tuple(urls)}

    @field_validator("base_urls")
    @classmethod
    def _are_addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(checked_url, urls))


def load(name: str, role: str, options: Settings) -> object:
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


async def probe(name: str, options: Settings) -> tuple[bool, str]:
    """One cheap call: a word. Raises as `load` does."""
    from plantain.models.hosted.openai.chat import ChatConversation
    from plantain.models.hosted.probing import probe_words

    return await probe_words(ChatConversation(_endpoints(name, options), options, _server(name, options)))


async def look(name: str, options: Settings) -> list[ProbedAddress]:
    """What stands at each address of a section: "section/model", or "section/" for whatever it serves."""
    endpoints = _endpoints(name, options)
    from plantain.models.hosted.openai.survey import survey

    server = _server(name, options)
    return [
        await survey(endpoint.wire, name.partition("/")[2], options, server) for endpoint in endpoints.all
    ]


def _server(name: str, options: Settings) -> ServerProfile:
    return server_named(options.server, f"providers.{name.partition('/')[0]}.server")


def _endpoints(name: str, options: Settings) -> Endpoints:
    """One connection for each address of the section."""
    require_extra(name, *EXTRA)
    section = name.partition("/")[0]
    if not options.base_url:
        raise InputError(
            f"providers.{section}.base_url: is missing; give the server's address, e.g. http://127.0.0.1:8000/v1"
        )
    from plantain.models.hosted.openai.endpoints import Endpoints
    from plantain.models.hosted.openai.wire import CompatibleWire

    key = _key(section, options)
    wires = [CompatibleWire(name, key, options, url) for url in options.addresses]
    named = section != KIND or bool(options.server)
    return Endpoints(wires, _server(name, options), named=named)


def _key(section: str, options: Settings) -> Secret:
    """The key that the section names; the provider's usual one goes to no named endpoint: there may be many."""
    names = (options.api_key_env,) if options.api_key_env else KEYS if section == KIND else ()
    if not options.api_key_env and not any(os.environ.get(name, "").strip() for name in names):
        return Secret("")
    return key_from_environment(names, section, near=stays_in_the_house(options), later=options.key_later)
