"""The provider `vertex`: Gemini models of a Google Cloud project, region or the global endpoint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from plantain.models.hosted.gemini.provider import CHOICES as GEMINI_CHOICES
from plantain.models.hosted.gemini.provider import TAKES as GEMINI_TAKES
from plantain.models.hosted.gemini.provider import require_sdk
from plantain.models.hosted.known import roles_at
from plantain.records import InputError
from plantain.roles.options import ProviderOptions

if TYPE_CHECKING:
    from plantain.models.hosted.vertex.wire import VertexWire

SIGNS_IN = "application default credentials"
MODELS = roles_at("vertex")
TAKES = GEMINI_TAKES | {"project", "location", "output_format"}
CHOICES = {**GEMINI_CHOICES, "output_format": ("png", "jpeg")}


def load(name: str, role: str, options: ProviderOptions) -> object:
    """The model for a role; an id that we do not know is taken at its word.

    Raises:
        InputError: no extra, no credentials, no project, or a setting that is none of Gemini's.
    """
    wire = _wire(name, options)
    from plantain.models.hosted.gemini.provider import role_of

    return role_of(wire, role, options)


async def probe(name: str, options: ProviderOptions) -> tuple[bool, str]:
    """One cheap call: a word from a language model, the card of a known editor. Raises as `load` does."""
    from plantain.models.hosted.gemini.provider import probe_wire

    return await probe_wire(_wire(name, options), MODELS.get(options.listed or name) == ("editor",), options)


def _wire(name: str, options: ProviderOptions) -> VertexWire:
    require_sdk(name)
    section = name.partition("/")[0]
    where = f"providers.{section}"
    options.check(section, TAKES, CHOICES)
    if options.api_key_env:
        raise InputError(f"{where}.api_key_env: vertex signs in with {SIGNS_IN}, not with a key")
    if not options.project:
        raise InputError(
            f"{where}.project: is missing; name the Google Cloud project responsible for the images (the "
            "environment's is ignored)"
        )
    for field, form in (("project", r"[a-z0-9][a-z0-9.:-]*"), ("location", r"[a-z0-9-]*")):
        if not re.fullmatch(form, getattr(options, field)):
            raise InputError(f"{where}.{field}: {getattr(options, field)!r} is no {field} of Google Cloud")
    from plantain.models.hosted.vertex.credentials import default_credentials, no_credentials
    from plantain.models.hosted.vertex.wire import VertexWire

    credentials = no_credentials() if options.key_later else default_credentials(options)
    return VertexWire(name, credentials, options)
