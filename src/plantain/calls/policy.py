"""Whether a call is made again, one retry policy per outcome as a table, and why no more calls are made."""

from __future__ import annotations

import random
from dataclasses import dataclass

from plantain.records import Outcome, OutcomeKind


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and after how long, a call with this outcome is tried again.

    Attributes:
        tries: total tries allowed, the first included.
        base_s, cap_s: exponential backoff between tries, full jitter, in seconds.
    """

    tries: int
    base_s: float = 0.0
    cap_s: float = 0.0


POLICY: dict[OutcomeKind, Retry] = {
    OutcomeKind.OK: Retry(1),
    OutcomeKind.NOT_APPLICABLE: Retry(1),
    OutcomeKind.RATE_LIMITED: Retry(30, base_s=1.0, cap_s=60.0),
    OutcomeKind.TRANSPORT: Retry(5, base_s=0.5, cap_s=30.0),
    OutcomeKind.REFUSED: Retry(1),
    OutcomeKind.NO_IMAGE: Retry(1),
    OutcomeKind.MALFORMED: Retry(1),
    OutcomeKind.CANCELLED: Retry(1),
}
"""A malformed answer is requested once more inside its adapter, with the error; a refusal or a missing image consumes a
round of the loop, which then writes another instruction. Only failures of the transport are tried again here."""

LOST = Retry(10, base_s=0.2, cap_s=10.0)
"""Of a call whose worker was lost: its tries are counted apart from those of a connection, and use up no round."""


def next_step(outcome: Outcome, tries: int, rng: random.Random) -> float | None:
    """Return the seconds to wait before the next try, or None when this outcome is final.

    Args:
        outcome: of the last try; its `retry_after` is a lower bound.
        tries: tries so far with this outcome; lost workers count apart.
        rng: source of the jitter (not part of any result).
    """
    policy = LOST if outcome.lost else POLICY[outcome.kind]
    if outcome.fatal or tries >= policy.tries:
        return None
    backoff = rng.uniform(0.0, min(policy.cap_s, policy.base_s * 2.0 ** (tries - 1)))
    if outcome.retry_after is not None:
        return outcome.retry_after + 0.1 * backoff
    return backoff


class Interrupted(Exception):
    """The run was asked to stop; this task stays pending until the run is resumed."""


class RunHalted(Exception):
    """The whole run cannot continue (bad key, exhausted quota); the message says what to do."""


class RequestChanged(RunHalted):
    """The request of a recorded call would differ now: prompt, model or image has changed."""


class LimitReached(RunHalted):
    """A cap of the recipe is used up; the run can be resumed with a higher one. The message names the cap."""
