from __future__ import annotations

import random

import pytest

from plantain.calls.policy import POLICY, next_step
from plantain.records import Outcome, OutcomeKind


def test_policy_covers_every_outcome() -> None:
    assert set(POLICY) == set(OutcomeKind)


@pytest.mark.parametrize(
    "kind",
    [
        OutcomeKind.OK,
        OutcomeKind.REFUSED,
        OutcomeKind.NO_IMAGE,
        OutcomeKind.MALFORMED,
        OutcomeKind.NOT_APPLICABLE,
    ],
)
def test_next_step_answers_are_never_asked_again(kind: OutcomeKind) -> None:
    assert next_step(Outcome(kind), 1, random.Random(0)) is None


def test_next_step_waits_at_least_what_the_provider_asked() -> None:
    outcome = Outcome(OutcomeKind.RATE_LIMITED, retry_after=17.0)
    assert all(17.0 <= (next_step(outcome, n, random.Random(n)) or 0) <= 24.0 for n in range(1, 20))


def test_next_step_gives_up_on_transport_after_its_tries() -> None:
    waits = [next_step(Outcome(OutcomeKind.TRANSPORT), n, random.Random(1)) for n in range(1, 6)]
    assert waits[-1] is None and all(w is not None and w <= 30 for w in waits[:-1])


def test_next_step_fatal_is_final() -> None:
    assert next_step(Outcome(OutcomeKind.RATE_LIMITED, fatal=True), 1, random.Random(0)) is None
