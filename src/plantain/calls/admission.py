"""Admission: when a call may be sent. This module is the contract and the plain bounded form of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from plantain.calls.deadline import Deadline
from plantain.records import Outcome, Step, Usage
from plantain.roles.exchange import AnnouncedLimit


@dataclass(slots=True)
class Ticket:
    """Leave to send one call. The sender reports back how it went before handing the ticket in.

    Attributes:
        reserved_usd: money set aside for this call, None where the model has no price.
        cost_usd: what it turned out to cost; set by `settle`.
        started: set by the sender once the call is journalled as started; from then on it may have been billed.
        deadline: how long the call may take.
        sit_out: set by `settle` where the model answers nobody: this call is not to blame, and is tried again.
        give_up: set by `settle` where that has lasted too long.
    """

    reserved_usd: float | None = None
    cost_usd: float | None = None
    started: bool = False
    deadline: Deadline = field(default_factory=lambda: Deadline(None))
    sit_out: bool = False
    give_up: bool = False

    def announced(self, limits: Sequence[AnnouncedLimit]) -> None:
        """Called before `settle` with what the provider stated of its limits, whatever the outcome."""

    def settle(self, outcome: Outcome, usage: Usage) -> None:
        """Called once with the call's outcome and usage, before the ticket is handed in."""


class Admission(Protocol):
    """Grants tickets to calls of one model."""

    def admit(self, model: str, step: Step) -> AbstractAsyncContextManager[Ticket]:
        """Waits for leave to send a call. Raises LimitReached or Interrupted where there will be none."""
        ...

    def resume(
        self, model: str, step: Step, reserved_usd: float | None
    ) -> AbstractAsyncContextManager[Ticket]:
        """The ticket of a call that an earlier process sent, and whose answer is still to come; never waits."""
        ...

    def stop(self) -> None:
        """The run is to stop: whoever waits for a ticket is told so."""

    def rest(self) -> None:
        """No call is in flight any more."""


class Bounded:
    """At most `concurrency` calls at a time, whatever the model; no price."""

    def __init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)

    @asynccontextmanager
    async def admit(self, model: str, step: Step) -> AsyncIterator[Ticket]:
        async with self._slots:
            yield Ticket()

    @asynccontextmanager
    async def resume(self, model: str, step: Step, reserved_usd: float | None) -> AsyncIterator[Ticket]:
        yield Ticket(reserved_usd, started=True)

    def stop(self) -> None:
        """Whoever waits gets a slot as the calls in flight end."""

    def rest(self) -> None:
        """Nothing was claimed."""
