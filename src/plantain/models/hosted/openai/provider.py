"""The provider `openai`: its known models, and loading one for a role."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pydantic import field_validator

from plantain.files.installed import require_extra
from plantain.models.registry import roles_at
from plantain.roles.options import BatchSettings, ForEditors, ForWords, ProviderOptions, key_of

if TYPE_CHECKING:
    from plantain.models.hosted.openai.batch import OpenAIBatch
    from plantain.models.hosted.openai.wire import OpenAIWire

KEYS = ("OPENAI_API_KEY",)
EXTRA = ("openai", "httpx2", "pybase64")
MODELS = roles_at("openai")
ADDRESS = "https://api.openai.com/v1"


class OpenAIFormat(ProviderOptions):
    """Settings of requests in OpenAI's formats, with the choices of OpenAI's SDK; "" for the server's default.

    Attributes:
        thinking: how much the model thinks before it answers.
        image_quality: quality of an edited image, e.g. "high".
        input_fidelity: how closely an editor follows the input image.
    """

    thinking: ForWords[Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]] = ""
    image_quality: ForEditors[str] = ""
    input_fidelity: ForEditors[Literal["", "low", "high"]] = ""


class OpenAIOptions(OpenAIFormat):
    """Settings of OpenAI's own models at any address.

    Attributes:
        media_resolution: resolution at which a model reads images; "" for the provider's default.
    """

    media_resolution: ForWords[Literal["", "low", "high", "auto", "original"]] = ""

    @field_validator("image_size")
    @classmethod
    def _is_square(cls, size: str) -> str:
        if size and not re.fullmatch(r"(\d+)x\1", size):
            raise ValueError(f'{size!r} is not a square like "1024x1024"')
        return size


class Settings(OpenAIOptions, BatchSettings):
    """The section `[providers.openai]` of a recipe: settings of OpenAI's models, and of their batch jobs."""


def load(name: str, role: str, options: Settings) -> object:
    """Return the model for a role; an unknown id is accepted. Raise InputError if the extra or the key is missing."""
    return role_of(_wire(name, options), role, options)


def role_of(wire: OpenAIWire, role: str, options: OpenAIOptions) -> object:
    """Return a model for a role; its calls are sent online, or in batch jobs if the run has a batch client."""
    from plantain.models.hosted.openai import images, responses
    from plantain.models.hosted.writer_and_judge import in_role

    transport: OpenAIWire | OpenAIBatch = wire
    if isinstance(options, Settings) and options.context.jobs is not None:
        from plantain.models.hosted.openai.batch import OpenAIBatch

        transport = OpenAIBatch(wire, options, images.PATH if role == "editor" else responses.PATH)
    return in_role(
        role,
        options,
        lambda: responses.language_model(transport, options),
        lambda: images.image_model(transport, options),
    )


def _wire(name: str, options: Settings) -> OpenAIWire:
    require_extra(name, *EXTRA)
    key = key_of("openai", options, KEYS)
    from plantain.models.hosted.openai.wire import OpenAIWire

    return OpenAIWire(name, key, options, options.base_url or ADDRESS)
