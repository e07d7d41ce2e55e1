"""Data that the sender of a call and its transport exchange in addition to request and answer."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from plantain.records import Outcome, OutcomeKind

NO_REGION = Outcome(OutcomeKind.NOT_APPLICABLE, "this editor requires a region, and none is known")


@dataclass(frozen=True, slots=True)
class AnnouncedLimit:
    """A limit that a provider states with an answer.

    Attributes:
        what: the counted unit.
        per_minute: how many per minute; infinite where only a pause is requested.
        left: how many of them are left now; None where not stated.
        reset_s: seconds until all of them are available again.
    """

    what: Literal["requests", "tokens"]
    per_minute: float
    left: float | None = None
    reset_s: float | None = None


@dataclass(slots=True)
class Exchange:
    """One call.

    Attributes:
        limits: announced by the provider; added by the transport.
        timed: the sender ends the call when it takes too long, so the transport need not.
        ran_on: the kind of worker that answered, by an engine; "" where none did.
    """

    limits: list[AnnouncedLimit] = field(default_factory=list)
    timed: bool = False
    ran_on: str = ""


exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
"""The call that is being sent; None for requests outside of a run's calls."""


def announce(limits: list[AnnouncedLimit]) -> None:
    """Report limits to the sender."""
    here = exchange.get()
    if here is not None:
        here.limits.extend(limits)


def patience(timeout_s: float) -> float | None:
    """Return the seconds that a transport waits; None if the sender ends late calls."""
    here = exchange.get()
    return None if here is not None and here.timed else timeout_s


def answered_by(kind: str, lost: str, broken: str) -> Outcome | None:
    """Report the kind of worker that answered to the sender; return the outcome if none did.

    Args:
        kind: of worker.
        lost: why the worker is gone; "" where it answered.
        broken: why there will be none; "" otherwise.
    """
    here = exchange.get()
    if here is not None:
        here.ran_on = kind
    if broken:
        return Outcome(OutcomeKind.TRANSPORT, broken, fatal=True)
    if not lost:
        return None
    return Outcome(OutcomeKind.TRANSPORT, f"worker lost, with its answer if it had one: {lost}", lost=True)
