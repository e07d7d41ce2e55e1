"""The provider `openai-compatible`: any server that speaks OpenAI's formats (vLLM, SGLang, Ollama, a gateway).

A section `[providers.NAME] kind = "openai-compatible"` makes a provider of its own of it: a named endpoint.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from plantain.files.installed import require_extra
from plantain.files.secrets import Secret
from plantain.models.hosted.openai.provider import EXTRA, OpenAIFormat
from plantain.records import InputError
from plantain.records.messages import suggest
from plantain.roles.options import ForEditors, ForWords, key_of

if TYPE_CHECKING:
    from plantain.models.hosted.openai.wire import OpenAIWire

OTHER = "other"


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """Field names and settings of one kind of server.

    Attributes:
        name: name in recipes.
        limit: the request's field that limits the tokens of an answer.
        edits: supported settings of edits, by the names of plantain's options.
        image, images: form fields of an edit with one image, and with several.
        most_images: maximum number of images in one request.
    """

    name: str
    limit: str
    edits: tuple[str, ...]
    image: str = "image"
    images: str = "image[]"
    most_images: int = 1


@cache
def servers() -> dict[str, ServerProfile]:
    """Return the profile of every known kind of server by its name."""
    with Path(__file__).with_name("servers.toml").open("rb") as file:
        table = tomllib.load(file)
    rows = {
        name: {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        for name, row in table.items()
    }
    return {name: ServerProfile(name, **row) for name, row in rows.items()}  # type: ignore[arg-type]  # ours


def server_named(name: str, where: str) -> ServerProfile:
    """Return the kind of server of that name; `other` for "". Raise InputError, naming `where`, for an unknown one."""
    known = servers()
    if not name or name in known:
        return known[name or OTHER]
    raise InputError(f"{where}: no server {name!r} is known; {suggest(name, known)}")


KIND = "openai-compatible"
KEYS = ("OPENAI_COMPATIBLE_API_KEY",)
MODELS: dict[str, tuple[str, ...]] = {}


class Settings(OpenAIFormat):
    """The settings in `[providers.openai-compatible]`, and in every section of that `kind`.

    Attributes:
        server: kind of server, e.g. "vllm", which decides its field names and settings.
        use_seed: True to send the call's seed.
        steps: denoising steps of a diffusion editor.
        guidance: how strongly it follows the instruction.
        true_cfg_scale: its classifier-free guidance.
        negative_prompt: content to avoid in the image.
    """

    server: str = ""
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
    server, wire = _server(name, options), _wire(name, options)
    from plantain.models.hosted.openai.chat import language_model
    from plantain.models.hosted.openai.images import image_model
    from plantain.models.hosted.writer_and_judge import in_role

    return in_role(
        role,
        options,
        lambda: language_model(wire, options, server),
        lambda: image_model(wire, options, server),
    )


def _server(name: str, options: Settings) -> ServerProfile:
    return server_named(options.server, f"providers.{name.partition('/')[0]}.server")


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
