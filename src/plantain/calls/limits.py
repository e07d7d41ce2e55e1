"""The limits of calls: the budget of a run, and the pace, concurrency and deadline of one model.

The most that a call can cost is reserved while it is in flight, and settled by its outcome. Time is an argument
everywhere but in `Deadline.guard`: simulations and tests run hours in a second.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from plantain.journal.reader import REMEMBERED, assumed_usd
from plantain.records import Outcome, Price, Step, Usage

TOLERANCE_USD = 1e-9
"""Sums of many small floats are compared with the cap to within this."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that one call may consume, its adapter's second request after a malformed answer included."""

    input_tokens: int
    output_tokens: int
    image_tokens: int = 0
    images: int = 0

    def most(self, price: Price) -> float:
        """Return the most US dollars that a call can cost at this price: every limit reached."""
        text_in = price.input_per_m
        image_in = price.image_input_per_m or 0.0
        dearest = max(text_in, image_in, price.cached_per_m or 0.0, price.cache_write_per_m or 0.0)
        read = self.input_tokens * dearest / 1e6
        written = self.output_tokens * price.output_per_m / 1e6
        if price.image_out_each is not None:
            return read + written + self.images * price.image_out_each
        image_rate = price.output_per_m if price.image_output_per_m is None else price.image_output_per_m
        return read + written + self.image_tokens * image_rate / 1e6


INPUT_TOKENS = {Step.WRITE: 24_000, Step.EDIT: 8_000, Step.JUDGE: 16_000}
"""Three 1024x1024 images (at most 2,600 tokens each with the providers known to us), the prompt, and for a writer the
history of twenty rounds."""

IMAGE_TOKENS = 4_096
"""Tokens of one written image, above the largest size of most models (2,520 for 4K), for those that list no sizes."""


def demand(step: Step, max_output_tokens: int, image_tokens: int = IMAGE_TOKENS) -> Demand:
    """Return the most that a call of this step consumes when an answer is cut at `max_output_tokens`.

    `image_tokens` are the most that one image of the model is known to come to at the requested size and quality.
    Writers and judges are asked a second time after a malformed answer, with twice the token limit if it was cut.
    """
    if step is Step.EDIT:
        return Demand(INPUT_TOKENS[step], max_output_tokens, max(image_tokens, IMAGE_TOKENS), images=1)
    return Demand(2 * INPUT_TOKENS[step], 3 * max_output_tokens)


MARGIN = 1.25
"""Factor of the reservation after a call was billed above our upper bound, as a multiple of that bill."""


class StepCosts:
    """Costs of one step's calls to one model: the known ones, and an estimate of the others.

    Attributes:
        bound: dollars that a call can come to by our own estimate; set by the gate, which knows its price.
        dearest: the highest bill so far.
        in_flight: calls whose answers are still to come.
        lost: calls that may have been billed and whose cost never became known; `lost_most` is the most that they can
            have cost.
        in_jobs_usd: set aside for calls of earlier processes that batch jobs still answer.
    """

    def __init__(
        self, costs: Iterable[float] = (), *, lost: int = 0, lost_most: float = 0.0, in_jobs_usd: float = 0.0
    ) -> None:
        self.bound = self.dearest = 0.0
        self.in_flight = 0
        self.lost = lost
        self.lost_most = lost_most
        self.in_jobs_usd = in_jobs_usd
        self._latest: deque[float] = deque(maxlen=REMEMBERED)
        for cost in costs:
            self.learn(cost)

    def learn(self, cost_usd: float) -> None:
        """Record a call's cost for later estimates; free calls are ignored."""
        if cost_usd > 0.0:
            self.dearest = max(self.dearest, cost_usd)
            self._latest.append(cost_usd)

    @property
    def most(self) -> float:
        """Return the US dollars to reserve for a call: our bound, or more once a call has cost more."""
        return self.bound if self.dearest <= self.bound + TOLERANCE_USD else MARGIN * self.dearest

    @property
    def reserved_usd(self) -> float:
        return self.in_flight * self.most + self.in_jobs_usd

    @property
    def held_usd(self) -> float:
        """Return the assumed cost of the lost calls."""
        return assumed_usd(self._latest, self.lost, self.lost_most)


class Budget:
    """Budget of a run: its cap, its spending and its reservations. Belongs to one event loop.

    Whenever a call is sent, spent + held + reserved <= budget. `reserved` is the most that calls in flight can cost.
    `held` is the assumed cost of calls of unknown cost; it grows up to their reservation as dearer calls of their kind
    become known. A provider that bills more than our upper bound can exceed the budget later. From the
    first such bill on, the reservation of every call of its step is larger, also of those in flight, so that a run
    exceeds its budget at most by the calls in flight at that moment.

    Args:
        budget_usd: the cap; None for none.
        spent_usd: what settled calls cost, of this and earlier processes.
        costs: what earlier processes learned of each model and step.
        max_calls: calls that the run may make in all; None for no cap.
        calls: calls made by earlier processes.
    """

    def __init__(
        self,
        budget_usd: float | None,
        spent_usd: float = 0.0,
        costs: Mapping[tuple[str, Step], StepCosts] | None = None,
        *,
        max_calls: int | None = None,
        calls: int = 0,
    ) -> None:
        self.max_calls = max_calls
        self.calls = calls
        self.budget_usd = budget_usd
        self.spent_usd = spent_usd
        self._costs = dict(costs or {})

    def costs(self, model: str, step: Step) -> StepCosts:
        """Return the costs of a model's calls of one step."""
        return self._costs.setdefault((model, step), StepCosts())

    @property
    def outstanding(self) -> int:
        """Return the number of calls in flight, whose reservations may be released in part."""
        return sum(costs.in_flight for costs in self._costs.values())

    @property
    def reserved_usd(self) -> float:
        return sum(costs.reserved_usd for costs in self._costs.values())

    @property
    def held_usd(self) -> float:
        return sum(costs.held_usd for costs in self._costs.values())

    @property
    def lost(self) -> int:
        """Return the number of calls of unknown cost."""
        return sum(costs.lost for costs in self._costs.values())

    @property
    def committed_usd(self) -> float:
        return self.spent_usd + self.held_usd + self.reserved_usd

    @property
    def calls_left(self) -> bool:
        return self.max_calls is None or self.calls < self.max_calls

    def fits(self, usd: float) -> bool:
        """Return True if so many US dollars can be reserved now; always without a budget."""
        return self.budget_usd is None or self.committed_usd + usd <= self.budget_usd + TOLERANCE_USD

    def settle(self, costs: StepCosts, cost_usd: float | None) -> None:
        """Record the end of a call in flight; None is an unknown cost, counted as such calls' usual cost."""
        costs.in_flight -= 1
        if cost_usd is None:
            costs.lost += 1
            costs.lost_most += costs.most
            return
        self.spent_usd += cost_usd
        costs.learn(cost_usd)


def cost_of(price: Price | None, outcome: Outcome, usage: Usage) -> float | None:
    """Return the US dollars that a call cost; None if unknown (no price, or an answer never arrived)."""
    if price is None:
        return None
    if price == Price():
        return 0.0
    known = price.cost(usage)
    if known is None and outcome.costs_nothing and not usage.asks:
        return 0.0
    return None if known is None else max(0.0, known)  # no provider pays us, whatever a model reports


BURST_S = 0.25
"""Seconds' worth of units that may be sent at once after a pause."""

FIRST = 4
"""Calls in flight at the start."""

SATURATED = 0.8
"""The window grows only while this share of it is in use: unused room is not evidence."""

DECREASE = 0.7
"""After a refusal the window falls to this share, or, if it was never accepted so high, to just below."""

HOLD_S = 20.0
"""Seconds after a decrease before it grows again."""

QUIET_S = 5.0
"""Then it grows once in this many seconds, by 1, 2, 4...: slowly near the limit, fast when that has moved away."""

CHANCE = 300
"""A refusal after as many accepted calls in a row is ignored: busy providers refuse some at any load."""

LONGEST_S = 600.0
"""A deadline does not grow beyond this, unless it started higher."""

NEAR = 0.5
"""An answer that took this share of the deadline shows that the guess was too short: the next may take longer."""

CALM, CALM_ANSWERS = 0.2, 50
"""After as many answers within this share of the deadline it is halved again, down to the first guess."""


class Pace:
    """One rate limit, stated by the recipe or announced by the provider; without either, none.

    Args:
        per_minute: units per minute that the recipe states and that are never exceeded; None where it states none.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._stated = self._rate = math.inf if per_minute is None else per_minute / 60.0
        self._next_at = self._blocked_until = -math.inf

    @property
    def known(self) -> bool:
        return math.isfinite(self._rate)

    def wait(self, now: float) -> float:
        """Return the seconds until one more unit may be sent, 0 for now. Takes nothing."""
        return max(0.0, max(self._next_at - BURST_S, self._blocked_until) - now)

    def take(self, now: float, units: float = 1.0) -> None:
        """Count units as sent."""
        if self.known:
            self._next_at = max(self._next_at, now) + units / self._rate

    def refund(self, units: float) -> None:
        """Return reserved units that were not used; a negative number takes more."""
        if self.known:
            self._next_at -= units / self._rate

    def announced(self, per_minute: float, now: float) -> None:
        """Follow the limit that the provider announces, at most the recipe's."""
        rate = min(self._stated, per_minute / 60.0)
        if not math.isclose(rate, self._rate, rel_tol=0.01):
            self._rate = rate
            self._next_at = max(self._next_at, now)

    def block(self, until: float) -> None:
        """Send nothing before then."""
        self._blocked_until = max(self._blocked_until, until)


class Concurrency:
    """Calls in flight: slow start up to the first refusal, then additive increase and multiplicative decrease.

    Args:
        ceiling: never more than this at once.
        first: how many at the start.
    """

    def __init__(self, ceiling: int, first: int = FIRST) -> None:
        self.ceiling = ceiling
        self.size = min(first, ceiling)
        self.in_flight = 0
        self._highest_accepted = self._accepted_in_a_row = 0
        self.slow_start = True
        self._step = 1
        self._decreased_at = self._grown_at = -math.inf

    @property
    def room(self) -> bool:
        return self.in_flight < self.size

    def start(self) -> int:
        """Count a call that is sent; return how many are in flight with it."""
        self.in_flight += 1
        return self.in_flight

    def end(self) -> None:
        """Count a call that has come back, whatever its outcome."""
        self.in_flight -= 1

    def accepted(self, now: float, sent_at: float, level: int, *, roomy: bool = True) -> None:
        """Record that a call was accepted; `level` is the number in flight when it was sent.

        The window does not grow where answers take nearly as long as they may (not `roomy`): calls would wait longer.
        """
        self._accepted_in_a_row += 1
        if sent_at > self._decreased_at:
            self._highest_accepted = max(self._highest_accepted, level)
        if not roomy or self.size >= self.ceiling or self.in_flight < SATURATED * self.size:
            return
        if self.slow_start:
            self.size += 1
        elif now >= self._decreased_at + HOLD_S and now >= self._grown_at + QUIET_S:
            self.size = min(self.ceiling, self.size + self._step)
            self._step *= 2
            self._grown_at = now

    def too_many(self, level: int) -> bool:
        """Return True if no call of this number was ever accepted: a refusal can be for the calls in flight."""
        return level > self._highest_accepted

    def refused(self, now: float, sent_at: float, level: int, *, by_rate: bool) -> None:
        """Record that call number `level` was refused by a limit. Refusals in a burst shrink the window once.

        Where a rate explains the refusal (`by_rate`), only a level that was never accepted can be at fault.
        """
        chance, self._accepted_in_a_row = self._accepted_in_a_row >= CHANCE, 0
        too_many = self.too_many(level)
        self.slow_start = False
        if not (chance or (by_rate and not too_many)):
            below = min(self.size, level) - 1 if too_many else 0
            self._shrink(now, sent_at, max(below, int(DECREASE * self.size)))

    def timed_out(self, now: float, sent_at: float) -> None:
        """Halve the window after a late call: more are in flight than can be answered in time."""
        self.slow_start = False
        self._shrink(now, sent_at, self.size // 2)

    def restart(self) -> None:
        """Return to a small window and slow start after an outage."""
        self.size = min(self.size, FIRST)
        self.slow_start = True

    def _shrink(self, now: float, sent_at: float, size: int) -> None:
        if sent_at > self._decreased_at and self.size > 1:
            self.size = max(1, size)
            self._highest_accepted = min(self._highest_accepted, self.size)
            self._step = 1
            self._decreased_at = now


@dataclass(slots=True)
class Guard:
    """The seconds after which a call was ended; None while it was not."""

    expired_after_s: float | None = None


class Deadline:
    """The deadline of all calls to one model.

    A server that queues is slow for all calls at the same time. Ending all of them would discard work that is nearly
    done, and send it again to the end of the same queue. So the first late call doubles the time of the others.

    Args:
        first_s: seconds, the first guess; None for no deadline.
    """

    def __init__(self, first_s: float | None) -> None:
        self.seconds = first_s
        self._first = first_s
        self._longest = max(LONGEST_S, first_s or 0.0)
        self._latest: deque[float] = deque(maxlen=CALM_ANSWERS)

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[Guard]:
        """Raise TimeoutError if the block takes too long; the yielded guard then has the allowed seconds."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        async with asyncio.timeout(None) as timeout:
            timer: asyncio.TimerHandle | None = None
            guard = Guard()

            def look() -> None:
                nonlocal timer
                assert self.seconds is not None
                now = loop.time()
                if now >= since + self.seconds:
                    guard.expired_after_s = self.seconds
                    self._set(2.0)
                    timeout.reschedule(now)
                else:
                    timer = loop.call_at(since + self.seconds, look)

            if self.seconds is not None:
                timer = loop.call_at(since + self.seconds, look)
            try:
                yield guard
            finally:
                if timer is not None:
                    timer.cancel()

    def answered(self, took_s: float) -> bool:
        """Double the deadline after a slow answer, halve it after fast ones; return False near the longest."""
        if self.seconds is None or self._first is None:
            return True
        self._latest.append(took_s)
        if took_s > NEAR * self.seconds:
            self._set(2.0)
        elif (
            len(self._latest) == CALM_ANSWERS and max(self._latest) < CALM * self.seconds > CALM * self._first
        ):
            self._set(0.5)
        return took_s <= NEAR * self._longest

    def _set(self, factor: float) -> None:
        if self.seconds is not None and self._first is not None:
            self.seconds = min(self._longest, max(self._first, factor * self.seconds))
            self._latest.clear()
