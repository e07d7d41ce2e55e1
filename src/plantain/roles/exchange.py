"""What a call's sender and the transport below tell each other beside request and answer."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from plantain.records import Outcome, OutcomeKind

NO_REGION = Outcome(
    OutcomeKind.NOT_APPLICABLE, "this editor has to be told where to edit, and there is no region"
)


@dataclass(frozen=True, slots=True)
class AnnouncedLimit:
    """A limit that a provider states with an answer.

    Attributes:
        what: what is counted.
        per_minute: how many a minute; infinite where only a pause was asked for.
        left: how many of them are left now; None where that was not said.
        reset_s: seconds until all of them are there again.
    """

    what: Literal["requests", "tokens"]
    per_minute: float
    left: float | None = None
    reset_s: float | None = None


@dataclass(slots=True)
class Exchange:
    """One call.

    Attributes:
        limits: what the provider announced of its limits, by the transport.
        timed: the sender ends the call when it takes too long, and may change its mind while it goes on: the
            transport need not.
        ran_on: the kind of worker that answered, by an engine; "" where none did.
    """

    limits: list[AnnouncedLimit] = field(default_factory=list)
    timed: bool = False
    ran_on: str = ""


exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
"""The call that is being sent; None for requests outside of a run's calls."""


def announce(limits: list[AnnouncedLimit]) -> None:
    """Tells the sender of limits."""
    here = exchange.get()
    if here is not None:
        here.limits.extend(limits)


def patience(timeout_s: float) -> float | None:
    """Seconds that a transport waits: as long as the sender does, where that one keeps the time."""
    here = exchange.get()
    return None if here is not None and here.timed else timeout_s


def answered_by(kind: str, lost: str, broken: str) -> Outcome | None:
    """Tells the sender which kind of worker answered; the outcome where none did.

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
    return Outcome(OutcomeKind.TRANSPORT, f"worker lost, and what it may have answered: {lost}", lost=True)
