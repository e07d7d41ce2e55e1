"""Admission: when a call may be sent. One gate for each model, one budget and one count of calls for all."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from plantain.calls.limits import Budget, Concurrency, Pace, StepCosts, cost_of, most_of
from plantain.calls.policy import PASSING, CircuitBreaker, Interrupted, LimitReached
from plantain.records import Outcome, OutcomeKind, Price, Step, Usage
from plantain.roles import AnnouncedLimit

TYPICAL_TOKENS = {Step.WRITE: 3_000, Step.EDIT: 3_000, Step.JUDGE: 5_000}
"""Tokens that a call is assumed to take of a token limit before one was seen."""

SMOOTHING = 0.1
SPREAD = 0.5
"""Once a model without a known rate has refused a call, calls are sent apart: by this share of the time of an answer,
divided by the window. Many providers refuse two calls in the same instant."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
"""Seconds without a call after a refusal that does not say when to come again; doubled while refusals follow."""

NEAR = 0.25
"""The window does not grow when answers take this share of the deadline: a queue would outgrow the rest of it."""

LONGEST_BLOCK_S = 60.0
"""Seconds that a limit that is used up is waited for on a header's word; a refusal may say more."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Limits and price of one model, from the recipe.

    Attributes:
        concurrency: maximum number of calls in flight.
        requests_per_minute, tokens_per_minute: stated limits; None for none.
        price: list prices; None if unknown.
        max_output_tokens: token limit of an answer, by which money is reserved.
        image_tokens: maximum tokens of one output image, if known.
        in_jobs: True if its calls are sent in batch jobs, whose outcomes do not reflect rate limits.
        slow_start: True to start with few calls in flight; False for local devices.
        deadline_s: seconds after which an unanswered call is ended; None for no limit.
        outage_s: seconds to wait for a model that does not answer; None if failures do not predict further ones.
    """

    concurrency: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price | None = None
    max_output_tokens: int = 8_192
    image_tokens: int = 0
    in_jobs: bool = False
    slow_start: bool = True
    deadline_s: float | None = None
    outage_s: float | None = None


@dataclass(slots=True, eq=False)
class Ticket:
    """Permission to send one call. The sender reports the outcome with `settle` before it returns the ticket.

    Attributes:
        gate: the model's gate.
        step: step of the call.
        reserved_usd: US dollars reserved for this call; None if the model has no price.
        price: prices at which it is billed.
        tokens: tokens reserved of the limit per minute.
        sent_at, level: time at which it was granted, and number of calls then in flight.
        started: set by the sender once the call is journalled as started; from then on it may have been billed.
        cost_usd: the actual cost in US dollars; set by `settle`.
        sit_out: set by `settle` during an outage: the call is repeated without counting as a failure.
        give_up: set by `settle` if the outage has lasted too long.
    """

    gate: ModelGate
    step: Step
    reserved_usd: float | None
    price: Price | None
    tokens: float
    sent_at: float
    level: int
    started: bool = False
    settled: bool = False
    cost_usd: float | None = None
    sit_out: bool = False
    give_up: bool = False

    def announced(self, limits: Sequence[AnnouncedLimit]) -> None:
        """Report the limits that the provider announced, before `settle`, for every outcome."""
        for limit in limits:
            self.gate.announced(limit)

    def settle(self, outcome: Outcome, usage: Usage) -> None:
        """Report the call's outcome and usage, once, before the ticket is returned."""
        self.settled = True
        self.cost_usd = self.gate.settled(self, outcome, usage)
        if outcome.kind in PASSING:
            self.sit_out, self.give_up = self.gate.outage.open, self.gate.outage.over(_now())


class ModelGate:
    """Grant calls to one model within its limits, from a queue that is fair by step. For one event loop."""

    def __init__(
        self, model: str, rules: ModelLimits, budget: Budget, again: Callable[[ModelGate], None]
    ) -> None:
        """`again` is called when a wait is over and `pump` may grant more."""
        self.model = model
        self.rules = rules
        self._again = again
        self._budget = budget
        first = {} if rules.slow_start else {"first": rules.concurrency}
        self.window = Concurrency(rules.concurrency, **first)
        self.requests = Pace(rules.requests_per_minute)
        self._tokens = Pace(rules.tokens_per_minute)
        self.outage = CircuitBreaker(rules.outage_s)
        self._waiting: dict[Step, deque[asyncio.Future[Ticket]]] = {step: deque() for step in Step}
        self._turn = list(Step)
        self._usual = dict(TYPICAL_TOKENS)
        self._costs = {step: self._step_costs(step) for step in Step}
        self._pause, self._paused_at = 0.0, -math.inf
        self._answer_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def queue(self, step: Step) -> asyncio.Future[Ticket]:
        """Queue a call; return a future that receives its ticket."""
        place: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting[step].append(place)
        return place

    def resume(self, step: Step, usd: float | None) -> Ticket:
        """Make the ticket of a call that an earlier process sent, reserving `usd`, and that is not answered yet."""
        costs = self._costs[step]
        costs.in_jobs_usd = max(0.0, costs.in_jobs_usd - (usd or 0.0))
        costs.in_flight += 1
        return Ticket(self, step, usd, self.rules.price, 0.0, _now(), self.window.start(), started=True)

    def fail(self, error: Exception) -> None:
        """Raise a copy of an error in all waiting calls."""
        for places in self._waiting.values():
            while places:
                place = places.popleft()
                if not place.done():
                    place.set_exception(again(error))

    def pump(self) -> bool:
        """Grant tickets until rate, concurrency or budget is used up; return True if it was the budget.

        Raises:
            LimitReached: no call fits into the budget, even after those in flight; or `max_calls` is reached.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while (step := self._whose_turn()) is not None:
            if not self._budget.calls_left:
                raise LimitReached(
                    f"limits.max_calls = {self._budget.max_calls}: all are made; raise limits.max_calls to resume"
                )
            usd = self.reservation(step)
            if usd is not None and not self._budget.fits(usd):
                if self._budget.outstanding == 0:
                    raise LimitReached(self._out_of_money(usd))
                return True
            self._grant(step, usd)
        return False

    def reservation(self, step: Step) -> float | None:
        """Return the US dollars to reserve for a call of this step; None without a price."""
        return None if self.rules.price is None else self._costs[step].most

    def settled(self, ticket: Ticket, outcome: Outcome, usage: Usage) -> float | None:
        """Adapt limits to a call's outcome; return its cost in US dollars (None if unknown), counted by `returned`."""
        if not self.rules.in_jobs:
            self._learn(ticket, outcome)
        self.window.end()
        used = usage.total_tokens
        if used or outcome.kind is OutcomeKind.RATE_LIMITED:
            self._tokens.refund(ticket.tokens - used)
        if used:
            self._usual[ticket.step] += int(SMOOTHING * (used - self._usual[ticket.step]))
        return cost_of(ticket.price, outcome, usage)

    def returned(self, ticket: Ticket) -> None:
        """Take back a ticket after its call is recorded; an unsettled call was not sent, or has no known outcome.

        The reserved amount is released only now, so that no call is recorded while it is still counted in full.
        """
        costs = self._costs[ticket.step]
        if ticket.settled:
            self._budget.settle(costs, ticket.cost_usd if ticket.price is not None else 0.0)
            return
        ticket.settled = True
        self.window.end()
        self.outage.lost(ticket.sent_at)
        if not ticket.started:
            self._budget.calls -= 1
        unknown = ticket.started and ticket.price is not None
        self._budget.settle(costs, None if unknown else 0.0)

    def announced(self, limit: AnnouncedLimit) -> None:
        """Adapt to a limit that the provider has announced."""
        now = _now()
        pace = self._tokens if limit.what == "tokens" else self.requests
        pace.announced(limit.per_minute, now)
        if limit.left is not None and limit.left < 1.0 and limit.reset_s is not None:
            pace.block(now + min(limit.reset_s, LONGEST_BLOCK_S))

    def _step_costs(self, step: Step) -> StepCosts:
        costs = self._budget.costs(self.model, step)
        price = self.rules.price
        if price is not None and price != Price():
            costs.bound = most_of(price, step, self.rules.max_output_tokens, self.rules.image_tokens)
        return costs

    def _whose_turn(self) -> Step | None:
        """The step whose call may be sent now, the one served longest ago first; sets the timer when all must wait."""
        waiting = [step for step in self._turn if self._has_waiting(step)]
        if not waiting or not self.window.room:
            return None
        now = _now()
        wait_s = max(self.requests.wait(now), self._tokens.wait(now), self.outage.wait(now))
        if math.isinf(wait_s):  # a probe is on its way to find out whether the model answers again
            return None
        if wait_s <= 0.0:
            return waiting[0]
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._again, self)
        return None

    def _has_waiting(self, step: Step) -> bool:
        places = self._waiting[step]
        while places and places[0].done():
            places.popleft()
        return bool(places)

    def _grant(self, step: Step, usd: float | None) -> None:
        now = _now()
        place = self._waiting[step].popleft()
        self._turn.remove(step)
        self._turn.append(step)
        tokens = self._usual[step]
        self.requests.take(now)
        self._tokens.take(now, tokens)
        self._costs[step].in_flight += 1
        self._budget.calls += 1
        self.outage.sent()
        if not (self.requests.known or self.window.slow_start):
            self.requests.block(now + SPREAD * self._answer_s / self.window.size)
        place.set_result(Ticket(self, step, usd, self.rules.price, tokens, now, self.window.start()))

    def _learn(self, ticket: Ticket, outcome: Outcome) -> None:
        now = _now()
        if outcome.kind is OutcomeKind.RATE_LIMITED and not outcome.fatal:
            self.requests.block(now + (outcome.retry_after or 0.0))
            if not self.window.too_many(ticket.level) and ticket.sent_at > self._paused_at:
                self._pause = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2.0 * self._pause))
                self._paused_at = now
                self.requests.block(now + self._pause)
            self.window.refused(now, ticket.sent_at, ticket.level, by_rate=self.requests.known)
        elif outcome.timed_out:
            self.window.timed_out(now, ticket.sent_at)
        elif outcome.kind not in (OutcomeKind.TRANSPORT, OutcomeKind.CANCELLED):
            if ticket.sent_at > self._paused_at:
                self._pause = 0.0
            took = now - ticket.sent_at
            self._answer_s += (took - self._answer_s) * (SMOOTHING if self._answer_s else 1.0)
            roomy = self.rules.deadline_s is None or took <= NEAR * self.rules.deadline_s
            self.window.accepted(now, ticket.sent_at, ticket.level, roomy=roomy)
        if self.outage.heard(outcome, ticket.sent_at, now):
            self.window.restart()

    def _out_of_money(self, usd: float) -> str:
        budget = self._budget
        held = (
            f" and ${budget.held_usd:.4f} held for {budget.lost} calls of unknown cost"
            if budget.held_usd
            else ""
        )
        return (
            f"limits.budget_usd = {budget.budget_usd:g}: ${budget.spent_usd:.4f} spent{held}, and the next call to "
            f"{self.model} may cost ${usd:.4f}; raise limits.budget_usd to resume"
        )


class AdmissionController:
    """Admission of a run's calls by stated, announced and observed limits, within a budget and a number of calls.

    Args:
        rules: returns a model's limits and price by its name; called once for each.
        budget: the run's money and calls.

    Attributes:
        on_outage: called with the model and a message at each pause for a model that does not answer.
    """

    def __init__(self, rules: Callable[[str], ModelLimits], budget: Budget) -> None:
        self.budget = budget
        self.gates: dict[str, ModelGate] = {}
        self.on_outage: Callable[[str, str], None] | None = None
        self._rules = rules
        self._short_of_money: set[ModelGate] = set()
        self._stopped: Exception | None = None

    @asynccontextmanager
    async def admit(self, model: str, step: Step) -> AsyncIterator[Ticket]:
        """Wait for permission to send one call to `model`.

        Raises:
            LimitReached: the budget or the maximum number of calls is used up.
            Interrupted: a stop was requested meanwhile.
        """
        if self._stopped is not None:
            raise again(self._stopped)
        gate = self._gate(model)
        place = gate.queue(step)
        self._pump(gate)
        try:
            ticket = await place
        except BaseException:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._take_back(place.result())  # granted and cancelled in the same instant
            raise
        try:
            yield ticket
        finally:
            self._take_back(ticket)

    @asynccontextmanager
    async def resume(self, model: str, step: Step, reserved_usd: float | None) -> AsyncIterator[Ticket]:
        """Take over a call that an earlier process sent and counted, without waiting; yield its ticket."""
        ticket = self._gate(model).resume(step, reserved_usd)
        try:
            yield ticket
        finally:
            self._take_back(ticket)

    def stop(self) -> None:
        """Grant no more tickets; waiting calls raise Interrupted."""
        self._end(Interrupted())

    @property
    def in_jobs(self) -> int:
        """The number of calls that wait for batch jobs."""
        return sum(gate.window.in_flight for gate in self.gates.values() if gate.rules.in_jobs)

    def _gate(self, model: str) -> ModelGate:
        if model not in self.gates:
            self.gates[model] = ModelGate(model, self._rules(model), self.budget, self._pump)
        return self.gates[model]

    def _take_back(self, ticket: Ticket) -> None:
        gate = ticket.gate
        gate.returned(ticket)
        if self.on_outage is not None and (news := gate.outage.news(_now())):
            self.on_outage(gate.model, news)
        self._pump(gate)
        for short in list(self._short_of_money):
            self._pump(short)

    def _pump(self, gate: ModelGate) -> None:
        self._short_of_money.discard(gate)
        try:
            if gate.pump():
                self._short_of_money.add(gate)
        except LimitReached as reached:
            self._end(reached)

    def _end(self, why: Exception) -> None:
        if self._stopped is None:
            self._stopped = why
        for gate in self.gates.values():
            gate.fail(self._stopped)


def again(why: Exception) -> Exception:
    """Copy an error, to raise it in several tasks without mixing their tracebacks."""
    return type(why)(*why.args)


def _now() -> float:
    return asyncio.get_running_loop().time()
