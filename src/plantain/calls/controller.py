"""Admission control for hosted models: a rate limiter for each, one budget and one count of calls for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from plantain.calls.admission import Ticket
from plantain.calls.budget import Budget
from plantain.calls.rate_limiter import LimiterTicket, ModelLimits, RateLimiter
from plantain.calls.stops import Interrupted, LimitReached
from plantain.journal import JsonValue
from plantain.records import Step


class AdmissionController:
    """Admission by stated and learned limits, within a budget and a number of calls.

    `on_outage` receives the model and a message at each pause in which the model does not answer.

    Args:
        rules: what the recipe says of a model, by its name; asked once for each, and again where its price has an end.
        budget: the run's money and calls.
    """

    def __init__(self, rules: Callable[[str], ModelLimits], budget: Budget) -> None:
        self.budget = budget
        self.limiters: dict[str, RateLimiter] = {}
        self._rules = rules
        self._short_of_money: set[RateLimiter] = set()
        self._stopped: Exception | None = None
        self.on_outage: Callable[[str, str], None] | None = None

    @asynccontextmanager
    async def admit(self, model: str, step: Step) -> AsyncIterator[Ticket]:
        """Waits for leave to send one call to `model`.

        Raises:
            LimitReached: the budget or the cap on calls is used up.
            Interrupted: the run was asked to stop meanwhile.
        """
        if self._stopped is not None:
            raise _again(self._stopped)
        limiter = self._limiter(model)
        place = limiter.queue(step)
        self._pump(limiter)
        try:
            ticket = await place
        except BaseException:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._hand_in(place.result())  # granted and cancelled in the same instant
            raise
        try:
            yield ticket
        finally:
            self._hand_in(ticket)

    @asynccontextmanager
    async def resume(self, model: str, step: Step, reserved_usd: float | None) -> AsyncIterator[Ticket]:
        """Takes over a call that an earlier process sent: it is counted and paid for already, so nothing is asked."""
        ticket = self._limiter(model).resume(step, reserved_usd)
        try:
            yield ticket
        finally:
            self._hand_in(ticket)

    def stop(self) -> None:
        """Nobody is granted a ticket any more; whoever waits gets Interrupted."""
        self._end(Interrupted())

    def rest(self) -> None:
        """No call is in flight any more."""

    @property
    def in_jobs(self) -> int:
        """Calls that wait for batch jobs."""
        return sum(limiter.window.in_flight for limiter in self.limiters.values() if limiter.rules.in_jobs)

    def history(self) -> dict[str, JsonValue]:
        """How the limits moved, by model, for the session's telemetry."""
        return {model: limiter.history.as_json() for model, limiter in sorted(self.limiters.items())}

    def _limiter(self, model: str) -> RateLimiter:
        if model not in self.limiters:
            self.limiters[model] = RateLimiter(model, self._rules(model), self.budget, self._pump)
        return self.limiters[model]

    def _price_by_day(self, limiter: RateLimiter) -> None:
        """Takes up the price that has followed since the last call; one that nobody follows up goes on."""
        price = limiter.rules.price
        if price is None or not price.until:
            return
        rules = self._rules(limiter.model)
        if rules.price is not None and rules.price.since != price.since:
            limiter.priced(rules.price, rules.tier_factor)

    def _hand_in(self, ticket: LimiterTicket) -> None:
        ticket.hand_in()
        outage = ticket.limiter.outage
        if self.on_outage is not None and (news := outage.news(asyncio.get_running_loop().time())):
            self.on_outage(ticket.limiter.model, news)
        self._pump(ticket.limiter)
        for limiter in list(self._short_of_money):
            self._pump(limiter)

    def _pump(self, limiter: RateLimiter) -> None:
        self._short_of_money.discard(limiter)
        self._price_by_day(limiter)
        try:
            if limiter.pump():
                self._short_of_money.add(limiter)
        except LimitReached as reached:
            self._end(reached)

    def _end(self, why: Exception) -> None:
        if self._stopped is None:
            self._stopped = why
        for limiter in self.limiters.values():
            limiter.fail(self._stopped)


def _again(why: Exception) -> Exception:
    """The same error anew: one object raised in many tasks would gather all their tracebacks."""
    return type(why)(*why.args)
