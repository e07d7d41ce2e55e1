"""The provider `gemini`: its known models, and loading one for a role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from plantain.files.installed import require_extra
from plantain.models.registry import roles_at
from plantain.roles.options import BatchSettings, ForWords, ProviderOptions, key_of

if TYPE_CHECKING:
    from plantain.models.hosted.gemini.batch import GeminiBatch
    from plantain.models.hosted.gemini.models import GeminiWire

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
EXTRA = ("gemini", "httpx2", "pybase64")
MODELS = roles_at("gemini")


class GeminiOptions(ProviderOptions):
    """Settings of Gemini models at any address; "" for the provider's default. The choices are those of Google's SDK.

    Attributes:
        use_seed: True to send the call's seed.
        thinking: how much the model thinks before it answers.
        media_resolution: resolution at which it reads images.
        safety: threshold of the adjustable safety filters.
    """

    use_seed: bool = True
    thinking: ForWords[Literal["", "none", "minimal", "low", "medium", "high", "xhigh"]] = ""
    media_resolution: ForWords[Literal["", "low", "medium", "high"]] = ""
    safety: Literal[
        "", "BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"
    ] = ""


class Settings(GeminiOptions, BatchSettings):
    """The section `[providers.gemini]` of a recipe: settings of Gemini models, and of their batch jobs."""


def load(name: str, role: str, options: Settings) -> object:
    """Return the model for a role; an unknown id is accepted. Raise InputError if the extra or the key is missing."""
    return role_of(_wire(name, options), role, options)


def role_of(wire: GeminiWire, role: str, options: GeminiOptions) -> object:
    """Return a model for a role; its calls are sent online, or in batch jobs if the run has a batch client."""
    from plantain.models.hosted.gemini.models import image_model, language_model
    from plantain.models.hosted.writer_and_judge import in_role

    transport: GeminiWire | GeminiBatch = wire
    if isinstance(options, Settings) and options.context.jobs is not None:
        from plantain.models.hosted.gemini.batch import GeminiBatch

        transport = GeminiBatch(wire, options)
    return in_role(
        role, options, lambda: language_model(transport, options), lambda: image_model(transport, options)
    )


def _wire(name: str, options: Settings) -> GeminiWire:
    require_extra(name, *EXTRA)
    key = key_of("gemini", options, KEYS)
    from plantain.models.hosted.gemini.models import GeminiWire

    return GeminiWire(name, key, options)
