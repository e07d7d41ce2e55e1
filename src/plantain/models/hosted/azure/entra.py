"""Tokens of Microsoft Entra: by azure-identity, kept until they are about to expire."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from plantain.files.redaction import hide, redacted
from plantain.models.extras import require_extra
from plantain.models.hosted.faults import Fault
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind
from plantain.roles.options import ProviderOptions

if TYPE_CHECKING:
    from azure.identity import DefaultAzureCredential

EXTRA = ("azure", "azure.identity")
SCOPE = "https://cognitiveservices.azure.com/.default"
EARLY_S = 120.0
"""Seconds before its end at which a token is no longer used."""


class EntraTokens:
    """The token of one connection. A service principal in the environment, a managed identity or `az login` gives it.

    Args:
        name: "azure/<deployment>", for messages.
        options: proxy and authorities by which it is fetched.
    """

    def __init__(self, name: str, options: ProviderOptions) -> None:
        require_extra(name, *EXTRA)
        self.token: str | None = None
        self._until = 0.0
        self._options = options
        self._credential: DefaultAzureCredential | None = None
        self._loading: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def __call__(self) -> str:
        """A token that holds for now.

        Raises:
            Fault: there is none. azure-identity tells an interruption by the same error as a refusal; where a token was
                there before, only Entra's own refusal, by its number, is final.
        """
        async with self._lock():
            if self.token is None or time.time() >= self._until - EARLY_S:
                await asyncio.to_thread(self._renew)
        assert self.token is not None
        return self.token

    def forget(self, token: str | None) -> None:
        if self.token == token:
            self.token = self._credential = None  # the credential keeps tokens of its own

    def _renew(self) -> None:
        from azure.core.exceptions import AzureError, ClientAuthenticationError
        from azure.identity import CredentialUnavailableError, DefaultAzureCredential

        if self._credential is None:
            self._credential = DefaultAzureCredential(**self._connection())
        try:
            found = self._credential.get_token(SCOPE)
        except AzureError as error:
            refused = isinstance(error, (ClientAuthenticationError, CredentialUnavailableError))
            refused &= not self._until or "AADSTS" in str(error)
            reason = f"no token from Microsoft Entra: {one_line(redacted(str(error)))}"
            raise Fault(Outcome(OutcomeKind.TRANSPORT, reason, fatal=refused, unbilled=True)) from None
        hide(found.token)
        self.token, self._until = found.token, float(found.expires_on)

    def _connection(self) -> dict[str, object]:
        settings: dict[str, object] = {}
        if self._options.proxy:
            settings["proxies"] = {"http": self._options.proxy, "https": self._options.proxy}
        if self._options.ca_bundle is not None:
            settings["connection_verify"] = str(self._options.ca_bundle)
        return settings

    def _lock(self) -> asyncio.Lock:
        """One for each event loop: those who wait share the one request."""
        loop = asyncio.get_running_loop()
        if self._loading is None or self._loading[0] is not loop:
            self._loading = loop, asyncio.Lock()
        return self._loading[1]
