"""The provider `azure`: OpenAI's models under the names of an Azure resource's deployments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from plantain.files.installed import require_extra
from plantain.files.secrets import Secret
from plantain.models.hosted.openai import provider as openai
from plantain.models.registry import known_model, roles_at
from plantain.records import InputError
from plantain.records.messages import suggest
from plantain.roles.options import Free, key_of

if TYPE_CHECKING:
    from plantain.models.hosted.azure.wire import AzureWire

KEYS = ("AZURE_OPENAI_API_KEY",)
SIGNS_IN = "its key, or Microsoft Entra"
MODELS = roles_at("azure")


class Settings(openai.OpenAIOptions):
    """The settings in `[providers.azure]`.

    Attributes:
        api_version: version of the resource's interface.
        deployments: name of a deployment -> OpenAI's model that it serves and whose price applies.
    """

    api_version: Free[str] = ""
    deployments: Free[Mapping[str, str]] = Field(default_factory=dict)


def load(name: str, role: str, options: Settings) -> object:
    """Return a deployment as the model for a role.

    Raises:
        InputError: extra, key or address is missing, or the base model is unknown.
    """
    return openai.role_of(_wire(name, options), role, options)


def _wire(name: str, options: Settings) -> AzureWire:
    require_extra(name, *openai.EXTRA)
    where = f"providers.{name.partition('/')[0]}"
    if not options.base_url:
        raise InputError(
            f"{where}.base_url: is missing; give the resource's address, e.g. https://NAME.openai.azure.com (the "
            "environment's is ignored)"
        )
    for deployment, model in options.deployments.items():
        if known_model(f"openai/{model}") is None:
            names = [known.partition("/")[2] for known in MODELS]
            hint = suggest(model, names, otherwise="see `plantain models`")
            raise InputError(
                f"{where}.deployments.{deployment}: no model {model!r} of OpenAI is known; {hint}"
            )
    from plantain.models.hosted.azure.wire import AzureWire

    return AzureWire(name, _key(options), options)


def _key(options: Settings) -> Secret | None:
    """Return the resource's key if the environment has one or the section names one; None for tokens of Entra."""
    names = (options.api_key_env,) if options.api_key_env else KEYS
    set_here = any(os.environ.get(variable, "").strip() for variable in names)
    return key_of("azure", options, KEYS) if options.api_key_env or set_here else None
