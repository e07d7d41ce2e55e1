"""The limits of one model: its request, token and image rates, its concurrency, and a queue that is fair by step."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from plantain.calls.adaptive_rate import AdaptiveRate
from plantain.calls.admission import Ticket
from plantain.calls.budget import Budget, StepCosts, cost_of, demand
from plantain.calls.circuit_breaker import PASSING, CircuitBreaker
from plantain.calls.concurrency import ConcurrencyLimit
from plantain.calls.deadline import Deadline
from plantain.calls.history import LimitHistory
from plantain.calls.stops import LimitReached
from plantain.records import Outcome, OutcomeKind, Price, Step, Usage
from plantain.roles.exchange import AnnouncedLimit

TYPICAL_TOKENS = {Step.WRITE: 3_000, Step.EDIT: 3_000, Step.LOOK: 5_000, Step.JUDGE: 5_000}
"""What a call is taken to consume of a token limit before the limiter has seen one."""

SMOOTHING = 0.1

LONGEST_BLOCK_S = 60.0
"""Seconds that a limit that is used up is waited for on a header's word; a refusal may say more."""

FEW = 2
HASTE = 0.25
"""Few providers let only one call through at a time; many mind two in the same instant. So a second call refused
tells of the rate if it came within this share of an answer's time behind the first. Where it was the window all the
same, the rate falls until calls come further apart, and is then no longer to blame."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What the recipe says of one model.

    Attributes:
        concurrency: most calls in flight.
        requests_per_minute, tokens_per_minute, images_per_minute: stated limits; None to learn from refusals alone.
        price: None when unknown.
        max_output_tokens: where the adapter has an answer cut; what money is set aside for.
        image_tokens: the most that one picture written comes to, as far as is known.
        tier_factor: how much dearer than listed the service tier is that is asked for.
        in_jobs: its calls wait for batch jobs: all of a wave at once, and what becomes of one says nothing of limits.
        slow_start: whether the first calls feel their way; not those to devices, which wait to be started.
        deadline_s: seconds that a call may take, as a first guess; None for as long as it takes.
        outage_s: seconds of an outage that are sat out; None where calls that fail say nothing of those to come.
    """

    concurrency: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    images_per_minute: float | None = None
    price: Price | None = None
    max_output_tokens: int = 8_192
    image_tokens: int = 0
    tier_factor: float = 1.0
    in_jobs: bool = False
    slow_start: bool = True
    deadline_s: float | None = None
    outage_s: float | None = None


@dataclass(slots=True, eq=False)
class LimiterTicket(Ticket):
    """A limiter's leave to send one call."""

    limiter: RateLimiter = field(kw_only=True)
    step: Step = field(kw_only=True)
    tokens: float = field(kw_only=True)
    sent_at: float = field(kw_only=True)
    level: int = field(kw_only=True)
    price: Price | None = field(kw_only=True)
    gap_s: float = field(kw_only=True, default=math.inf)
    settled: bool = False

    def settle(self, outcome: Outcome, usage: Usage) -> None:
        self.settled = True
        self.cost_usd = self.limiter.settled(self, outcome, usage)
        if outcome.kind in PASSING:  # an answer that was under way when the trouble began is an answer
            self.sit_out, self.give_up = self.limiter.outage.open, self.limiter.outage.over(_now())

    def announced(self, limits: Sequence[AnnouncedLimit]) -> None:
        for limit in limits:
            self.limiter.announced(limit)

    def hand_in(self) -> None:
        """After the call is recorded; without a settlement it was not sent, or nobody knows what became of it.

        What was set aside for it is free only now: a call that is sent before would be recorded beside the whole of it.
        """
        if self.settled:
            self.limiter.paid(self)
        else:
            self.settled = True
            self.limiter.abandoned(self)


class RateLimiter:
    """Calls to one model. Belongs to one event loop; `pump` grants whatever can be granted now."""

    def __init__(
        self, model: str, rules: ModelLimits, budget: Budget, again: Callable[[RateLimiter], None]
    ) -> None:
        """`again` is called when a wait is over and `pump` may grant more."""
        self.model = model
        self._again = again
        self.rules = rules
        self.window = (
            ConcurrencyLimit(rules.concurrency)
            if rules.slow_start
            else ConcurrencyLimit(rules.concurrency, rules.concurrency)
        )
        self.requests = AdaptiveRate(rules.requests_per_minute)
        self.history = LimitHistory()
        self._tokens = AdaptiveRate(rules.tokens_per_minute)
        self._images = AdaptiveRate(rules.images_per_minute)
        self._budget = budget
        self._waiting: dict[Step, deque[asyncio.Future[LimiterTicket]]] = {step: deque() for step in Step}
        self._turn = list(Step)
        self._usual = dict(TYPICAL_TOKENS)
        self._costs = {step: self._step_costs(step) for step in Step}
        self.outage = CircuitBreaker(rules.outage_s)
        self.deadline = Deadline(rules.deadline_s)
        self._sent_at = -math.inf
        self._answer_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._began = _now()

    def queue(self, step: Step) -> asyncio.Future[LimiterTicket]:
        """A place in the queue; the future brings the ticket."""
        place: asyncio.Future[LimiterTicket] = asyncio.get_running_loop().create_future()
        self._waiting[step].append(place)
        return place

    def resume(self, step: Step, usd: float | None) -> LimiterTicket:
        """The ticket of a call that is under way since an earlier process."""
        costs = self._costs[step]
        costs.in_jobs_usd = max(0.0, costs.in_jobs_usd - (usd or 0.0))
        costs.in_flight += 1
        level = self.window.start()
        return LimiterTicket(
            usd,
            started=True,
            limiter=self,
            step=step,
            tokens=0.0,
            sent_at=_now(),
            level=level,
            price=self.rules.price,
        )

    def priced(self, price: Price, tier_factor: float) -> None:
        """Another day's price holds from now on, for what is set aside too; calls under way keep theirs."""
        self.rules = replace(self.rules, price=price, tier_factor=tier_factor)
        self._costs = {step: self._step_costs(step) for step in Step}

    def fail(self, error: Exception) -> None:
        """Sends everybody who waits away."""
        for places in self._waiting.values():
            while places:
                place = places.popleft()
                if not place.done():
                    place.set_exception(type(error)(*error.args))

    def pump(self) -> bool:
        """Grants tickets until a rate, the window or the budget says no; True when it was the budget.

        Raises:
            LimitReached: no call fits into the budget, and none in flight could make room; or all calls are made.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while (step := self._whose_turn()) is not None:
            if not self._budget.calls_left:
                raise LimitReached(
                    f"limits.max_calls = {self._budget.max_calls}: all are made; raise limits.max_calls to go on"
                )
            usd = self.reservation(step)
            if usd is not None and not self._budget.fits(usd):
                if self._budget.outstanding == 0:
                    raise LimitReached(self._out_of_money(usd))
                return True
            self._grant(step, usd)
        return False

    def reservation(self, step: Step) -> float | None:
        """Dollars to set aside for a call; None without a price."""
        return None if self.rules.price is None else self._costs[step].most

    def _step_costs(self, step: Step) -> StepCosts:
        costs = self._budget.costs(self.model, step)
        price = self.rules.price
        if price is not None and price != Price():
            most = demand(step, self.rules.max_output_tokens, self.rules.image_tokens).most(price)
            costs.bound = self.rules.tier_factor * most
        return costs

    def _whose_turn(self) -> Step | None:
        """The step whose call may be sent now, the one served longest ago first; sets the timer when all must wait."""
        waiting = [step for step in self._turn if self._clean(step)]
        if not waiting or not self.window.room:
            return None
        now = _now()
        common = max(self.requests.wait(now), self._tokens.wait(now), self.outage.wait(now))
        if math.isinf(common):  # one call is on its way to find out whether anybody answers again
            return None
        waits = {step: max(common, self._images.wait(now) if step is Step.EDIT else 0.0) for step in waiting}
        for step in waiting:
            if waits[step] <= 0.0:
                return step
        self._timer = asyncio.get_running_loop().call_later(min(waits.values()), self._again, self)
        return None

    def _clean(self, step: Step) -> bool:
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
        if step is Step.EDIT:
            self._images.take(now)
        self._costs[step].in_flight += 1
        self._budget.calls += 1
        self.outage.sent()
        level = self.window.start()
        self.history.granted += 1
        gap = now - self._sent_at
        self._sent_at = now
        place.set_result(
            LimiterTicket(
                usd,
                deadline=self.deadline,
                limiter=self,
                step=step,
                tokens=tokens,
                sent_at=now,
                level=level,
                price=self.rules.price,
                gap_s=gap,
            )
        )

    def settled(self, ticket: LimiterTicket, outcome: Outcome, usage: Usage) -> float | None:
        """Learns from how a call went; returns its cost, which counts once the ticket is handed in."""
        if not self.rules.in_jobs:
            self._learn(ticket, outcome)
        self.window.end()
        used = usage.total_tokens
        if used or outcome.kind is OutcomeKind.RATE_LIMITED:
            self._tokens.refund(ticket.tokens - used)
        if used:
            self._usual[ticket.step] += int(SMOOTHING * (used - self._usual[ticket.step]))
        return cost_of(ticket.price, outcome, usage)

    def paid(self, ticket: LimiterTicket) -> None:
        """A settled ticket comes back. The next pump is the controller's."""
        self._budget.settle(self._costs[ticket.step], ticket.cost_usd if ticket.price is not None else 0.0)

    def announced(self, limit: AnnouncedLimit) -> None:
        """The provider has stated a limit: what is known need not be guessed."""
        now = _now()
        rate = self._tokens if limit.what == "tokens" else self.requests
        if math.isfinite(limit.per_minute) and rate.announced(limit.per_minute, now):
            self.history.note(now - self._began, f"{limit.what}_per_minute", rate.per_minute, "announced")
        if limit.left is not None and limit.left < 1.0 and limit.reset_s is not None:
            rate.block(now + min(limit.reset_s, LONGEST_BLOCK_S))

    def abandoned(self, ticket: LimiterTicket) -> None:
        """A ticket came back without word of a call."""
        self.window.end()
        self.outage.lost(ticket.sent_at)
        if not ticket.started:
            self._budget.calls -= 1
        unknown = ticket.started and ticket.price is not None
        self._budget.settle(self._costs[ticket.step], None if unknown else 0.0)

    def _learn(self, ticket: LimiterTicket, outcome: Outcome) -> None:
        now = _now()
        at = now - self._began
        if outcome.kind is OutcomeKind.RATE_LIMITED and not outcome.fatal:
            self.history.limited += 1
            by_rate = (
                outcome.retry_after is not None
                or not self.window.too_many(ticket.level)
                or (ticket.level <= FEW and ticket.gap_s < HASTE * self._answer_s)
            )
            if by_rate and self.requests.limited(now, ticket.sent_at, outcome.retry_after):
                self.history.note(at, "requests_per_minute", self.requests.per_minute, "refused")
            if self.window.limited(now, ticket.sent_at, ticket.level, by_rate=by_rate):
                self.history.note(at, "window", self.window.size, "refused")
        elif outcome.timed_out:
            if self.window.timed_out(now, ticket.sent_at):
                self.history.note(at, "window", self.window.size, "no answer in time")
        elif outcome.kind not in (OutcomeKind.TRANSPORT, OutcomeKind.CANCELLED):
            took = now - ticket.sent_at
            self.history.accepted += 1
            self._answer_s += (took - self._answer_s) * (SMOOTHING if self._answer_s else 1.0)
            if self.requests.accepted(now, sent_at=ticket.sent_at):
                self.history.note(at, "requests_per_minute", self.requests.per_minute, "raised")
            roomy = self.deadline.answered(took)
            if self.window.accepted(now, ticket.sent_at, ticket.level, roomy=roomy):
                self.history.note(at, "window", self.window.size, "grown")
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
            f"{self.model} may cost ${usd:.4f}; raise limits.budget_usd to go on"
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
