"""How long a call may take: a first guess, corrected by the latencies seen."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

LONGEST_S = 600.0
"""A deadline does not grow beyond this, unless it began there."""

NEAR = 0.5
"""An answer that took this share of the deadline shows that the guess was too short: the next may take longer."""

CALM = 0.2
CALM_ANSWERS = 50
"""After as many answers within this share of the deadline it is halved again, down to the first guess."""


@dataclass(slots=True)
class Guard:
    """What has become of one call's time: the seconds after which it was ended, None while it was not."""

    expired_after_s: float | None = None


class Deadline:
    """One for all calls to a model: what one of them teaches holds at once for those in flight.

    A server that queues is slow for everybody at the same time. Ending all that wait there would throw work away that
    is nearly done, and send it again to the end of the same queue. So the first call that is late doubles the time of
    the others.

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
        """Ends what is done within when it takes too long: TimeoutError, and the guard says after how long."""
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
        """An answer came, so many seconds after its request; False where the next could take too long."""
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
