"""The provider `azure`: OpenAI's models under the names of an Azure resource's deployments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from plantain.files.secrets import Secret, key_from_environment
from plantain.models.extras import require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.known import known_model, roles_at
from plantain.models.hosted.openai.provider import EXTRA, OpenAIOptions
from plantain.records import InputError
from plantain.records.suggestions import suggest
from plantain.roles.options import Free

if TYPE_CHECKING:
    from plantain.models.hosted.azure.entra import EntraTokens
    from plantain.models.hosted.azure.wire import AzureWire

KEYS = ("AZURE_OPENAI_API_KEY",)
SIGNS_IN = "its key, or Microsoft Entra"
MODELS = roles_at("azure")


class Settings(OpenAIOptions):
    """`[providers.azure]`.

    Attributes:
        auth: how to sign in: "key" or "entra"; "" for the key where the environment has one, else Entra.
        api_version: version of the resource's interface.
        deployments: names of deployments -> the model of OpenAI that each serves, whose price it has.
    """

    auth: Free[Literal["", "key", "entra"]] = ""
    api_version: Free[str] = ""
    deployments: Free[Mapping[str, str]] = Field(default_factory=dict)


def load(name: str, role: str, options: Settings) -> object:
    """The deployment for a role.

    Raises:
        InputError: no extra, key or address, a base model that nobody knows, or a setting that is none of OpenAI's.
    """
    wire = _wire(name, options)
    from plantain.models.hosted.openai.provider import role_of

    return role_of(wire, role, options)


async def probe(name: str, options: Settings) -> tuple[bool, str]:
    """One cheap call: a word from a language model, the card of a known editor. Raises as `load` does."""
    from plantain.models.hosted.openai.provider import probe_wire

    known = known_model(options.listed or name)
    return await probe_wire(_wire(name, options), known is not None and known.roles == ("editor",), options)


def _wire(name: str, options: Settings) -> AzureWire:
    require_extra(name, *EXTRA)
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

    return AzureWire(name, _signature(name, options), options)


def _signature(name: str, options: Settings) -> Secret | EntraTokens:
    """The resource's key where one is to be used, else tokens of Entra."""
    names = (options.api_key_env,) if options.api_key_env else KEYS
    set_here = any(os.environ.get(variable, "").strip() for variable in names)
    if options.auth == "key" or options.api_key_env or (not options.auth and set_here):
        if options.auth == "entra":
            section = name.partition("/")[0]
            raise InputError(f'providers.{section}.api_key_env: with auth = "entra" no key is used')
        return key_from_environment(names, "azure", near=stays_in_the_house(options), later=options.key_later)
    from plantain.models.hosted.azure.entra import EntraTokens

    return EntraTokens(name, options)
