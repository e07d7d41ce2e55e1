"""The connection to the deployments of an Azure resource."""

from __future__ import annotations

from collections.abc import Sequence

import httpx2
import openai

from plantain.files.secrets import Secret
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.azure.entra import EntraTokens
from plantain.models.hosted.azure.provider import Settings
from plantain.models.hosted.faults import signed
from plantain.models.hosted.openai.wire import Named, OpenAIWire, without_environment

API_VERSION = "2025-04-01-preview"
"""The first of Azure's versions that has both responses and image edits; a recipe may name another."""


class AzureWire(OpenAIWire):
    """Sends requests for one deployment.

    Args:
        name: "azure/<deployment>".
        signature: the resource's key, or tokens, which are renewed; a request that was refused with its token is sent
            once more with a new one.
        options: the resource's address, the version of its interface, timeout.
    """

    def __init__(self, name: str, signature: Secret | EntraTokens, options: Settings) -> None:
        key = signature if isinstance(signature, Secret) else Secret("")
        super().__init__(name, key, options, options.base_url)
        self._tokens = signature if isinstance(signature, EntraTokens) else None
        self._api_version = options.api_version or API_VERSION

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        send = super().post
        if self._tokens is None:
            return await send(path, body)
        return await signed(lambda: send(path, body), self._tokens)

    async def post_form(self, path: str, fields: JsonObject, files: Sequence[Named]) -> JsonObject:
        send = super().post_form
        if self._tokens is None:
            return await send(path, fields, files)
        return await signed(lambda: send(path, fields, files), self._tokens)

    def _new_client(self, timeout: httpx2.Timeout, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        client = openai.AsyncAzureOpenAI(
            azure_endpoint=self.address,
            api_version=self._api_version,
            api_key=None if self._tokens else self.key.reveal() or "none",
            azure_ad_token_provider=self._tokens,
            max_retries=0,
            timeout=timeout,
            http_client=http,
        )
        return without_environment(client)
