"""The connection to the deployments of an Azure resource, with its key or with tokens of Microsoft Entra."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from plantain.files.installed import require_extra
from plantain.files.secrets import Secret, redacted
from plantain.models.hosted.azure.provider import Settings
from plantain.models.hosted.connection import Tokens
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.openai.wire import OpenAIWire
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind

API_VERSION = "2025-04-01-preview"
"""The first of Azure's versions that has both responses and image edits; a recipe may name another."""

BY_DEPLOYMENT = frozenset({"/images/edits", "/chat/completions"})
"""Paths that name the deployment; in others the body does."""

SCOPE = "https://cognitiveservices.azure.com/.default"


class AzureWire(OpenAIWire):
    """The connection to one deployment of an Azure resource.

    Args:
        name: "azure/<deployment>".
        key: the resource's API key; None for tokens of Microsoft Entra.
        options: the resource's address, the version of its interface, timeout.
    """

    def __init__(self, name: str, key: Secret | None, options: Settings) -> None:
        super().__init__(name, key or Secret(""), options, options.base_url)
        self._api_version = options.api_version or API_VERSION
        self.tokens = None if key else Tokens(_fetcher(name, options))

    def url_of(self, path: str) -> str:
        of_deployment = f"/deployments/{quote(self.model)}" if path in BY_DEPLOYMENT else ""
        return f"{self.address}/openai{of_deployment}{path}?api-version={self._api_version}"

    async def sign(self) -> dict[str, str]:
        if self.tokens:
            return {"Authorization": f"Bearer {await self.tokens()}"}
        return {"api-key": self.key.reveal() or "none"}


def _fetcher(name: str, options: Settings) -> Callable[[], tuple[str, float]]:
    """Return a function that fetches a token: by a service principal, a managed identity or `az login`.

    azure-identity raises the same error for an interruption and a refusal; after a first token only a refusal with a
    number of Entra ("AADSTS...") is final.
    """
    require_extra(name, "azure", "azure.identity")
    settings: dict[str, object] = {}
    if options.ca_bundle is not None:
        settings["connection_verify"] = str(options.ca_bundle)
    fetched = False

    def fetch() -> tuple[str, float]:
        from azure.core.exceptions import AzureError, ClientAuthenticationError
        from azure.identity import CredentialUnavailableError, DefaultAzureCredential

        nonlocal fetched
        try:
            found = DefaultAzureCredential(**settings).get_token(SCOPE)
        except AzureError as error:
            refused = isinstance(error, (ClientAuthenticationError, CredentialUnavailableError))
            refused &= not fetched or "AADSTS" in str(error)
            reason = f"no token from Microsoft Entra: {one_line(redacted(str(error)))}"
            raise Fault(Outcome(OutcomeKind.TRANSPORT, reason, fatal=refused, unbilled=True)) from None
        fetched = True
        return found.token, float(found.expires_on)

    return fetch
