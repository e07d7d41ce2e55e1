"""Admission: when a call may be sent. This module is the contract and the plain bounded form of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from plantain.records import Outcome, Step, Usage


@dataclass(slots=True)
class Ticket:
    """Leave to send one call. The sender reports back how it went before handing the ticket in.

    Attributes:
        reserved_usd: money set aside for this call, None where the model has no price.
        cost_usd: what it turned out to cost; set by `settle`.
    """

    reserved_usd: float | None = None
    cost_usd: float | None = None

    def settle(self, outcome: Outcome, usage: Usage) -> None:
        """Called once with the call's outcome and usage, before the ticket is handed in."""


class Admission(Protocol):
    """Grants tickets to calls of one model."""

    def admit(self, model: str, step: Step) -> AbstractAsyncContextManager[Ticket]: ...


class Bounded:
    """At most `concurrency` calls at a time, whatever the model; no price."""

    def __init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)

    @asynccontextmanager
    async def admit(self, model: str, step: Step) -> AsyncIterator[Ticket]:
        async with self._slots:
            yield Ticket()
