"""The provider `vertex`: Gemini models of a Google Cloud project, region or the global endpoint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import ValidationInfo, field_validator

from plantain.files.installed import require_extra
from plantain.models.hosted.gemini import provider as gemini
from plantain.models.registry import roles_at
from plantain.records import InputError
from plantain.roles.options import Free

if TYPE_CHECKING:
    from plantain.models.hosted.vertex.wire import VertexWire

SIGNS_IN = "application default credentials"
EXTRA = ("vertex", "httpx2", "pybase64", "google.auth", "requests")
MODELS = roles_at("vertex")


class Settings(gemini.GeminiOptions):
    """The settings in `[providers.vertex]`.

    Attributes:
        project: the Google Cloud project; required.
        location: region of the project; "" or "global" for the global endpoint.
    """

    project: Free[str] = ""
    location: Free[str] = ""

    @field_validator("project", "location")
    @classmethod
    def _is_of_google_cloud(cls, name: str, info: ValidationInfo) -> str:
        form = r"([a-z0-9][a-z0-9.:-]*)?" if info.field_name == "project" else r"[a-z0-9-]*"
        if not re.fullmatch(form, name):
            raise ValueError(f"{name!r} is not a {info.field_name} of Google Cloud")
        return name


def load(name: str, role: str, options: Settings) -> object:
    """Return the model for a role; any id is accepted. Raise InputError without extra, credentials or project."""
    return gemini.role_of(_wire(name, options), role, options)


def _wire(name: str, options: Settings) -> VertexWire:
    require_extra(name, *EXTRA)
    where = f"providers.{name.partition('/')[0]}"
    if options.api_key_env:
        raise InputError(f"{where}.api_key_env: vertex signs in with {SIGNS_IN}, not with a key")
    if not options.project:
        raise InputError(
            f"{where}.project: is missing; name the Google Cloud project responsible for the images (the "
            "environment's is ignored)"
        )
    from plantain.models.hosted.vertex.wire import VertexWire

    return VertexWire(name, options)
