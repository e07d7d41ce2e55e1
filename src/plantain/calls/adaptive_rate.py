"""The rate: how many requests (or tokens, or images) a minute may be sent, stated by the recipe or learned from 429s.

Pure arithmetic with an explicit clock: no sleeping here, so that simulations and tests can run years in a second.
"""

from __future__ import annotations

import math
from collections import deque

from plantain.calls.fixed_window import FixedWindowEstimator

QUIET_S = 5.0
"""Seconds without a 429, while pace is what holds us back, before the learned pace is raised."""

FIRST_STEP = 0.005
STEP_GROWTH = 2.0
LARGEST_STEP = 0.32
"""Each further quiet period raises the pace by twice the step of the one before: half a per cent near the limit, a
third when the limit has really moved."""

MOST_PERIODS = 6
"""Quiet periods that count at once where answers come more rarely than that."""

HOLD_S = 20.0
"""Seconds after a decrease before the next probe."""

RECENT_S = 5.0
MARGIN = 0.985
"""After a 429 the pace falls to this share of what was accepted over the last `RECENT_S` seconds, but to no less than
half of today's pace and half of the last minute's throughput: a provider that counts whole minutes accepts nothing for
a while, and that says little about its limit."""

WINDOWED_S = 3.0
WINDOWED_FOR_S = 600.0
"""A provider that says that it will refuse everything for longer than this counts what it took in a window of a
minute: what it accepted in the last sixty seconds is then its limit, and it is taken to count so for a while.
One that refuses everything for as long and says nothing is left to `FixedWindowEstimator`."""

NO_MINUTE_S = 600.0
"""How long a provider that turned out to count otherwise is not taken to count minutes again."""

CHANCE = 0.003
"""Refusals below this share of a minute's requests teach nothing: busy providers refuse some whatever our pace, and to
yield to each of them would be to slow down for ever."""

SCOUTING_S = 30.0
SCOUTING_QUIET_S = 1.5
SCOUTING_STEPS = (0.5, 0.04)
"""In the first seconds too little was accepted to know a level: answers take time, and the first refusals come before
most of them. The pace then climbs by half every 1.5 seconds, and after each refusal half as steeply as before."""


class AdaptiveRate:
    """One rate limit, in units per minute.

    Args:
        ceiling: units per minute that the recipe states and that are never exceeded; None to learn from 429s alone.
        burst_s: how many seconds' worth of units may be sent at once after a pause.
    """

    def __init__(self, ceiling: float | None, *, burst_s: float = 0.25) -> None:
        self._stated = self.ceiling = math.inf if ceiling is None else ceiling / 60.0
        self.rate = self.ceiling
        self._burst_s = burst_s
        self._next_at = -math.inf
        self._blocked_until = -math.inf
        self._accepted: deque[tuple[float, float]] = deque()
        self._refused: deque[float] = deque()
        self._decreased_at = -math.inf
        self._raised_at = -math.inf
        self._held_back_at = -math.inf
        self._windowed_until = -math.inf
        self._minute: FixedWindowEstimator | None = None
        self._silence = _Silence()
        self._no_minute_until = -math.inf
        self._scouting_step = SCOUTING_STEPS[0]
        self._step = FIRST_STEP
        self._began = math.inf

    @property
    def per_minute(self) -> float:
        """Today's pace; infinite while nothing is known."""
        return self.rate * 60.0

    def wait(self, now: float) -> float:
        """Seconds until one more unit may be sent; 0 when now. Takes nothing."""
        until = max(self._next_at - self._burst_s, self._blocked_until)
        if self._minute is not None:
            until = max(until, self._minute.until(now))
        if until <= now:
            return 0.0
        self._held_back_at = until
        return until - now

    def take(self, now: float, units: float = 1.0) -> None:
        """Counts units as sent."""
        self._began = min(self._began, now)
        self._silence.sent()
        rate = self.rate
        if self._minute is not None:
            self._minute.take(now, units)
            rate = self.ceiling
        if math.isfinite(rate):
            self._next_at = max(self._next_at, now) + units / rate

    def announced(self, per_minute: float, now: float) -> bool:
        """The provider states its limit; True when that was news. It never lifts what the recipe states."""
        ceiling = min(self._stated, per_minute / 60.0)
        if math.isclose(ceiling, self.ceiling, rel_tol=0.01):
            return False
        self.ceiling = self.rate = ceiling
        self._minute = None  # what is stated needs no finding out
        self._next_at = max(self._next_at, now)
        return True

    def block(self, until: float) -> None:
        """Nothing is left before then."""
        self._blocked_until = max(self._blocked_until, until)

    def refund(self, units: float) -> None:
        """Gives back units that were set aside and not used (or, negative, takes what was used beyond them)."""
        if math.isfinite(self.rate):
            self._next_at -= units / self.rate

    def accepted(self, now: float, units: float = 1.0, sent_at: float | None = None) -> bool:
        """The provider took a request, sent now if not said otherwise; True when the pace was raised by it."""
        self._accepted.append((now, units))
        while self._accepted[0][0] < now - 60.0:
            self._accepted.popleft()
        self._silence.broken(now if sent_at is None else sent_at)
        if self._minute is None:
            return self._probe(now)
        self._minute.accepted(now, now if sent_at is None else sent_at)
        before = self.rate
        self._follow(self._minute, now)
        return self.rate > before

    def limited(self, now: float, sent_at: float, retry_after: float | None) -> bool:
        """The provider refused a request by its rate limit; True when this opened a new burst and lowered the pace.

        A request sent before the last decrease belongs to the burst that caused it and lowers nothing again.
        """
        if retry_after is not None:
            self._blocked_until = max(self._blocked_until, now + retry_after)
        self._silence.refused(sent_at)
        if retry_after is not None:
            self._minute = None  # who says when to come again needs no finding out
        elif self._minute is not None:
            news = self._minute.limited(now, sent_at)
            self._follow(self._minute, now)
            return news
        elif self._accepted and self._silence.lasts(now) and now >= self._no_minute_until:
            self._minute = FixedWindowEstimator(self._taken_in_a_minute(), now)
            self._follow(self._minute, now)
            return True
        if sent_at <= self._decreased_at or self._chance(now):
            return False
        recent, minute = self._throughput(now, RECENT_S), self._throughput(now, 60.0)
        if (retry_after or 0.0) > WINDOWED_S or self._silent_since(now) > WINDOWED_S:
            self._windowed_until = now + WINDOWED_FOR_S
        if self._accepted and now < self._windowed_until:
            return self._counted_by_the_minute(now)
        current = self.rate if math.isfinite(self.rate) else max(recent, 2.0)
        lowest = max(0.5 * current, 0.5 * minute, 1.0 / 60.0)
        self.rate = min(self.ceiling, current, max(MARGIN * recent, lowest))
        self._next_at = max(self._next_at, now)
        self._decreased_at = now
        self._step = FIRST_STEP
        if self._scouting(now):
            self._scouting_step = max(SCOUTING_STEPS[1], self._scouting_step / 2.0)
        return True

    def _chance(self, now: float) -> bool:
        """Counts a refusal; True while there are so few that they say nothing about our pace."""
        self._refused.append(now)
        while self._refused[0] < now - 60.0:
            self._refused.popleft()
        return len(self._refused) <= CHANCE * sum(units for _, units in self._accepted)

    def _silent_since(self, now: float) -> float:
        """Seconds without an accepted request, though some were sent; 0 before the first."""
        return now - self._accepted[-1][0] if self._accepted else 0.0

    def _counted_by_the_minute(self, now: float) -> bool:
        """Spreads what a whole minute took evenly over the next; True, for the pace has changed."""
        current = self.rate if math.isfinite(self.rate) else math.inf
        self.rate = min(self.ceiling, current, max(MARGIN * self._taken_in_a_minute() / 60.0, 1.0 / 60.0))
        self._next_at = max(self._next_at, now)
        self._decreased_at = now
        self._step = FIRST_STEP
        return True

    def _taken_in_a_minute(self) -> float:
        """Units that the provider took in the minute before it fell silent."""
        return sum(units for at, units in self._accepted if at >= self._accepted[-1][0] - 60.0)

    def _follow(self, minute: FixedWindowEstimator, now: float) -> None:
        """Takes over what is known of a minute, or gives that up where the provider turned out to count otherwise."""
        self.rate = min(self.ceiling, minute.limit / 60.0)
        if minute.mistaken:
            self._minute = None
            self._silence = _Silence()
            self._no_minute_until = now + NO_MINUTE_S
            self._next_at = self._decreased_at = now

    def _throughput(self, now: float, window: float) -> float:
        """Accepted units per second over the last `window` seconds, or since the first one."""
        if not self._accepted:
            return 0.0
        span = min(window, max(now - self._accepted[0][0], 0.5))
        return sum(units for at, units in self._accepted if at >= now - span) / span

    def _scouting(self, now: float) -> bool:
        return not self._accepted or now < self._began + SCOUTING_S

    def _quiet_periods(self, now: float, hold: float, quiet: float) -> int:
        """Quiet periods since the last change: several where answers come rarely."""
        since = max(self._raised_at, self._decreased_at + hold - quiet)
        return 1 if math.isinf(since) else max(1, min(MOST_PERIODS, int((now - since) / quiet)))

    def _probe(self, now: float) -> bool:
        if self.rate >= self.ceiling:
            return False
        scouting = self._scouting(now)
        quiet = SCOUTING_QUIET_S if scouting else QUIET_S
        hold = SCOUTING_QUIET_S if scouting else HOLD_S
        if now < self._decreased_at + hold or now < self._raised_at + quiet:
            return False
        if self._held_back_at < now - QUIET_S:  # not saturated: a higher pace would prove nothing
            return False
        for _ in range(self._quiet_periods(now, hold, quiet)):
            self.rate = min(
                self.ceiling, self.rate * (1.0 + (self._scouting_step if scouting else self._step))
            )
            if not scouting:
                self._step = min(LARGEST_STEP, self._step * STEP_GROWTH)
        self._raised_at = now
        return True


class _Silence:
    """Whether a provider refuses everything, not only some: of what was sent since its first refusal nothing was taken.

    Answers can take longer than refusals, so what was sent and not refused counts as taken, but for a tenth on its way.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._sent = self._refused = 0

    def sent(self) -> None:
        self._sent += 1

    def refused(self, sent_at: float) -> None:
        if self._since is None:
            self._since, self._sent = sent_at, 0
            return
        if sent_at > self._since:
            self._refused += 1

    def broken(self, sent_at: float) -> None:
        """A request of this time was taken."""
        if self._since is not None and sent_at > self._since:
            self._since, self._sent, self._refused = None, 0, 0

    def lasts(self, now: float) -> bool:
        if self._since is None or now < self._since + WINDOWED_S:
            return False
        return self._refused >= 3 and self._sent - self._refused <= max(2, self._refused // 10)
