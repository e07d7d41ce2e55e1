"""Where a picture is about to be sent, and that it may not be."""

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
    """Where pictures go.

    Attributes:
        address: scheme, host and port; a provider's name where it keeps its own connection.
        reach: loopback is proved by the connection, on-premises declared by the owner, everything else is hosted.
        why: why it is not loopback, for messages.
        tenant: whose part of a cloud it is, a Google Cloud project or an Azure resource; "" elsewhere.
    """

    address: str
    reach: Reach
    why: str = ""
    tenant: str = ""


class NotAllowed(Exception):
    """A picture that may not go where it was about to be sent. One line, without the id of a credentialed image."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One picture in a request: its hash, and the journalled call that it is sent for, None for the one at hand."""

    sha256: str
    call: int | None = None
