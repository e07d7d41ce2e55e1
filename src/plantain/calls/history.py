"""How the limits of a model moved while a process ran; telemetry for the journal's session and the report."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from plantain.journal import JsonValue

KEPT = 400
"""Changes kept per model: the latest ones."""


@dataclass(frozen=True, slots=True)
class LimitChange:
    """`at_s` seconds after the limiter opened, `what` ("requests_per_minute" or "window") became `value`."""

    at_s: float
    what: str
    value: float
    why: str


@dataclass(slots=True)
class LimitHistory:
    """Counts of a limiter, and its latest changes."""

    granted: int = 0
    accepted: int = 0
    limited: int = 0
    changes: deque[LimitChange] = field(default_factory=lambda: deque(maxlen=KEPT))

    def note(self, at_s: float, what: str, value: float, why: str) -> None:
        if math.isfinite(value):
            self.changes.append(LimitChange(round(at_s, 2), what, round(value, 2), why))

    def as_json(self) -> dict[str, JsonValue]:
        """For the session's detail: counts, and changes as [seconds, what, value, why]."""
        return {
            "granted": self.granted,
            "accepted": self.accepted,
            "rate_limited": self.limited,
            "changes": [[c.at_s, c.what, c.value, c.why] for c in self.changes],
        }
