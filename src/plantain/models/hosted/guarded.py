"""The HTTP transport of hosted providers: sends only to the provider's address, and only cleared images.

Images are found in the bytes of each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2
import orjson
import pybase64

from plantain.models.hosted.addresses import destination, loopback_addresses, origin_of
from plantain.models.hosted.faults import announced_in_headers
from plantain.privacy.permission import sha256_of
from plantain.records import Destination, NotAllowed, Outgoing, Reach
from plantain.roles import announce, patience
from plantain.roles.options import Clearance, ProviderOptions

UNBOUNDED = httpx2.Limits(max_connections=None, max_keepalive_connections=200)
"""Admission decides how many calls run at once, not a connection pool."""

AT_ONCE = 65_536
"""Bytes of a body that are inspected on the event loop; longer ones in a thread."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Belongs to one model's connection and one event loop.

    Args:
        model: "provider/model".
        url: the provider's address. A request to any other is refused: a redirect, an address in an
            answer.
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
        """Send a request after clearing its images.

        Raises:
            NotAllowed: an image is not cleared, or the request is for another address; nothing was sent.
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
        if patience(0.0) is None:
            timeouts = request.extensions.get("timeout", {})
            request.extensions["timeout"] = {**timeouts, "read": None, "write": None, "pool": None}
        response = await transport.handle_async_request(request)
        announce(announced_in_headers(response.headers))
        return response

    async def clear_file(self, file: Path) -> None:
        """Clear every image of a request file. Raise NotAllowed."""
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
        transport = httpx2.AsyncHTTPTransport(verify=tls, limits=UNBOUNDED, proxy=self._proxy(to))
        # httpx2 has no public parameter for a network backend.
        transport._pool._network_backend = CheckedNetwork(to, self._options.context.clearance)
        return transport

    def _proxy(self, to: Destination) -> str | None:
        """Return the recipe's proxy, else the environment's, which is used for hosted addresses only."""
        if self._options.proxy or to.reach is not Reach.HOSTED:
            return self._options.proxy or None
        parts = urlsplit(self._url)
        known = {} if proxy_bypass(parts.hostname or "") else getproxies()
        for name in (parts.scheme, "all"):
            if found := known.get(name):
                return _checked(found if "://" in found else f"http://{found}", f"{name}_proxy")
        return None


def _checked(proxy: str, variable: str) -> str:
    """Return a proxy of the environment. Raise NotAllowed if it is invalid; its password is not repeated."""
    try:
        httpx2.AsyncHTTPTransport(proxy=proxy, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except (ValueError, ImportError, httpx2.InvalidURL) as error:
        missing = " that can be used: install socksio" if isinstance(error, ImportError) else ""
        raise NotAllowed(
            f"the environment variable {variable} is not the address of a proxy such as http://host:3128{missing}; "
            "nothing was sent"
        ) from None
    return proxy


class CheckedNetwork(httpcore2.AnyIOBackend):
    """Connects to the resolved destination only.

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
    """Return a TLS context with the default certificates and those of the recipe."""
    context = httpx2.create_ssl_context()
    if options.ca_bundle is not None:
        context.load_verify_locations(options.ca_bundle)
    if options.client_certificate is not None:
        context.load_cert_chain(options.client_certificate, options.client_key)
    return context


SHORTEST = 80
"""Characters of base64 below which a text is not an image: the smallest PNG file needs 92. Hashes have 64."""

_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")
_URL_SAFE = str.maketrans("-_", "+/")

cleared_file: ContextVar[bool] = ContextVar("cleared_file", default=False)
"""Set while a cleared request file is uploaded: its pieces may contain half an image."""


@contextmanager
def sending_cleared_file() -> Iterator[None]:
    """Mark bodies sent in the block as pieces of a file cleared as a whole."""
    token = cleared_file.set(True)
    try:
        yield
    finally:
        cleared_file.reset(token)


def images_in(content_type: str, body: bytes) -> set[Outgoing]:
    """Return every image in a body: base64 in JSON, files of a form. An unreadable body counts as an image itself."""
    kind, _, rest = content_type.partition(";")
    if not body:
        return set()
    if kind.strip().lower() == "application/json":
        found = _in_json(body)
    elif kind.strip().lower() == "multipart/form-data" and "boundary=" in rest:
        boundary = rest.partition("boundary=")[2].split(";")[0].strip().strip('"')
        found = _in_form(body, boundary.encode())
    else:
        found = (sha256_of(body),)
    return {Outgoing(sha256) for sha256 in found}


def images_in_lines(file: Path) -> set[Outgoing]:
    """Return every image in a request file of a batch job, with the call whose number its line's key starts with."""
    found: set[Outgoing] = set()
    with file.open("rb") as lines:
        for line in lines:
            request = orjson.loads(line)
            key = str(request.get("key") or request.get("custom_id") or "").partition("-")[0]
            call = int(key) if key.isdecimal() else None
            found |= {Outgoing(sha256, call) for sha256 in _in_value(request)}
    return found


def _in_json(body: bytes) -> Iterable[str]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return (sha256_of(body),)
    return _in_value(value)


def _in_value(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting += table.values()
            case list() as values:
                waiting += values
            case str() as text:
                yield from _in_text(text)


def _in_text(text: str) -> Iterable[str]:
    """Return the hash of the image that a text is, if it is one: anything long that is base64 from start to end."""
    found = _DATA_URL.match(text)
    payload = text[found.end() :] if found else text
    if len(payload) < SHORTEST:
        return ()
    try:
        return (sha256_of(pybase64.b64decode(payload.translate(_URL_SAFE), validate=True)),)
    except ValueError:
        return (sha256_of(payload.encode()),) if found else ()


def _in_form(body: bytes, boundary: bytes) -> Iterator[str]:
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary)[1:]:
        head, separator, payload = part.partition(b"\r\n\r\n")
        if not separator:
            continue
        if b"filename=" not in head.lower():
            yield from _in_text(payload.decode("utf-8", "replace"))
        elif payload:
            yield sha256_of(payload)
