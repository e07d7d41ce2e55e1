"""A model with a connection of its own, behind the run's gate: what it is handed is cleared before it is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from plantain.privacy.lineage import sha256_of
from plantain.records import Destination, NotAllowed, Outcome, OutcomeKind, Outgoing, Reach
from plantain.roles import EncodedImage, failed
from plantain.roles.clearance import Clearance

T = TypeVar("T")

ASKED = frozenset({"write", "edit", "look", "judge", "score", "describe"})
"""What models are asked to do, each with one request."""

HOLD_NO_PICTURE = frozenset({str, int, float, bool, type(None)})
"""Most of what a request holds; each is passed over at once."""


def cleared(role: T, gate: Clearance, to: Destination) -> T:
    """The role, unless it is local: then a stand-in that has each request's pictures cleared first.

    Args:
        role: a writer, editor, judge or describer that holds a connection which is not ours.
        gate: the run's.
        to: how far it is.
    """
    return role if to.reach is Reach.LOOPBACK else cast(T, _Cleared(role, gate, to))


class _Cleared:
    """All that the role shows, as it is, but for its requests."""

    def __init__(self, role: object, gate: Clearance, to: Destination) -> None:
        self._role, self._gate, self._to = role, gate, to
        for name in dir(role):
            if not name.startswith("_"):
                found = getattr(role, name)
                setattr(self, name, self._asking(found) if name in ASKED else found)

    def _asking(self, ask: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def asked(request: Any) -> Any:
            pictures = {Outgoing(sha256_of(data)) for data in _pictures(request)}
            try:
                await self._gate.clear(str(getattr(self._role, "name", "")), self._to, pictures)
            except NotAllowed as why:
                return failed(Outcome(OutcomeKind.REFUSED, str(why), fatal=True))
            return await ask(request)

        return asked


def _pictures(value: object) -> list[bytes]:
    """The bytes of every picture in a request, however deep."""
    if isinstance(value, EncodedImage):
        return [value.data]
    if isinstance(value, (tuple, list)):
        return [data for one in value if type(one) not in HOLD_NO_PICTURE for data in _pictures(one)]
    inside = (getattr(value, name) for name in getattr(type(value), "__dataclass_fields__", ()))
    return [data for one in inside if type(one) not in HOLD_NO_PICTURE for data in _pictures(one)]
