"""Who is asked before a picture leaves this machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from plantain.records import Destination, Outgoing


class Clearance(Protocol):
    """Asked at the one place where bytes go out; `plantain.runs` has the only one."""

    async def clear(self, model: str, to: Destination, pictures: Collection[Outgoing]) -> None:
        """Returns when every picture may go there and that is recorded. Raises NotAllowed."""
        ...

    async def connected(self, to: Destination, ip: str) -> None:
        """Records which address a connection was really made to, before anything is sent over it."""
        ...
