"""The connection to Gemini: one long-lived client, no retries of its own, every fault one of our outcomes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

import httpx2
from google import genai
from google.genai import errors, types

from plantain.files.redaction import redacted
from plantain.files.secrets import Secret
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import Fault, http_fault, not_allowed, read_body, wire_fault
from plantain.models.hosted.gemini.requests import request_body
from plantain.models.hosted.guarded import GuardedTransport
from plantain.models.hosted.scrub import scrub
from plantain.records import NotAllowed
from plantain.roles.exchange import patience
from plantain.roles.options import ProviderOptions

T = TypeVar("T")

ADDRESS = "https://generativelanguage.googleapis.com/"
VERSION = "v1beta"
"""Thinking levels and image settings are not all in v1; the SDK's own default is v1."""

SERVED_TIER = "x-gemini-service-tier"
"""The header that names the tier that served, by Google's pages on priority and flex; not every body does."""

CLEARING_S = 1_800.0
"""Seconds that a request file may take to be looked through."""


class GeminiTransport(Protocol):
    """What carries requests for one model and brings back the body of each answer; raises `Fault` where there is none.

    The online one is `GeminiWire`; another may collect requests and send them as a job.
    """

    @property
    def name(self) -> str: ...

    async def generate(
        self, contents: list[types.Content], config: types.GenerateContentConfig
    ) -> JsonObject: ...

    def scrub(self, body: JsonObject) -> object: ...

    async def aclose(self) -> None: ...


class GeminiWire:
    """Sends requests for one model.

    Args:
        name: "gemini/<model>".
        key: the API key.
        options: address and timeout. An address in the environment is ignored: images go where the recipe says.
    """

    version = VERSION

    def __init__(self, name: str, key: Secret, options: ProviderOptions, address: str = ADDRESS) -> None:
        self.name = name
        self.model = name.partition("/")[2]
        self.key = key
        self.address = options.base_url or address
        self._options = options
        self._timeout_s = options.timeout_s
        self._transport: GuardedTransport | None = None
        self._client: genai.Client | None = None
        self._http: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def generate(
        self, contents: list[types.Content], config: types.GenerateContentConfig
    ) -> JsonObject:
        """The answer's body.

        Raises:
            Fault: whatever else came, or nothing did.
        """
        # The SDK looks at every field of every part in Python; as an extra body ours goes out as it is. What it asks
        # for beside the body is replaced by it.
        sent = types.HttpOptions(extra_body=request_body(contents, config), headers=self._headers() or None)
        raw = types.GenerateContentConfig(http_options=sent, should_return_http_response=True)
        models = self._connected().aio.models
        answer = await self._sent(models.generate_content(model=self.model, contents="", config=raw))
        reply = answer.sdk_http_response
        content = (reply.body if reply else None) or ""
        headers = dict(reply.headers or {}) if reply else {}
        body = read_body(content)
        if body.get("error") and "candidates" not in body:
            raise self._fault(200, content, headers)
        tier = {name.casefold(): value for name, value in headers.items()}.get(SERVED_TIER)
        usage = body.get("usageMetadata")
        if tier and isinstance(usage, dict):
            usage.setdefault("serviceTier", redacted(tier)[:60])
        return body

    async def look_up(self) -> JsonObject:
        """What the provider says of the model; free of charge.

        Raises:
            Fault: it is not there, or the key does not work.
        """
        found = await self._sent(self._connected().aio.models.get(model=self.model))
        return {"model": found.name or self.model}

    async def operation(self, name: str) -> JsonObject:
        """A long-running operation as the provider tells it: the SDK leaves out why one failed. Raises Fault."""
        self._connected()
        assert self._http is not None
        address = f"{self.address.rstrip('/')}/{self.version}/{name}"
        reply = await self._sent(self._http.get(address, headers={"x-goog-api-key": self.key.reveal()}))
        if reply.status_code >= 400:
            raise self._fault(reply.status_code, reply.text, dict(reply.headers))
        return read_body(reply.content)

    async def clear_file(self, file: Path) -> None:
        """Has the pictures of a request file cleared. Raises Fault where one may not be sent."""
        self._connected()
        assert self._transport is not None
        await self._sent(self._transport.clear_file(file), CLEARING_S)

    async def do(self, request: Callable[[genai.Client], Awaitable[T]], timeout_s: float | None = None) -> T:
        """Any other request by the same client and under the same rules.

        Raises:
            Fault: it was not obeyed.
        """
        return await self._sent(request(self._connected()), timeout_s)

    async def _sent(self, request: Awaitable[T], timeout_s: float | None = None) -> T:
        """Waits for a request; whatever the SDK raises of the provider or the wire becomes a Fault."""
        try:
            async with asyncio.timeout(timeout_s or patience(self._timeout_s)):
                return await request
        except NotAllowed as why:
            raise not_allowed(why) from None
        except errors.APIError as error:
            raise self._status_fault(error) from None
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as error:
            raise Fault(wire_fault(error, self._timeout_s)) from None

    def scrub(self, body: JsonObject) -> object:
        """A body as it may be kept."""
        return scrub(body)

    async def aclose(self) -> None:
        """Closes the client; the next call opens another."""
        client, http = self._client, self._http
        self._client = self._http = self._transport = self._loop = None
        if client is not None:
            await client.aio.aclose()
        if http is not None:
            await http.aclose()

    def _connected(self) -> genai.Client:
        """The client, made in the running event loop; a client of an earlier loop cannot be used any more.

        Where it may send, and through which proxy, is for the transport to say; redirects are not followed. A transport
        of our own also keeps the SDK from sending by aiohttp where that is installed. Whatever else the SDK might open
        trusts no certificate, so that it ends in an error; loading the usual ones would take a tenth of a second.
        """
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._transport = GuardedTransport(self.name, self.address, self._options)
            self._http = httpx2.AsyncClient(
                transport=self._transport, timeout=self._timeout_s, trust_env=False, follow_redirects=False
            )
            nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._client = self._new_client(
                types.HttpOptions(
                    base_url=self.address,
                    api_version=self.version,
                    timeout=int(self._timeout_s * 1000),
                    httpx_async_client=self._http,
                    client_args={"trust_env": False, "verify": nobody},
                    async_client_args={"transport": self._transport, "verify": nobody, "ssl": nobody},
                )
            )
            self._loop = loop
        return self._client

    def _headers(self) -> dict[str, str]:
        """What a request says beside its body."""
        return {}

    def _new_client(self, http: types.HttpOptions) -> genai.Client:
        return genai.Client(vertexai=False, api_key=self.key.reveal(), http_options=http)

    def _status_fault(self, error: errors.APIError) -> Fault:
        response = error.response
        headers = dict(response.headers) if isinstance(response, httpx2.Response) else {}
        content = response.text if isinstance(response, httpx2.Response) else ""
        return self._fault(error.code, content, headers)

    def _fault(self, status: int, content: str, headers: dict[str, str]) -> Fault:
        content = redacted(content)
        outcome = http_fault(self.name, status, content, headers)
        return Fault(outcome, status, {"status": status, "body": self.scrub({"text": content})})
