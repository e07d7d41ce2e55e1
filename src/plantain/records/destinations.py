"""Where an image is about to be sent, and the error if it may not be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reach(StrEnum):
    """How far an address is."""

    LOOPBACK = "loopback"
    ON_PREMISES = "on premises"
    HOSTED = "hosted"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where images are sent.

    Attributes:
        address: scheme, host and port; a provider's name if it has its own connection.
        reach: loopback is proved by the connection, on-premises declared by the owner, everything else is hosted.
        why: why it is not loopback, for messages.
        tenant: the Google Cloud project or Azure resource; "" elsewhere.
    """

    address: str
    reach: Reach
    why: str = ""
    tenant: str = ""


class NotAllowed(Exception):
    """An image may not be sent to this destination. One line, without the id of a credentialed image."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One image in a request: its hash, and the journalled call that it is sent for, None for the current one."""

    sha256: str
    call: int | None = None
