"""The connection to the Gemini API."""

from __future__ import annotations

from urllib.parse import quote

from plantain.files.redaction import redacted
from plantain.files.secrets import Secret
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.connection import Wire
from plantain.models.hosted.faults import read_body
from plantain.roles.options import ProviderOptions

ADDRESS = "https://generativelanguage.googleapis.com"
SERVED_TIER = "x-gemini-service-tier"
"""Header with the served tier (Google's pages on priority and flex); it may be missing from the body."""


class GeminiWire(Wire):
    """Sends requests for one model with an API key."""

    version = "v1beta"
    """Thinking levels and image settings are not all in v1."""

    def __init__(self, name: str, key: Secret, options: ProviderOptions, address: str = ADDRESS) -> None:
        super().__init__(name, options.base_url or address, options)
        self.key = key
        self.model_path = f"/models/{quote(self.model)}"

    def url_of(self, path: str) -> str:
        return f"{self.address}{path if path.startswith('/upload/') else f'/{self.version}{path}'}"

    async def sign(self) -> dict[str, str]:
        return {"x-goog-api-key": self.key.reveal()}

    async def generate(self, body: JsonObject) -> JsonObject:
        """Return the answer's body. Raise Fault if there is none."""
        reply = await self.request("POST", f"{self.model_path}:generateContent", body)
        answer = read_body(reply.content)
        if answer.get("error") and "candidates" not in answer:
            raise self.refused(reply)
        usage, tier = answer.get("usageMetadata"), reply.headers.get(SERVED_TIER)
        if tier and isinstance(usage, dict):
            usage.setdefault("serviceTier", redacted(tier)[:60])
        return answer

    async def look_up(self) -> JsonObject:
        return await self.get(self.model_path)
