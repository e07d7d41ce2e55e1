"""The provider `openai-compatible`: any server that speaks OpenAI's formats (vLLM, SGLang, Ollama, a gateway).

A section `[providers.NAME] kind = "openai-compatible"` makes a provider of its own of it: a named endpoint.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from plantain.files.installed import require_extra
from plantain.files.secrets import Secret
from plantain.models.hosted.openai.provider import EXTRA, OpenAIFormat
from plantain.records import InputError
from plantain.roles.options import ForEditors, ForWords, key_of

if TYPE_CHECKING:
    from plantain.models.hosted.openai.wire import OpenAIWire


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """Field names and settings of one kind of server.

    Attributes:
        limit: the request's field that limits the tokens of an answer.
        edits: settings of /v1/images/edits that it supports, by our names; others are left out, which is recorded.
        images: form field of an edit with several images.
    """

    limit: str
    edits: tuple[str, ...]
    images: str = "image[]"


DIFFUSION = ("use_seed", "steps", "guidance", "true_cfg_scale", "negative_prompt")
SERVERS = {
    "other": ServerProfile("max_tokens", ("image_quality",)),
    "vllm": ServerProfile("max_completion_tokens", DIFFUSION, "image"),
    "sglang": ServerProfile("max_completion_tokens", (*DIFFUSION, "image_quality")),
    "gateway": ServerProfile("max_completion_tokens", ("image_quality", "input_fidelity")),
}
"""Servers with OpenAI's formats, checked 2026-11-22 against their own documentation and source (vLLM and vLLM-Omni:
docs/serving/image_edit_api.md; SGLang: entrypoints/openai/image_api.py and protocol.py). `other` is any other server,
such as Ollama, llama.cpp or LM Studio; `gateway` forwards to OpenAI's own models."""

KIND = "openai-compatible"
KEYS = ("OPENAI_COMPATIBLE_API_KEY",)
MODELS: dict[str, tuple[str, ...]] = {}


class Settings(OpenAIFormat):
    """The settings in `[providers.openai-compatible]`, and in every section of that `kind`.

    Attributes:
        server: kind of server, which decides its field names and settings.
        use_seed: True to send the call's seed.
        steps: denoising steps of a diffusion editor.
        guidance: how strongly it follows the instruction.
        true_cfg_scale: its classifier-free guidance.
        negative_prompt: content to avoid in the image.
    """

    server: Literal["other", "vllm", "sglang", "gateway"] = "other"
    use_seed: bool = True
    media_resolution: ForWords[Literal["", "low", "high", "auto"]] = ""
    steps: ForEditors[int | None] = Field(default=None, ge=1, le=10_000)
    guidance: ForEditors[float | None] = Field(default=None, ge=0.0, le=1000.0)
    true_cfg_scale: ForEditors[float | None] = Field(default=None, ge=0.0, le=1000.0)
    negative_prompt: ForEditors[str] = ""


def load(name: str, role: str, options: Settings) -> object:
    """Return the model for a role. A key is optional; OpenAI's own key is never sent to another server.

    Raises:
        InputError: base_url or extra is missing, or this kind of server does not support an option.
    """
    server, wire = SERVERS[options.server], _wire(name, options)
    from plantain.models.hosted.openai.chat import language_model
    from plantain.models.hosted.openai.images import image_model
    from plantain.models.hosted.writer_and_judge import in_role

    return in_role(
        role,
        options,
        lambda: language_model(wire, options, server.limit),
        lambda: image_model(wire, options, options.server, server),
    )


def _wire(name: str, options: Settings) -> OpenAIWire:
    require_extra(name, *EXTRA)
    section = name.partition("/")[0]
    if not options.base_url:
        raise InputError(
            f"providers.{section}.base_url: is missing; give the server's address, e.g. http://127.0.0.1:8000/v1"
        )
    from plantain.models.hosted.openai.wire import OpenAIWire

    return OpenAIWire(name, _key(section, options), options, options.base_url)


def _key(section: str, options: Settings) -> Secret:
    """Return the section's key; the provider's usual one goes to no named endpoint, of which there may be many."""
    names = (options.api_key_env,) if options.api_key_env else KEYS if section == KIND else ()
    if not options.api_key_env and not any(os.environ.get(name, "").strip() for name in names):
        return Secret("")
    return key_of(section, options, names)
