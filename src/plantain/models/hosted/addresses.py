"""The reach of a provider's address (loopback, on the premises, hosted), by the IP addresses of its host."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

from plantain.files.secrets import Secret, key_from_environment
from plantain.records import Destination, Reach
from plantain.roles.options import ProviderOptions

AZURE = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com", ".openai.azure.us")
"""Domains of Azure resources, after the resource's name."""


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address, in lower case and always with the port."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = (parts.hostname or "").rstrip(".")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def resolved(host: str, port: int | None = None) -> list[str]:
    """Return every address of a host name, the host itself if it is an address; [] if it does not resolve."""
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
    """Return why a host is not this machine; "" if each of its addresses is loopback."""
    if not addresses:
        return f"{host} does not resolve, so nothing shows that it is this machine"
    for address in addresses:
        if not _is_loopback(address):
            return f"{host} is not loopback" if address == host else f"{host} resolves to {address}"
    return ""


def tenant_of(url: str, options: ProviderOptions) -> str:
    """Return the cloud tenant of an address: the project of the settings, or the resource in the host name."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return options.get("project") or next((host.removesuffix(end) for end in AZURE if host.endswith(end)), "")


def destination(url: str, options: ProviderOptions) -> Destination:
    """Return how far an address is; asks the resolver. Through the recipe's proxy no address is loopback."""
    host = urlsplit(url).hostname or ""
    why = not_loopback(host, resolved(host))
    if options.proxy and not why:
        why = "the recipe names a proxy for it"
    if not why:
        return Destination(origin_of(url), Reach.LOOPBACK)
    reach = Reach.ON_PREMISES if options.on_premises and options.base_url else Reach.HOSTED
    return Destination(origin_of(url), reach, why, tenant_of(url, options))


def stays_on_premises(options: ProviderOptions) -> bool:
    """Return True if the configured base URL is local or on the premises; a provider's own address never is."""
    return bool(options.base_url) and destination(options.base_url, options).reach is not Reach.HOSTED


async def loopback_addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host that must be this machine. Raise ConnectionRefusedError if it is not."""
    addresses = await asyncio.to_thread(resolved, host, port)
    why = not_loopback(host, addresses)
    if why:
        raise ConnectionRefusedError(f"{why}; it was this machine when the run first used it")
    return addresses


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)


def key_of(provider: str, options: ProviderOptions, usual: tuple[str, ...]) -> Secret:
    """Return the key of a section, in the variable that it names or the provider's usual ones. Raise MissingKey."""
    names = (options.api_key_env,) if options.api_key_env else usual
    return key_from_environment(
        names, provider, near=stays_on_premises(options), later=options.context.key_later
    )
