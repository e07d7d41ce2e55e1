"""A server on this machine that looks like one elsewhere, and a record of all connections that a process opens.

`NAME` resolves to 127.0.0.1 and also to an address of TEST-NET-3 (RFC 5737), which is not assigned: so it is not
loopback, though a client that connects to the first address reaches a fake on this machine.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Collection
from typing import Any

import pytest

from plantain.records import Destination, Outgoing

NAME = "provider.example"
ELSEWHERE = "203.0.113.7"

Connections = list[tuple[str, int]]
_recorders: list[Connections] = []


def resolve_as(monkeypatch: pytest.MonkeyPatch, names: dict[str, list[str]]) -> None:
    """Resolve these names to these addresses, and others as before."""
    real = socket.getaddrinfo

    def answer(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in names:
            return real(host, port, *rest, **more)
        if not names[name]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        kind = (socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [
            (socket.AF_INET6, *kind, (address, int(port or 0), 0, 0))
            if ":" in address
            else (socket.AF_INET, *kind, (address, int(port or 0)))
            for address in names[name]
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def look_hosted(monkeypatch: pytest.MonkeyPatch, url: str) -> str:
    """The address of a server on this machine under a name that is not loopback."""
    resolve_as(monkeypatch, {NAME: ["127.0.0.1", ELSEWHERE]})
    return url.replace("127.0.0.1", NAME)


class RecordedConnections:
    """Within the block, every address that a socket of this process connects to."""

    def __enter__(self) -> Connections:
        self._seen: Connections = []
        _recorders.append(self._seen)
        return self._seen

    def __exit__(self, *ended: object) -> None:
        _recorders.remove(self._seen)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and _recorders and isinstance(arguments[1], tuple):
        for seen in _recorders:
            seen.append(arguments[1][:2])


sys.addaudithook(_hook)


class Anything:
    """Clears every image, and records the requests for clearance."""

    def __init__(self) -> None:
        self.asked: list[tuple[Destination, set[str]]] = []

    async def clear(self, model: str, to: Destination, images: Collection[Outgoing]) -> None:
        self.asked.append((to, {image.sha256 for image in images}))

    async def connected(self, to: Destination, ip: str) -> None:
        """Needs no record of it."""
