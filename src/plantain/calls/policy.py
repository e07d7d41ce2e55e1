"""Retries, circuit breaker and failure streaks of calls.

`POLICY` has the tries of each outcome. The circuit breaker of a model pauses its calls during an outage and probes it
at intervals. `FailureStreaks` ends a run whose calls fail in a row, before it has used up its tasks.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from plantain.records import Outcome, OutcomeKind, Step
from plantain.records.messages import duration


class Interrupted(Exception):
    """Raised in a task when a stop is requested; the task stays pending until the run is resumed."""


class RunHalted(Exception):
    """Raised if the whole run cannot continue (bad key, exhausted quota); the message names the remedy."""


class RequestChanged(RunHalted):
    """Raised if a recorded call had another request than now: prompt, model or image has changed."""


class LimitReached(RunHalted):
    """Raised if a limit of the recipe is reached; the message names it. The run can be resumed with a higher one."""


# --- tries ------------------------------------------------------------------------------------------


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
"""A malformed answer is requested again inside its adapter, with the error; a refusal or a missing image consumes a
round of the loop, which then writes another instruction. Only failures of the transport are tried again here."""

LOST = Retry(10, base_s=0.2, cap_s=10.0)
"""Tries of a call whose worker was lost, counted separately from those of a connection; they use up no round."""


def next_step(outcome: Outcome, tries: int, rng: random.Random) -> float | None:
    """Return the seconds to wait before the next try, or None when this outcome is final.

    Args:
        outcome: outcome of the last try; its `retry_after` is a lower bound.
        tries: number of tries so far with this outcome; failed workers are counted separately.
        rng: random generator of the jitter, which affects no result.
    """
    policy = LOST if outcome.lost else POLICY[outcome.kind]
    if outcome.fatal or tries >= policy.tries:
        return None
    backoff = rng.uniform(0.0, min(policy.cap_s, policy.base_s * 2.0 ** (tries - 1)))
    if outcome.retry_after is not None:
        return outcome.retry_after + 0.1 * backoff
    return backoff


# --- outages ----------------------------------------------------------------------------------------

FAILURES_TO_OPEN = 5
"""Calls in a row that fail, with no answer between them, open the breaker."""

SILENT_S = 120.0
"""Refusals by a rate limit count as an outage after this time: limits are per minute."""

FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0
"""Seconds until the first probe, and at most between probes; every failed probe doubles them."""

PASSING = frozenset({OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED})
"""Temporary failures that are not caused by the request."""


class CircuitBreaker:
    """Pause the calls of one model during an outage and probe it at intervals; times are seconds of one clock.

    Args:
        longest_s: maximum seconds to wait for an outage to end; None: calls are never paused.

    Attributes:
        since: time of the first of the current failures; None while calls are answered.
        open: True while calls wait.
        reason: reason of the latest failure.
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
        self._has_news = False
        self._jitter = random.Random()

    def wait(self, now: float) -> float:
        """Return the seconds until a call may be sent; infinite while the answer to a probe is awaited."""
        if not self.open:
            return 0.0
        return math.inf if self._probing else max(0.0, self._next_at - now)

    def sent(self) -> None:
        """Record that a call is sent; while the breaker is open it is the probe."""
        self._probing = self.open

    def heard(self, outcome: Outcome, sent_at: float, now: float) -> bool:
        """Record the outcome of a call that was sent at `sent_at`; return True if it ends an outage."""
        probe = self._probing and sent_at >= self._opened_at
        if probe:
            self._probing = False
        if self._longest_s is None or outcome.fatal or outcome.lost or outcome.kind is OutcomeKind.CANCELLED:
            return False
        if outcome.kind in PASSING:
            self._failed(outcome, probe, now)
            return False
        if self.since is not None and sent_at < self.since:
            return False  # sent before the first failure
        was_open, self.open = self.open, False
        self.since, self._failures, self._has_news = None, 0, False
        return was_open

    def lost(self, sent_at: float) -> None:
        """Record that a call will have no outcome, so that a lost probe can be repeated."""
        if sent_at >= self._opened_at:
            self._probing = False

    def over(self, now: float) -> bool:
        """Return True if the outage has lasted longer than `longest_s`."""
        return self.open and self._longest_s is not None and now >= self._since(now) + self._longest_s

    def news(self, now: float) -> str:
        """Return, once per pause, a message with its length, reason and next probe; "" otherwise."""
        if not self._has_news:
            return ""
        self._has_news = False
        since = duration(now - self._since(now))
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
        if not self.open and (self._failures < FAILURES_TO_OPEN or not silent):
            return
        self._pause = min(LONGEST_PAUSE_S, 2.0 * self._pause) if self.open else FIRST_PAUSE_S
        if not self.open:
            self.open, self._opened_at = True, now
        self._has_news = True
        pause = self._pause * self._jitter.uniform(0.75, 1.0)
        self._next_at = now + max(pause, outcome.retry_after or 0.0)


# --- failures in a row ------------------------------------------------------------------------------

MOST = 20
"""Calls in a row to one model for one step that may fail before the run halts..."""

TASKS = 4
"""...if they belong to at least this many tasks: one odd image may fail in all its rounds."""

NO_ANSWER = frozenset({OutcomeKind.MALFORMED, OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED})
"""No usable answer, after all tries. A refusal or a missing image is an answer, about the instruction, and ends a row.
But refusals before any other answer are a fault of the model, and count as failures."""


class FailureStreaks:
    """Counts of failed calls in a row of each model and step, to end the run before all its tasks have failed."""

    def __init__(self) -> None:
        self._failed: dict[tuple[str, Step], list[str]] = {}
        self._answered: set[tuple[str, Step]] = set()

    def judged(self, model: str, step: Step, task_id: str, outcome: Outcome) -> Outcome:
        """Count a call's last outcome; return it, marked fatal if it is the 20th failure in a row, of four tasks."""
        key, refused = (model, step), outcome.kind is OutcomeKind.REFUSED
        if outcome.kind not in NO_ANSWER and (not refused or key in self._answered):
            self._answered.add(key)
            self._failed.pop(key, None)
            return outcome
        tasks = self._failed.setdefault(key, [])
        tasks.append(task_id)
        if len(tasks) < MOST or len(set(tasks)) < TASKS:
            return outcome
        what = "refused: try another model, safety setting or prompt" if refused else "failed: find the cause"
        advice = (
            f"{len(tasks)} {step} calls in a row {what}; resume then, and retry the tasks that it stopped by "
            f"`run retry` with --outcome {outcome.kind}, or those of a benchmark's run by the same "
            f"command with --retry{'' if step is Step.JUDGE else f' {outcome.kind}'}"
        )
        return replace(outcome, fatal=True, reason=f"{outcome.reason}; {advice}")
