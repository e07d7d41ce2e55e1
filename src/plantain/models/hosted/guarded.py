"""The transport of both SDKs: sends to the provider's own address only, and no picture that was not cleared for it."""

from __future__ import annotations

import asyncio
import importlib.util
import math
import ssl
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from plantain.models.hosted.addresses import destination, loopback_addresses, origin_of
from plantain.models.hosted.limits.announced import announced_in_headers
from plantain.models.hosted.limits.quotas import retry_after
from plantain.models.hosted.outgoing import cleared_file, pictures_in, pictures_in_lines
from plantain.records import Destination, NotAllowed, Outgoing, Reach
from plantain.roles.clearance import Clearance
from plantain.roles.exchange import AnnouncedLimit, announce, patience
from plantain.roles.options import ProviderOptions

UNBOUNDED = httpx2.Limits(max_connections=None, max_keepalive_connections=200)
"""How many calls run at once is for admission to decide, not for a connection pool."""

AT_ONCE = 65_536
"""Bytes of a body that are looked through at once; longer ones in a thread."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Belongs to one model's connection and one event loop.

    Args:
        model: "provider/model".
        url: the provider's address. A request to any other is refused, whoever asked for it: a redirect, an answer
            that names another address for an upload, an SDK's own idea.
        options: proxy, certificates, whether the address is on the premises, and the run's gate.
    """

    def __init__(self, model: str, url: str, options: ProviderOptions) -> None:
        self.model = model
        self._url = url
        self._origin = origin_of(url)
        self._options = options
        self._way: tuple[Destination, httpx2.AsyncHTTPTransport] | None = None
        self._opening = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request whose pictures may go.

        Raises:
            NotAllowed: one may not, or the request is for another address; nothing was sent.
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
            if len(body) > AT_ONCE:
                await self._clear(to, await asyncio.to_thread(pictures_in, kind, body))
            else:
                await self._clear(to, pictures_in(kind, body))
        timeouts = request.extensions.get("timeout", {})
        if patience(0.0) is None:
            request.extensions["timeout"] = {**timeouts, "read": None, "write": None, "pool": None}
        response = await transport.handle_async_request(request)
        announce(announced_in_headers(response.headers))
        pause = retry_after(response.headers, {}) if response.is_success else None
        if pause:  # answered, and asked to wait all the same
            announce([AnnouncedLimit("requests", math.inf, left=0.0, reset_s=pause)])
        return response

    async def clear_file(self, file: Path) -> None:
        """Has every picture of a request file cleared. Raises NotAllowed."""
        to, _ = await self._opened()
        if to.reach is not Reach.LOOPBACK:
            await self._clear(to, await asyncio.to_thread(pictures_in_lines, file))

    async def aclose(self) -> None:
        """Closes the connections."""
        way, self._way = self._way, None
        if way is not None:
            await way[1].aclose()

    async def _clear(self, to: Destination, pictures: set[Outgoing]) -> None:
        if not pictures:
            return
        if self._options.clearance is None:
            raise NotAllowed(
                f"{self.model}: a picture was about to be sent to {to.address} ({to.why}), but the model was opened "
                "outside of a run, where nobody can say whose picture it is"
            )
        await self._options.clearance.clear(self.model, to, pictures)

    async def _opened(self) -> tuple[Destination, httpx2.AsyncHTTPTransport]:
        """Where requests go, decided once: what was found to be this machine is held to it by every connection."""
        async with self._opening:
            if self._way is None:
                to = await asyncio.to_thread(destination, self._url, self._options)
                self._way = to, self._transport(to)
        return self._way

    def _transport(self, to: Destination) -> httpx2.AsyncHTTPTransport:
        plain = self._url.startswith("http:")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else tls_context(self._options)
        transport = httpx2.AsyncHTTPTransport(verify=tls, limits=UNBOUNDED, proxy=self._proxy(to))
        # There is no public way to hand a backend in.
        if to.reach is Reach.LOOPBACK:
            transport._pool._network_backend = LoopbackOnly()
        elif self._options.clearance is not None:
            transport._pool._network_backend = RecordedNetwork(to, self._options.clearance)
        return transport

    def _proxy(self, to: Destination) -> str | None:
        """The recipe's proxy; else the environment's, which only hosted addresses are sent through."""
        if self._options.proxy or to.reach is not Reach.HOSTED:
            return self._options.proxy or None
        parts = urlsplit(self._url)
        if proxy_bypass(parts.hostname or ""):
            return None
        known = getproxies()
        for name in (parts.scheme, "all"):
            if found := known.get(name):
                return self._checked(found if "://" in found else f"http://{found}", f"{name}_proxy")
        return None

    def _checked(self, proxy: str, variable: str) -> str:
        """A proxy of the environment. Raises NotAllowed where it is none; its password is not repeated."""
        try:
            scheme = httpx2.Proxy(proxy).url.scheme
        except (ValueError, httpx2.InvalidURL):
            scheme = ""
        if not scheme:
            raise NotAllowed(
                f"the environment variable {variable} holds no address of a proxy such as "
                "http://host:3128; nothing was sent"
            )
        if scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
            raise NotAllowed(
                f"the environment variable {variable} names a SOCKS proxy, which needs the package "
                "socksio; nothing was sent"
            )
        return proxy


class LoopbackOnly(httpcore2.AsyncNetworkBackend):
    """Connects to this machine and to nothing else: to the very address that was checked, whatever its name."""

    def __init__(self) -> None:
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the base class has it
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first of the host's loopback addresses that answers."""
        try:
            addresses = await loopback_addresses(host, port)
        except ConnectionRefusedError as why:
            raise NotAllowed(f"nothing was sent to {host}:{port}: {why}") from None
        for address in addresses[:-1]:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore2.ConnectError:
                continue
        return await self._inner.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class RecordedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to wherever the resolver says, and records that address before anything is sent there."""

    def __init__(self, to: Destination, clearance: Clearance) -> None:
        self._inner = httpcore2.AnyIOBackend()
        self._to, self._clearance = to, clearance

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the base class has it
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection; of a proxy, the proxy's address is recorded, since no other is known here."""
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        await self._clearance.connected(self._to, str(stream.get_extra_info("server_addr")[0]))
        return stream

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


def tls_context(options: ProviderOptions) -> ssl.SSLContext:
    """The usual certificates, and those that the recipe names: a hospital's own authority, a client's own."""
    context = httpx2.create_ssl_context()
    if options.ca_bundle is not None:
        context.load_verify_locations(options.ca_bundle)
    if options.client_certificate is not None:
        context.load_cert_chain(options.client_certificate, options.client_key)
    return context
