"""Permission to send images from this machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from plantain.records import Destination, Outgoing


class Clearance(Protocol):
    """Checked where bytes are sent; `plantain.runs` has the only one."""

    async def clear(self, model: str, to: Destination, images: Collection[Outgoing]) -> None:
        """Return when every image may be sent there and that is recorded. Raise NotAllowed."""
        ...

    async def connected(self, to: Destination, ip: str) -> None:
        """Record the IP address of a connection, before anything is sent over it."""
        ...
