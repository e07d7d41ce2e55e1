"""The steps of a round, and how their model calls end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Step(StrEnum):
    """The model calls of a round, in their order; only a judge that is asked blind looks before it judges."""

    WRITE = "write"
    EDIT = "edit"
    LOOK = "look"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identity of a memoised call; a replay finds its answer by this key."""

    task_id: str
    generation: int
    round: int
    step: Step
    draw: int = 0


class OutcomeKind(StrEnum):
    """How a model call ended; each kind has one retry policy (`plantain.calls.policy`)."""

    OK = "ok"
    NOT_APPLICABLE = "not_applicable"
    RATE_LIMITED = "rate_limited"
    TRANSPORT = "transport"
    REFUSED = "refused"
    NO_IMAGE = "no_image"
    MALFORMED = "malformed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended and why.

    Attributes:
        kind: the outcome.
        reason: one line; "" if ok.
        retry_after: seconds that the provider asked us to wait, for `rate_limited`.
        fatal: the fault concerns the whole run, not this task (bad key, exhausted quota, retired
            model): the run stops instead of failing every task in turn.
        unbilled: the provider answered with an error or was never reached: nothing can have been billed.
        timed_out: no answer came in time: it may have been billed, and the provider may be overloaded.
        lost: the worker that computed has ended without an answer, which says nothing about the request: such calls
            have tries of their own.

    The last three are evidence of this process; they are neither journalled nor compared.
    """

    kind: OutcomeKind
    reason: str = ""
    retry_after: float | None = None
    fatal: bool = False
    unbilled: bool = field(default=False, compare=False)
    timed_out: bool = field(default=False, compare=False)
    lost: bool = field(default=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.kind is OutcomeKind.OK

    @property
    def costs_nothing(self) -> bool:
        """True if it ended before the model worked, unless the provider's usage says otherwise."""
        return self.fatal or self.unbilled or self.kind in BEFORE_WORK


BEFORE_WORK = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.REFUSED, OutcomeKind.CANCELLED})
"""Outcomes of calls on which no model has worked."""


OK = Outcome(OutcomeKind.OK)
