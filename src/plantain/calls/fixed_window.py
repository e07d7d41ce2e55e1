"""Recognises a provider that counts in whole minutes by its refusals: how much one takes, and when the next begins.

Pure arithmetic with an explicit clock. Such a provider takes everything until its count is full and then nothing until
the minute turns; few say when that is. So what is sent in a minute is counted here too. It goes out a little faster
than evenly; what is left of the minute is for a try, one request at a time, whether more is taken by now. The first
refusal ends the minute for us: the rest is held until it turns, instead of being refused.

The same holds for a provider that counts the last sixty seconds, as long as we send alike in every minute.
"""

from __future__ import annotations

import math

MINUTE_S = 60.0

SPAN_S = 48.0
"""Seconds of a minute over which what it is known to take is spread."""

FULL = 0.9
"""A refusal after less than this share of what was known to be taken is a surprise, and may be chance."""

TRY_GAP_S = 0.5
TRY_GROWTH = 0.85
TRY_SPEED = 3.0
"""Beyond the known limit requests go out this far apart, each a little sooner than the one before, up to three times
the usual pace: one refusal where nothing has changed, and all of a doubled limit within the same minute."""

RAISE = 1.5
"""What was still taken when a minute turned is no limit: half as much again is tried in the next."""

SCOUT_S = 2.0
SCOUT_GROWTH = 1.5
LONGEST_SCOUT_S = 30.0
FIRST_SCOUT_S = 0.5
"""While everything is refused and nobody knows until when, one request goes out now and then. Every two seconds where
the turn of the minute is to be found; after a surprise first soon, for it may have been chance, and then ever later."""

CHANCE_S = 3.0
"""If a provider takes requests again within this time, its refusal was no full count."""

LATE_S = 5.0
LATE_STEP_S = 1.0
"""Refused in the first seconds of our minute: the provider's has not turned yet, and ours begins a second later."""

MISTAKES = 2
FEW = 3
ODD = 0.01
"""After two full counts that ended long before their minute, or in a minute several refusals, and one in a hundred
requests, that were no full count, the provider does not count whole minutes."""


class FixedWindowEstimator:
    """What a provider takes in a minute.

    Args:
        limit: units that it took in the last minute, before it began to refuse.
        now: when it was seen to refuse everything.

    Attributes:
        limit: units a minute, as known today.
        mistaken: whether it has turned out that this provider counts otherwise.
    """

    def __init__(self, limit: float, now: float) -> None:
        self.limit = max(1.0, limit)
        self.mistaken = False
        self._began = now
        self._turn_at = math.inf
        self._sent = self._refused = 0.0
        self._next_at = now
        self._try_gap = TRY_GAP_S
        self._mistakes = self._oddities = 0
        self._reply_s = 0.3
        self._full_at: float | None = now
        self._kept: float | None = self.limit
        self._surprised = True
        self._scout_gap, self._scout_at = SCOUT_S, now + SCOUT_S
        self._scout: float | None = None

    def until(self, now: float) -> float:
        """When one more unit may be sent."""
        self._advance(now)
        if self._full_at is None:
            return self._next_at
        if not self._surprised:
            return self._turn_at
        heard = math.inf if self._scout is None else self._scout + self._patience
        return min(self._scout_at, self._turn_at, heard)

    def take(self, now: float, units: float = 1.0) -> None:
        """Counts units as sent."""
        self._sent += units
        if self._full_at is not None:
            self._scout = now
            if now > self._full_at + MINUTE_S or math.isfinite(self._turn_at):
                self._scout_gap = min(LONGEST_SCOUT_S, self._scout_gap * SCOUT_GROWTH)
            self._scout_at = now + self._scout_gap
        elif self._sent - self._refused > self.limit:
            self._try_gap = max(self._try_gap * TRY_GROWTH, SPAN_S / (TRY_SPEED * self.limit))
            self._next_at = now + self._try_gap
        else:
            self._next_at = max(self._next_at, now - 0.25) + units * SPAN_S / self.limit

    def accepted(self, now: float, sent_at: float) -> None:
        """The provider took a request that was sent at this time."""
        self._advance(now)
        if self._full_at is not None and self._scout is not None and sent_at > self._full_at:
            self._resume(sent_at)

    def limited(self, now: float, sent_at: float) -> bool:
        """The provider refused a request; True when that was news."""
        self._advance(now)
        self._reply_s += 0.2 * (now - sent_at - self._reply_s)
        if sent_at < self._began:
            return False
        self._refused += 1.0
        kept = self._sent - self._refused
        if self._full_at is not None:
            self._heard_while_full(sent_at, kept)
            return False
        if self._is_late(now, kept):
            self._hold(now, None, now + LATE_STEP_S)
            self._doubt(False)
            return False
        self._hold(now, kept, self._turn_at, surprised=kept < FULL * self.limit)
        return True

    def _is_late(self, now: float, kept: float) -> bool:
        """Whether a refusal so early can mean that the provider's minute has not turned yet."""
        return kept < (1.0 - FULL) * self.limit and now < self._began + LATE_S

    def _hold(self, now: float, kept: float | None, turn_at: float, *, surprised: bool = False) -> None:
        """Sends nothing more in this minute; where that is a surprise, but for a scout now and then.

        `kept` is what was taken in it; None where it is not ours yet and says nothing of the limit.
        """
        self._full_at, self._kept, self._turn_at, self._surprised = now, kept, turn_at, surprised
        self._scout, self._scout_gap, self._scout_at = None, FIRST_SCOUT_S, now + FIRST_SCOUT_S

    def _doubt(self, serious: bool) -> None:
        """Something that does not go with whole minutes: a serious one twice, or small ones too often in a minute."""
        self._mistakes += serious
        self._oddities += not serious
        if self._mistakes >= MISTAKES or self._oddities > max(FEW, ODD * self.limit):
            self.mistaken = True

    def _heard_while_full(self, sent_at: float, kept: float) -> None:
        """A refusal behind the one that told of a full count: of something that was on its way, or of a scout."""
        if self._full_at is not None and self._kept is not None and sent_at <= self._full_at:
            self._kept = min(self._kept, kept)
        if self._scout is not None and sent_at >= self._scout:
            self._scout = None

    @property
    def _patience(self) -> float:
        """Seconds after which a request that has not been refused was taken; refusals are quick, answers are not."""
        return max(1.0, 3.0 * self._reply_s)

    def _advance(self, now: float) -> None:
        if now >= self._turn_at:
            self._turn(self._turn_at if now < self._turn_at + MINUTE_S else now)
        elif self._full_at is not None and self._scout is not None and now >= self._scout + self._patience:
            self._resume(self._scout)

    def _turn(self, at: float) -> None:
        kept = self._sent - self._refused
        if self._full_at is not None:
            self.limit = max(1.0, self.limit if self._kept is None else self._kept)
        elif kept > self.limit:
            self.limit = RAISE * kept
        self._begin(at)

    def _resume(self, at: float) -> None:
        """The provider takes requests again, from one that was sent at this time."""
        assert self._full_at is not None
        if math.isfinite(self._turn_at):
            self._doubt(at > self._full_at + CHANCE_S)
            self._full_at = self._scout = None
            self._next_at = at
            return
        self.limit = max(1.0, self.limit if self._kept is None else self._kept)
        self._begin(at)
        self._sent = 1.0

    def _begin(self, at: float) -> None:
        self._began, self._turn_at = at, at + MINUTE_S
        self._sent = self._refused = 0.0
        self._next_at, self._try_gap, self._oddities = at, TRY_GAP_S, 0
        self._full_at = self._scout = None
