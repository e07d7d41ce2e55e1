"""Circuit breaker: while a model answers nobody, calls wait and a probe now and then finds out when it is back."""

from __future__ import annotations

import math
import random

from plantain.records import Outcome, OutcomeKind

FAILURES = 5
"""Calls in a row that fail, with no answer between them, open the breaker."""

SILENT_S = 120.0
"""Refusals by a limit are not an outage before they have lasted longer than a provider's minute."""

FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0
"""Seconds until the first probe, and between probes at the most; every probe that fails doubles them."""

PASSING = frozenset({OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED})
"""Failures that pass by themselves and say nothing about the request."""


class CircuitBreaker:
    """The breaker of one model, with an explicit clock.

    Args:
        longest_s: seconds that an outage is sat out; None for a breaker that never opens.

    Attributes:
        since: when the first of the present failures came; None while there are answers.
        open: calls wait.
        reason: what was said last.
    """

    def __init__(self, longest_s: float | None) -> None:
        self.since: float | None = None
        self.open = False
        self.reason = ""
        self._longest_s = longest_s
        self._failures = 0
        self._opened_at = math.inf
        self._probing = False
        self._pause = 0.0
        self._next_at = -math.inf
        self._unsaid = False
        self._jitter = random.Random()

    def wait(self, now: float) -> float:
        """Seconds until a call may be sent; infinite while a probe is on its way."""
        if not self.open:
            return 0.0
        return math.inf if self._probing else max(0.0, self._next_at - now)

    def sent(self) -> None:
        """A call is sent; while the breaker is open it is the probe."""
        self._probing = self.open

    def heard(self, outcome: Outcome, sent_at: float, now: float) -> bool:
        """How a call ended that was sent then; True when it ends an outage."""
        probe = self._probing and sent_at >= self._opened_at
        if probe:
            self._probing = False
        if self._longest_s is None or outcome.fatal or outcome.lost or outcome.kind is OutcomeKind.CANCELLED:
            return False
        if outcome.kind in PASSING:
            self._failed(outcome, probe, now)
            return False
        if self.since is not None and sent_at < self.since:
            return False  # it was sent before the trouble began, and says nothing of now
        was_open, self.open = self.open, False
        self.since, self._failures, self._unsaid = None, 0, False
        return was_open

    def lost(self, sent_at: float) -> None:
        """Nobody will say how a call ended."""
        if sent_at >= self._opened_at:
            self._probing = False

    def over(self, now: float) -> bool:
        """Whether it has lasted longer than it is to be sat out."""
        return self.open and self._longest_s is not None and now >= self._since(now) + self._longest_s

    def news(self, now: float) -> str:
        """What a person is told of each pause, once: since when, why, and when the next probe is sent; else ""."""
        if not self._unsaid:
            return ""
        self._unsaid = False
        since = minutes(now - self._since(now))
        return f"no answer for {since} ({self.reason}); next try in {self.wait(now):.0f} s"

    def _since(self, now: float) -> float:
        return now if self.since is None else self.since

    def _failed(self, outcome: Outcome, probe: bool, now: float) -> None:
        self.since = self._since(now)
        self.reason = outcome.reason
        self._failures += 1
        silent = outcome.kind is not OutcomeKind.RATE_LIMITED or now >= self.since + SILENT_S
        if self.open and not probe:
            return
        if not self.open and (self._failures < FAILURES or not silent):
            return
        self._pause = min(LONGEST_PAUSE_S, 2.0 * self._pause) if self.open else FIRST_PAUSE_S
        if not self.open:
            self.open, self._opened_at = True, now
        self._unsaid = True
        pause = self._pause * self._jitter.uniform(0.75, 1.0)
        self._next_at = now + max(pause, outcome.retry_after or 0.0)


def minutes(seconds: float) -> str:
    """A span for a person, e.g. "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
