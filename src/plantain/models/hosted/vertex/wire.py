"""The connection to Gemini models of a Google Cloud project."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from google import genai
from google.genai import types

from plantain.files.secrets import Secret
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import signed
from plantain.models.hosted.gemini.wire import GeminiWire
from plantain.models.hosted.vertex.credentials import RenewedCredentials
from plantain.models.hosted.vertex.provider import Settings

T = TypeVar("T")

GLOBAL = "global"
JURISDICTIONS = frozenset({"us", "eu"})
"""Locations of several regions, which have addresses of another form."""

SHARED_TIER = "X-Vertex-AI-LLM-Shared-Request-Type"
"""The header by which Vertex AI is asked for flex or priority, by its pages on both."""


def address_of(location: str) -> str:
    """The address of the models of a region, of a jurisdiction, or of the global endpoint."""
    if location == GLOBAL:
        return "https://aiplatform.googleapis.com/"
    if location in JURISDICTIONS:
        return f"https://aiplatform.{location}.rep.googleapis.com/"
    return f"https://{location}-aiplatform.googleapis.com/"


class VertexWire(GeminiWire):
    """Sends requests for one model under the credentials of the machine or person.

    Args:
        name: "vertex/<model>".
        credentials: renewed here; a request that was refused with its token is sent once more with a new one.
        options: project, location, address, timeout.
    """

    version = "v1beta1"

    def __init__(self, name: str, credentials: RenewedCredentials, options: Settings) -> None:
        location = options.location or GLOBAL
        super().__init__(name, Secret(""), options, address_of(location))
        self._tier = options.service_tier
        self.credentials = credentials
        self.project, self.location = options.project, location

    async def generate(
        self, contents: list[types.Content], config: types.GenerateContentConfig
    ) -> JsonObject:
        ask = super().generate
        return await signed(lambda: ask(contents, config), self.credentials)

    async def do(self, request: Callable[[genai.Client], Awaitable[T]], timeout_s: float | None = None) -> T:
        send = super().do
        return await signed(lambda: send(request, timeout_s), self.credentials)

    def _headers(self) -> dict[str, str]:
        return {SHARED_TIER: self._tier} if self._tier in ("flex", "priority") else {}

    def _new_client(self, http: types.HttpOptions) -> genai.Client:
        return genai.Client(
            vertexai=True,
            credentials=self.credentials,
            project=self.project,
            location=self.location,
            http_options=http,
        )
