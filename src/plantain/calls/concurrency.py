"""How many calls may be in flight: adaptive concurrency (AIMD). Pure arithmetic with an explicit clock."""

from __future__ import annotations

FIRST = 4
SATURATED = 0.8
"""The window grows only while this share of it is in use: what is not needed proves nothing."""

DECREASE = 0.7
"""After a refusal the window falls to just below the call that was refused, but to no less than this share at once."""

HOLD_S = 20.0
"""Seconds after a decrease before it grows again."""

QUIET_S = 5.0
"""Then it grows once in this many seconds, by 1, 2, 4...: slowly near the limit, fast when that has moved away."""


class ConcurrencyLimit:
    """Calls in flight: slow start up to the first 429, then cautious growth and multiplicative decrease.

    Args:
        ceiling: never more than this at once.
        first: how many to begin with.
    """

    def __init__(self, ceiling: int, first: int = FIRST) -> None:
        self.ceiling = ceiling
        self.size = min(first, ceiling)
        self.in_flight = 0
        self._highest_taken = 0
        self._slow_start = True
        self._step = 1
        self._decreased_at = -float("inf")
        self._grown_at = -float("inf")
        self._refused_at = -float("inf")

    @property
    def room(self) -> bool:
        return self.in_flight < self.size

    def start(self) -> int:
        """A call is sent; returns how many are in flight with it."""
        self.in_flight += 1
        return self.in_flight

    def end(self) -> None:
        """A call has come back, whatever came of it."""
        self.in_flight -= 1

    def accepted(self, now: float, sent_at: float, level: int, *, roomy: bool = True) -> bool:
        """The provider took a call sent as number `level`, still counted as in flight; True when the window grew.

        It does not where answers take nearly as long as they may: more calls would only wait longer.
        """
        if sent_at > self._refused_at:  # else calls that the provider refused were counted in its level
            self._highest_taken = max(self._highest_taken, level)
        if not roomy or self.size >= self.ceiling or self.in_flight < SATURATED * self.size:
            return False
        if self._slow_start:
            self.size += 1
            return True
        if now < self._decreased_at + HOLD_S or now < self._grown_at + QUIET_S:
            return False
        self.size = min(self.ceiling, self.size + self._step)
        self._step *= 2
        self._grown_at = now
        return True

    def too_many(self, level: int) -> bool:
        """Whether a refusal of call number `level` can mean that too many were in flight: none was taken so high."""
        return level > self._highest_taken

    def timed_out(self, now: float, sent_at: float) -> bool:
        """A call was late: more are in flight than can be answered in time. True when the window shrank."""
        self._slow_start = False
        if sent_at <= self._decreased_at or self.size == 1:
            return False
        self.size = max(1, self.size // 2)
        self._step = 1
        self._decreased_at = now
        return True

    def restart(self) -> None:
        """After an outage: whoever was down is not to be run over by everybody at once."""
        self.size = min(self.size, FIRST)
        self._slow_start = True

    def limited(self, now: float, sent_at: float, level: int, *, by_rate: bool) -> bool:
        """The provider refused a call by a limit; True when the window shrank. A burst shrinks it once.

        Args:
            by_rate: the request rate explains the refusal; the window then only ends its slow start.
        """
        self._slow_start = False
        self._refused_at = now
        if by_rate or sent_at <= self._decreased_at:
            return False
        self.size = max(1, int(DECREASE * self.size), min(self.size, level) - 1)
        self._highest_taken = min(self._highest_taken, self.size)
        self._step = 1
        self._decreased_at = now
        return True
