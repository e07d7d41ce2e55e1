"""Stops a run whose calls all fail in a row, before it has used up its tasks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from plantain.records import Outcome, OutcomeKind, Step

MOST = 20
"""Calls in a row to one model for one step that may fail before the run halts..."""

TASKS = 4
"""...if they belong to at least this many tasks: one odd picture may fail in all its rounds."""

FAILURES = frozenset({OutcomeKind.MALFORMED, OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED})
"""No answer that could be used, after all tries. A refusal or a missing picture is an answer: it says something about
the instruction, and ends a row. But `MOST` of them before anything else has come say something about the model."""


@dataclass(slots=True)
class FailureStreak:
    """The failures since the last answer.

    Attributes:
        calls: how many.
        tasks: whose they were.
        kinds: what was said, without what changes from call to call.
        ever_answered: whether there has been an answer at all.
        refusals: whose calls were refused, while nothing else was ever answered; None from then on.
    """

    calls: int = 0
    tasks: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    ever_answered: bool = False
    refusals: list[str] | None = field(default_factory=list)


class FailureStreaks:
    """Of all models and steps of a run, in this process; outages are the circuit breaker's."""

    def __init__(self) -> None:
        self._streaks: dict[tuple[str, Step], FailureStreak] = {}

    def judged(self, model: str, step: Step, task_id: str, outcome: Outcome) -> Outcome:
        """What a call's last outcome comes to beside those before it: fatal where it is one of too many.

        Too many are `MOST` failures in a row of which all say the same, or of which none was preceded by an answer.
        """
        streak = self._streaks.setdefault((model, step), FailureStreak())
        if outcome.kind not in FAILURES:
            refusals = streak.refusals if outcome.kind is OutcomeKind.REFUSED else None
            self._streaks[model, step] = FailureStreak(ever_answered=True, refusals=refusals)
            if refusals is not None:
                refusals.append(task_id)
                if len(refusals) >= MOST and len(set(refusals)) >= TASKS:
                    return replace(
                        outcome, fatal=True, reason=f"{outcome.reason}; {_declined(step, refusals)}"
                    )
            return outcome
        streak.calls += 1
        streak.tasks.add(task_id)
        streak.kinds.add(_kind(outcome))
        alike = len(streak.kinds) == 1
        if streak.calls < MOST or len(streak.tasks) < TASKS or (streak.ever_answered and not alike):
            return outcome
        return replace(outcome, fatal=True, reason=f"{outcome.reason}; {_advice(step, outcome, streak)}")


def _advice(step: Step, outcome: Outcome, streak: FailureStreak) -> str:
    verb = "ended so" if len(streak.kinds) == 1 else "failed"
    return (
        f"{streak.calls} {step} calls in a row {verb}, so no more are made: resume when the cause is mended; tasks "
        f"that it stopped go on with `plantain retry --outcome {outcome.kind} --step {step}`"
    )


def _declined(step: Step, refusals: list[str]) -> str:
    return (
        f"all of the first {len(refusals)} {step} calls were refused, so no more are made: another model, its safety "
        "setting, or other words in the prompt may be taken; resuming tries again"
    )


def _kind(outcome: Outcome) -> str:
    """An outcome without numbers, names of requests and the like: only a leading status code stays."""
    first, _, rest = outcome.reason.partition(" ")
    return " ".join([outcome.kind, first, *re.sub(r"\S*[0-9]\S*", "#", rest).split()])
