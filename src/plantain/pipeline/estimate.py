"""A quantity under three assumptions, as a plan states it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Low, expected and high."""

    low: float
    expected: float
    high: float

    def __add__(self, other: CallEstimate) -> CallEstimate:
        return CallEstimate(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def times(self, low: float, expected: float | None = None, high: float | None = None) -> CallEstimate:
        """Each multiplied by a factor; by the first where only one is given."""
        return CallEstimate(
            self.low * low,
            self.expected * (low if expected is None else expected),
            self.high * (low if high is None else high),
        )

    def at_least(self, other: CallEstimate) -> CallEstimate:
        return CallEstimate(
            max(self.low, other.low), max(self.expected, other.expected), max(self.high, other.high)
        )

    def at_most(self, limit: float) -> CallEstimate:
        return CallEstimate(min(self.low, limit), min(self.expected, limit), min(self.high, limit))


NOTHING = CallEstimate(0.0, 0.0, 0.0)
