"""The provider `bedrock`: models of Amazon Bedrock that answer in OpenAI's Responses format, as writers and judges."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from plantain.files.secrets import Secret, key_from_environment
from plantain.models.extras import require_extra
from plantain.models.hosted.addresses import stays_in_the_house
from plantain.models.hosted.openai.provider import CHOICES, EXTRA
from plantain.records import InputError
from plantain.roles.options import ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.bedrock.wire import BedrockWire

KEYS = ("AWS_BEARER_TOKEN_BEDROCK",)
SIGNS_IN = "AWS_BEARER_TOKEN_BEDROCK, or the usual AWS credentials"
MODELS: dict[str, tuple[str, ...]] = {}
ROLES = ("writer", "judge")
TAKES = frozenset(
    {
        "location",
        "temperature",
        "top_p",
        "thinking",
        "max_output_tokens",
        "service_tier",
        "media_resolution",
        "form",
    }
)


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The model for a role: any but an editor.

    Raises:
        InputError: no region, no credentials, an editor was asked for, or a setting that is none of Bedrock's.
    """
    if role == "editor":
        raise InputError(f"models.editor: {name!r} can be a writer or a judge, not an editor")
    from plantain.models.hosted.openai.provider import role_of

    return role_of(_wire(name, options), role, options)


async def probe(name: str, options: ProviderOptions) -> tuple[bool, str]:
    """One cheap call: a word. Raises as `load` does."""
    from plantain.models.hosted.openai.provider import probe_wire

    return await probe_wire(_wire(name, options), False, options)


def _wire(name: str, options: ProviderOptions) -> BedrockWire:
    require_extra(name, *EXTRA)
    section = name.partition("/")[0]
    where = f"providers.{section}"
    options.check(section, TAKES, CHOICES)
    if options.jobs is not None:
        raise InputError(f'{where}.transport: plantain sends no batch jobs to bedrock; use "online"')
    if not re.fullmatch(r"[a-z]{2,8}(-[a-z0-9]+)+-\d+", options.location):
        raise InputError(
            f'{where}.location: {options.location!r}; name the AWS region, e.g. "eu-central-1" (the environment\'s '
            "is ignored)"
        )
    from plantain.models.hosted.bedrock.wire import BedrockWire

    address = f"https://bedrock-mantle.{options.location}.api.aws/openai/v1"
    return BedrockWire(name, _key(section, options), options, options.base_url or address)


def _key(section: str, options: ProviderOptions) -> Secret:
    """The bearer token where there is one; else the SDK signs with AWS credentials, which takes botocore."""
    names = (options.api_key_env,) if options.api_key_env else KEYS
    if options.api_key_env or any(os.environ.get(name, "").strip() for name in names):
        return key_from_environment(names, section, near=stays_in_the_house(options), later=options.key_later)
    if not options.key_later:
        require_extra(section, "bedrock", "botocore")
    return Secret("")
