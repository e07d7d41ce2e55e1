"""Providers that enforce a request limit, each in one of the ways that real ones do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from plantain.records import OK, Outcome, OutcomeKind
from plantain.roles import AnnouncedLimit


class LimitedProvider:
    """Takes or refuses requests by a limit that may change over time.

    Args:
        kind: "bucket" refills a token bucket continuously, one second deep; "sliding" counts the last 60 seconds;
            "fixed" counts whole minutes; "parallel" bounds requests in flight, and `limit` is their number.
        schedule: (second, limit) pairs; limits are requests a minute, or requests in flight for "parallel".
        hint: whether a refusal has a retry time.
    """

    def __init__(self, kind: str, schedule: Sequence[tuple[float, float]], *, hint: bool = True) -> None:
        self.kind = kind
        self.schedule = schedule
        self.hint = hint
        self.taken: list[float] = []
        self.refused: list[float] = []
        self.in_flight = 0
        self._tokens = max(1.0, schedule[0][1] / 60.0)
        self._filled_at = 0.0

    def limit(self, now: float) -> float:
        return [limit for at, limit in self.schedule if at <= now][-1]

    def ask(self, now: float) -> Outcome:
        """One request; the caller calls `leave` when its answer is there, if it was taken."""
        wait = self._wait(now)
        if wait is None:
            self.taken.append(now)
            self.in_flight += 1
            return OK
        self.refused.append(now)
        return Outcome(OutcomeKind.RATE_LIMITED, "429", retry_after=wait if self.hint and wait > 0 else None)

    def stated(self, now: float) -> list[AnnouncedLimit]:
        """The announcement of a provider's limit, sent with every answer."""
        return [AnnouncedLimit("requests", self.limit(now))]

    def leave(self) -> None:
        self.in_flight -= 1

    def _wait(self, now: float) -> float | None:
        """None when the request is taken, else seconds until one would be."""
        limit = self.limit(now)
        if self.kind == "parallel":
            return None if self.in_flight < limit else 0.0
        if self.kind == "bucket":
            rate = limit / 60.0
            depth = max(1.0, rate)
            self._tokens = min(depth, self._tokens + (now - self._filled_at) * rate)
            self._filled_at = now
            if self._tokens >= 1.0:
                self._tokens -= 1.0
                return None
            return (1.0 - self._tokens) / rate
        begin = now - 60.0 if self.kind == "sliding" else 60.0 * (now // 60.0)
        first = bisect_left(self.taken, begin)
        if len(self.taken) - first < limit:
            return None
        if self.kind == "fixed":
            return begin + 60.0 - now
        return self.taken[max(first, len(self.taken) - int(limit))] + 60.0 - now

    def allowed(self, begin: float, end: float) -> float:
        """Requests that may be taken between two seconds."""
        return sum(self.limit(begin + i) / 60.0 for i in range(round(end - begin)))

    def utilisation(self, begin: float, end: float) -> float:
        """Requests taken of those allowed."""
        return sum(begin <= at < end for at in self.taken) / self.allowed(begin, end)

    def refused_share(self, begin: float, end: float) -> float:
        """Refusals of all requests."""
        refused = sum(begin <= at < end for at in self.refused)
        return refused / max(1, refused + sum(begin <= at < end for at in self.taken))
