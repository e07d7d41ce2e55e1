"""The HTTP connection of hosted providers, behind the run's clearance of images, and tokens that expire."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import quote

import httpx2
import orjson

from plantain.files.secrets import hide
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.asking import LanguageModel, Question
from plantain.models.hosted.faults import Fault, not_allowed, read_body, refused_request, wire_fault
from plantain.models.hosted.guarded import GuardedTransport
from plantain.models.hosted.known import known_model
from plantain.records import NotAllowed
from plantain.roles import patience
from plantain.roles.options import ProviderOptions

T = TypeVar("T")

CONNECT_S = 10.0
TRANSFER_S = 1_800.0
"""Seconds that inspecting or transferring a file may take."""

EARLY_S = 120.0
"""Seconds before its end at which a token is no longer used."""


class Tokens:
    """The token of one connection, renewed before it expires.

    Args:
        fetch: returns a token and the time at which it expires, in seconds since the epoch; raises Fault. Runs in a
            thread.
    """

    def __init__(self, fetch: Callable[[], tuple[str, float]]) -> None:
        self.token: str | None = None
        self._fetch = fetch
        self._until = 0.0
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def __call__(self) -> str:
        """Return a valid token; calls that wait for one share one request. Raise Fault if there is none."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = loop, asyncio.Lock()
        async with self._lock[1]:
            if self.token is None or time.time() >= self._until - EARLY_S:
                token, self._until = await asyncio.to_thread(self._fetch)
                hide(token)
                self.token = token
            return self.token

    async def signed(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request; after a 401 send it again with a new token, since one may be revoked early. Raise Fault."""
        used = self.token
        try:
            return await send()
        except Fault as fault:
            if fault.status != 401:
                raise
        if self.token == used:
            self.token = None
        return await send()


class Wire:
    """The connection of one model. It never retries; every failure is a `Fault`.

    Args:
        name: "provider/model".
        address: base URL of the recipe; one in the environment is ignored.
        options: timeout, and the settings of the transport.
    """

    tokens: Tokens | None = None
    """Set by providers that sign in with tokens that expire."""

    def __init__(self, name: str, address: str, options: ProviderOptions) -> None:
        self.name = name
        self.model = name.partition("/")[2]
        self.address = address.rstrip("/")
        self.options = options
        self._opened: tuple[asyncio.AbstractEventLoop, GuardedTransport, httpx2.AsyncClient] | None = None

    def url_of(self, path: str) -> str:
        """Return the URL of a path of the provider's interface."""
        return f"{self.address}{path}"

    async def sign(self) -> dict[str, str]:
        """Return the authentication headers of a request. Raise Fault if no token can be fetched."""
        raise NotImplementedError

    async def request(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
        **content: Any,
    ) -> httpx2.Response:
        """Send a request; with tokens, a 401 is repeated under a new one. Raise Fault if it fails.

        Args:
            method, path: "POST", and a path for `url_of`.
            body: sent as JSON.
            timeout_s: replaces the timeout of the settings.
            headers: in addition to the authentication headers.
            **content: other content, as the HTTP client takes it.
        """
        added = dict(headers or {})
        if body is not None:
            content["content"] = orjson.dumps(body)
            added["Content-Type"] = "application/json"
        del body
        url = self.url_of(path)

        async def once() -> httpx2.Response:
            signed = await self.sign()
            reply = await self._sent(
                self._client().request(method, url, headers={**signed, **added}, **content), timeout_s
            )
            if not reply.is_success:
                raise self.refused(reply)
            return reply

        return await (self.tokens.signed(once) if self.tokens else once())

    async def get(self, path: str) -> JsonObject:
        """Return the JSON at a path. Raise Fault."""
        return read_body((await self.request("GET", path)).content)

    async def download(self, path: str, to: IO[bytes]) -> None:
        """Download a path into an open file. Raise Fault."""

        async def save(headers: dict[str, str]) -> None:
            async with self._client().stream("GET", self.url_of(path), headers=headers) as reply:
                if not reply.is_success:
                    await reply.aread()
                    raise self.refused(reply)
                async for piece in reply.aiter_bytes():
                    to.write(piece)

        await self._sent(save(await self.sign()), TRANSFER_S)

    def refused(self, reply: httpx2.Response) -> Fault:
        """Return the fault of an answer with an error."""
        return refused_request(self.name, reply.status_code, reply.text, reply.headers)

    async def clear_file(self, file: Path) -> None:
        """Clear the images of a request file. Raise Fault if one may not be sent."""
        await self._sent(self._open()[0].clear_file(file), TRANSFER_S)

    async def look_up(self) -> JsonObject:
        """Return the provider's card of the model; free of charge. Raise Fault if the model is unknown."""
        return await self.get(f"/models/{quote(self.model)}")

    async def aclose(self) -> None:
        """Close the client; the next call opens another."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened[2].aclose()

    async def _sent(self, request: Awaitable[T], timeout_s: float | None = None) -> T:
        """Wait for a request; raise Fault for a timeout and whatever the HTTP client raises."""
        limit = self.options.timeout_s
        try:
            async with asyncio.timeout(timeout_s or patience(limit)):
                return await request
        except NotAllowed as why:
            raise not_allowed(why) from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, ssl.SSLError, TimeoutError) as error:
            raise Fault(wire_fault(error, limit)) from None

    def _client(self) -> httpx2.AsyncClient:
        return self._open()[1]

    def _open(self) -> tuple[GuardedTransport, httpx2.AsyncClient]:
        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened[0] is not loop:  # a client of an earlier loop cannot be used
            transport, limit = GuardedTransport(self.name, self.address, self.options), self.options.timeout_s
            client = httpx2.AsyncClient(
                transport=transport,
                timeout=httpx2.Timeout(limit, connect=min(CONNECT_S, limit)),
                trust_env=False,
                follow_redirects=False,
                event_hooks={"request": [_in_one_piece]},
            )
            self._opened = loop, transport, client
        return self._opened[1:]


async def _in_one_piece(request: httpx2.Request) -> None:
    """Join a multipart body, which would otherwise be sent in a dozen writes of a few bytes each."""
    await request.aread()


async def probe(wire: Wire, model: LanguageModel, listed: str) -> tuple[bool, str]:
    """Make one cheap call: a word from a language model, or the card of an image model, which is free.

    Args:
        listed: the name under which the table of known models has the model; "" for its own.
    """
    known = known_model(listed or wire.name)
    try:
        if known is not None and known.roles == ("editor",):
            await wire.look_up()
            return True, "the provider knows this model (read its card, made no image)"
        words, usage, _ = await model.ask(Question("", ("Answer with the word ready.",), seed=0))
    except Fault as fault:
        return False, fault.outcome.reason
    finally:
        await wire.aclose()
    tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
    return True, f"{words.strip()[:60]} (served by {usage.served_model or 'no model named'}; {tokens})"
