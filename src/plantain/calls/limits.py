"""The limits of calls: the budget of a run, and the pace and concurrency of one model.

The most that a call can cost is reserved while it is in flight, and settled by its outcome. Time is an argument
everywhere: simulations and tests run hours in a second.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping

from plantain.journal.reader import REMEMBERED, assumed_usd
from plantain.records import Outcome, Price, Step, Usage

TOLERANCE_USD = 1e-9
"""Sums of many small floats are compared with the cap to within this."""


INPUT_TOKENS = {Step.WRITE: 24_000, Step.EDIT: 8_000, Step.JUDGE: 16_000}
"""Three 1024x1024 images (at most 2,600 tokens each with the providers known to us), the prompt, and for a writer the
history of twenty rounds."""

IMAGE_TOKENS = 4_096
"""Tokens of one written image, above the largest size of most models (2,520 for 4K), for those that list no sizes."""


def most_of(price: Price, step: Step, max_output_tokens: int, image_tokens: int = IMAGE_TOKENS) -> float:
    """Return the maximum cost in US dollars of a call of this step, if answers are limited to `max_output_tokens`.

    `image_tokens` is the maximum for one image of the model at the requested size and quality. Writers and judges are
    asked again after a malformed answer, with twice the token limit if it was cut.
    """
    rates = price.image_input_per_m, price.cached_per_m, price.cache_write_per_m
    dearest = max(price.input_per_m, *(rate or 0.0 for rate in rates))
    if step is not Step.EDIT:
        return (2 * INPUT_TOKENS[step] * dearest + 3 * max_output_tokens * price.output_per_m) / 1e6
    words = (INPUT_TOKENS[step] * dearest + max_output_tokens * price.output_per_m) / 1e6
    if price.image_out_each is not None:
        return words + price.image_out_each
    image_rate = price.output_per_m if price.image_output_per_m is None else price.image_output_per_m
    return words + max(image_tokens, IMAGE_TOKENS) * image_rate / 1e6


MARGIN = 1.25
"""Factor of the reservation after a call was billed above our upper bound, as a multiple of that bill."""


class StepCosts:
    """Costs of one step's calls to one model: known costs, and an estimate of unknown ones.

    Attributes:
        bound: estimated maximum cost of a call in US dollars; set by the gate, which knows the price.
        dearest: the highest cost so far, in US dollars.
        in_flight: number of calls without an answer yet.
        lost: number of calls that may have been billed at an unknown cost; `lost_most`: their maximum total cost in
            US dollars.
        in_jobs_usd: US dollars reserved for calls of earlier processes that batch jobs will answer.
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
        """The US dollars to reserve for a call: the estimate `bound`, or more once a call has cost more."""
        return self.bound if self.dearest <= self.bound + TOLERANCE_USD else MARGIN * self.dearest

    @property
    def reserved_usd(self) -> float:
        return self.in_flight * self.most + self.in_jobs_usd

    @property
    def held_usd(self) -> float:
        """The estimated cost, in US dollars, of the calls of unknown cost."""
        return assumed_usd(self._latest, self.lost, self.lost_most)


class Budget:
    """The budget of a run: its limit, the money spent and the money reserved. For one event loop.

    Whenever a call is sent, spent + held + reserved <= budget. `reserved` is the maximum cost of calls in flight.
    `held` is the estimated cost of calls of unknown cost; it grows up to their reservation as dearer calls of their
    kind become known. A provider that bills more than the estimated maximum can exceed the budget.
    From the first such bill on, every call of its step has a larger reservation, also those in flight, so that a run
    exceeds its budget at most by the calls in flight at that moment.

    Args:
        budget_usd: the limit in US dollars; None for no limit.
        spent_usd: cost of settled calls, including those of earlier processes.
        costs: costs of calls of earlier processes, by model and step.
        max_calls: maximum number of calls of the run; None for no limit.
        calls: number of calls made by earlier processes.
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
        """The number of calls in flight, part of whose reserved money may be released."""
        return sum(costs.in_flight for costs in self._costs.values())

    @property
    def reserved_usd(self) -> float:
        return sum(costs.reserved_usd for costs in self._costs.values())

    @property
    def held_usd(self) -> float:
        return sum(costs.held_usd for costs in self._costs.values())

    @property
    def lost(self) -> int:
        """The number of calls of unknown cost."""
        return sum(costs.lost for costs in self._costs.values())

    @property
    def committed_usd(self) -> float:
        return self.spent_usd + self.held_usd + self.reserved_usd

    @property
    def calls_left(self) -> bool:
        return self.max_calls is None or self.calls < self.max_calls

    def fits(self, usd: float) -> bool:
        """Return True if this amount in US dollars can be reserved now; always without a budget."""
        return self.budget_usd is None or self.committed_usd + usd <= self.budget_usd + TOLERANCE_USD

    def settle(self, costs: StepCosts, cost_usd: float | None) -> None:
        """Record the end of a call in flight; an unknown cost, None, is estimated from similar calls."""
        costs.in_flight -= 1
        if cost_usd is None:
            costs.lost += 1
            costs.lost_most += costs.most
            return
        self.spent_usd += cost_usd
        costs.learn(cost_usd)


def cost_of(price: Price | None, outcome: Outcome, usage: Usage) -> float | None:
    """Return the cost of a call in US dollars; None without a price, or if unreported usage may have been billed."""
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


class Pace:
    """One rate limit, stated by the recipe or announced by the provider; unlimited without either.

    Args:
        per_minute: maximum units per minute by the recipe; None if it states none.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._stated = self._rate = math.inf if per_minute is None else per_minute / 60.0
        self._next_at = self._blocked_until = -math.inf

    @property
    def known(self) -> bool:
        return math.isfinite(self._rate)

    def wait(self, now: float) -> float:
        """Return the seconds until one more unit may be sent, 0 for now, without counting it as sent."""
        return max(0.0, max(self._next_at - BURST_S, self._blocked_until) - now)

    def take(self, now: float, units: float = 1.0) -> None:
        """Count units as sent."""
        if self.known:
            self._next_at = max(self._next_at, now) + units / self._rate

    def refund(self, units: float) -> None:
        """Give back reserved units that were not used; a negative number counts more as sent."""
        if self.known:
            self._next_at -= units / self._rate

    def announced(self, per_minute: float, now: float) -> None:
        """Adopt a limit that the provider announces, but at most the recipe's."""
        rate = min(self._stated, per_minute / 60.0)
        if not math.isclose(rate, self._rate, rel_tol=0.01):
            self._rate = rate
            self._next_at = max(self._next_at, now)

    def block(self, until: float) -> None:
        """Allow no unit before the time `until`, in seconds of the same clock as `now`."""
        self._blocked_until = max(self._blocked_until, until)


class Concurrency:
    """Calls in flight: slow start up to the first refusal, then additive increase and multiplicative decrease.

    The arguments `now` and `sent_at` of its methods are seconds of one clock.

    Args:
        ceiling: maximum number of calls in flight.
        first: number of calls in flight at the start.
    """

    def __init__(self, ceiling: int, first: int = FIRST) -> None:
        self.ceiling = ceiling
        self.size = min(first, ceiling)
        self.in_flight = 0
        self._highest_accepted = 0
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
        """Count a call that has ended, whatever its outcome."""
        self.in_flight -= 1

    def accepted(self, now: float, sent_at: float, level: int, *, roomy: bool = True) -> None:
        """Record that a call was accepted; `level` is the number in flight when it was sent.

        The window does not grow if answers take nearly as long as allowed (not `roomy`): calls would wait longer.
        """
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
        """Return True if `level` calls in flight were never accepted, so that their number may explain a refusal."""
        return level > self._highest_accepted

    def refused(self, now: float, sent_at: float, level: int, *, by_rate: bool) -> None:
        """Record that a call was refused by a limit with `level` calls in flight; a burst shrinks the window once.

        If a rate explains the refusal (`by_rate`), the window only shrinks if this level was never accepted.
        """
        too_many = self.too_many(level)
        self.slow_start = False
        if too_many or not by_rate:
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
