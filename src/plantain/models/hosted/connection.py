"""The HTTP connection of hosted providers, and tokens that expire.

The transport sends only to the provider's address, and only images that the run has cleared.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2
import orjson

from plantain.files.secrets import hide
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.faults import (
    Fault,
    announced_in_headers,
    not_allowed,
    read_body,
    refused_request,
    wire_fault,
)
from plantain.models.hosted.images_sent import cleared_file, images_in, images_in_lines
from plantain.records import Destination, NotAllowed, Outgoing, Reach
from plantain.roles import announce
from plantain.roles.options import Clearance, ProviderOptions, destination, loopback_addresses, origin_of

T = TypeVar("T")

CONNECT_S = 10.0
TRANSFER_S = 1_800.0
"""Seconds that inspecting or transferring a file may take."""

EARLY_S = 120.0
"""Seconds before its end at which a token is no longer used."""

UNBOUNDED = httpx2.Limits(max_connections=None, max_keepalive_connections=200)
"""Admission decides how many calls run at once, not a connection pool."""

AT_ONCE = 65_536
"""Bytes of a body that are inspected on the event loop; longer ones in a thread."""


class Tokens:
    """An access token of one connection, renewed before it expires.

    Args:
        fetch: returns a token and its expiry in seconds since the epoch, or raises Fault; called in a thread.
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
        """Call `send` and return its result; after a 401, call it again with a new token. Raise Fault if it fails."""
        used = self.token
        try:
            return await send()
        except Fault as fault:
            if fault.status != 401:
                raise
        if self.token == used:
            self.token = None
        return await send()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """An HTTP transport that only sends to one provider, and only images that the run has cleared.

    Args:
        model: "provider/model".
        url: the provider's address. Requests to other addresses, such as redirects, are refused.
        options: certificates, `on_premises`, and the run's gate.
    """

    def __init__(self, model: str, url: str, options: ProviderOptions) -> None:
        self.model = model
        self._url = url
        self._origin = origin_of(url)
        self._options = options
        self._way: tuple[Destination, httpx2.AsyncHTTPTransport] | None = None
        self._opening = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Check and record that a request's images may be sent; send it and return the response.

        Raises:
            NotAllowed: an image may not be sent, or the request is for another address; nothing was sent.
        """
        asked = origin_of(str(request.url))
        if asked != self._origin:
            raise NotAllowed(
                f"{self.model}: a request to {asked} was refused: its address is {self._origin}, and nothing is sent "
                "elsewhere (redirects are not followed)"
            )
        to, transport = await self._opened()
        if to.reach is not Reach.LOOPBACK and not cleared_file.get():
            body = await request.aread()
            kind = request.headers.get("content-type", "")
            long = len(body) > AT_ONCE
            found = await asyncio.to_thread(images_in, kind, body) if long else images_in(kind, body)
            await self._clear(to, found)
        response = await transport.handle_async_request(request)
        announce(announced_in_headers(response.headers))
        return response

    async def clear_file(self, file: Path) -> None:
        """Check and record that every image of a request file may be sent. Raise NotAllowed if one may not."""
        to, _ = await self._opened()
        if to.reach is not Reach.LOOPBACK:
            await self._clear(to, await asyncio.to_thread(images_in_lines, file))

    async def aclose(self) -> None:
        """Close the connections."""
        way, self._way = self._way, None
        if way is not None:
            await way[1].aclose()

    async def _clear(self, to: Destination, images: set[Outgoing]) -> None:
        if not images:
            return
        if self._options.context.clearance is None:
            raise NotAllowed(
                f"{self.model}: an image was about to be sent to {to.address} ({to.why}), but the model was opened "
                "outside of a run, so its source is unknown"
            )
        await self._options.context.clearance.clear(self.model, to, images)

    async def _opened(self) -> tuple[Destination, httpx2.AsyncHTTPTransport]:
        """Resolve the destination once: an address that was loopback must remain so for every connection."""
        async with self._opening:
            if self._way is None:
                to = await asyncio.to_thread(destination, self._url, self._options)
                self._way = to, self._transport(to)
        return self._way

    def _transport(self, to: Destination) -> httpx2.AsyncHTTPTransport:
        plain = self._url.startswith("http:")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else tls_context(self._options)
        try:
            transport = httpx2.AsyncHTTPTransport(verify=tls, limits=UNBOUNDED, proxy=self._proxy(to))
        except (ValueError, ImportError, httpx2.InvalidURL):  # its message would repeat a password
            raise NotAllowed(
                f"the environment's proxy for {self._origin} is not an address such as http://host:3128 that can be "
                "used (SOCKS needs socksio); nothing was sent"
            ) from None
        # httpx2 has no public parameter for a network backend.
        transport._pool._network_backend = CheckedNetwork(to, self._options.context.clearance)
        return transport

    def _proxy(self, to: Destination) -> str | None:
        """Return the environment's proxy, which is used for hosted addresses only."""
        if to.reach is not Reach.HOSTED:
            return None
        parts = urlsplit(self._url)
        known = {} if proxy_bypass(parts.hostname or "") else getproxies()
        for name in (parts.scheme, "all"):
            if found := known.get(name):
                return found if "://" in found else f"http://{found}"
        return None


class CheckedNetwork(httpcore2.AnyIOBackend):
    """A network backend that only connects to the destination that was checked.

    A loopback name must still resolve to loopback. For other destinations the IP address of the server, or of the
    proxy, is recorded before anything is sent.
    """

    def __init__(self, to: Destination, clearance: Clearance | None) -> None:
        self._to, self._clearance = to, clearance

    async def connect_tcp(
        self, host: str, port: int, *args: Any, **kwargs: Any
    ) -> httpcore2.AsyncNetworkStream:
        if self._to.reach is not Reach.LOOPBACK:
            stream = await super().connect_tcp(host, port, *args, **kwargs)
            if self._clearance is not None:
                await self._clearance.connected(self._to, str(stream.get_extra_info("server_addr")[0]))
            return stream
        try:
            addresses = await loopback_addresses(host, port)
        except ConnectionRefusedError as why:
            raise NotAllowed(f"nothing was sent to {host}:{port}: {why}") from None
        for address in addresses[:-1]:
            with contextlib.suppress(httpcore2.ConnectError):
                return await super().connect_tcp(address, port, *args, **kwargs)
        return await super().connect_tcp(addresses[-1], port, *args, **kwargs)


def tls_context(options: ProviderOptions) -> ssl.SSLContext:
    """Return a TLS context that also trusts the recipe's `ca_bundle`; raise OSError if that has no certificate."""
    context = httpx2.create_ssl_context()
    if options.ca_bundle is not None:
        context.load_verify_locations(options.ca_bundle)
    return context


class Wire:
    """The HTTP connection of one model. It never retries; every failure is a `Fault`.

    Args:
        name: "provider/model".
        address: base URL in the recipe; addresses in environment variables are ignored.
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
        """Return the full URL of a path of the provider's API."""
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
        """Send a request and return its successful response; repeat a 401 with a new token. Raise Fault if it fails.

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
        """Fetch the JSON object at a path. Raise Fault if the request fails or the answer is not an object."""
        return read_body((await self.request("GET", path)).content)

    async def download(self, path: str, to: IO[bytes]) -> None:
        """Download a path into a file opened for writing bytes. Raise Fault if it fails."""

        async def save(headers: dict[str, str]) -> None:
            async with self._client().stream("GET", self.url_of(path), headers=headers) as reply:
                if not reply.is_success:
                    await reply.aread()
                    raise self.refused(reply)
                async for piece in reply.aiter_bytes():
                    to.write(piece)

        await self._sent(save(await self.sign()), TRANSFER_S)

    def refused(self, reply: httpx2.Response) -> Fault:
        """Convert a response with an error status to a fault."""
        return refused_request(self.name, reply.status_code, reply.text, reply.headers)

    async def clear_file(self, file: Path) -> None:
        """Check and record that the images of a request file may be sent. Raise Fault if one may not."""
        await self._sent(self._open()[0].clear_file(file), TRANSFER_S)

    async def aclose(self) -> None:
        """Close the client; the next call opens another."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened[2].aclose()

    async def _sent(self, request: Awaitable[T], timeout_s: float | None = None) -> T:
        """Wait for a request; raise Fault for a timeout and whatever the HTTP client raises."""
        limit = self.options.timeout_s
        try:
            async with asyncio.timeout(timeout_s or limit):
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
