"""Where a provider's address leads: loopback is what a name resolves to now, never what it is called."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

from plantain.records import Destination, Reach
from plantain.roles.options import ProviderOptions


def origin_of(url: str) -> str:
    """Scheme, host and port of an address, in lower case and with the port always said."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = (parts.hostname or "").rstrip(".")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def resolved(host: str, port: int | None = None) -> list[str]:
    """Every address that a host name stands for, the host itself where it is an address; [] where nobody knows it."""
    host = host.rstrip(".")
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def not_loopback(host: str, addresses: list[str]) -> str:
    """Why a host is not this machine; "" where every address that it stands for is loopback."""
    if not addresses:
        return f"{host} does not resolve, so nothing shows that it is this machine"
    for address in addresses:
        if not _is_loopback(address):
            return f"{host} is not loopback" if address == host else f"{host} resolves to {address}"
    return ""


AZURE = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com", ".openai.azure.us")
"""What follows a resource's name in its address."""


def tenant_of(url: str, options: ProviderOptions) -> str:
    """Whose part of a cloud is spoken to: the project that every request names, or the resource that the host is."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return options.get("project") or next((host.removesuffix(end) for end in AZURE if host.endswith(end)), "")


def destination(url: str, options: ProviderOptions) -> Destination:
    """How far an address is; asks the resolver. A proxy that the recipe names stands between us and any loopback."""
    host = urlsplit(url).hostname or ""
    why = not_loopback(host, resolved(host))
    if options.proxy and not why:
        why = "the recipe names a proxy for it"
    if not why:
        return Destination(origin_of(url), Reach.LOOPBACK)
    reach = Reach.ON_PREMISES if options.on_premises and options.base_url else Reach.HOSTED
    return Destination(origin_of(url), reach, why, tenant_of(url, options))


def stays_in_the_house(options: ProviderOptions) -> bool:
    """Whether what is sent to the recipe's addresses does; the provider's own address never is there."""
    return bool(options.addresses) and all(
        destination(url, options).reach is not Reach.HOSTED for url in options.addresses
    )


async def loopback_addresses(host: str, port: int) -> list[str]:
    """What to connect to instead of a host that has to be this machine. Raises ConnectionRefusedError otherwise."""
    addresses = await asyncio.to_thread(resolved, host, port)
    why = not_loopback(host, addresses)
    if why:
        raise ConnectionRefusedError(f"{why}; it was this machine when the run began to use it")
    return addresses


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)
