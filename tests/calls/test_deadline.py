"""Deadlines: a first guess, which the first call that is late corrects for all in flight."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from plantain.calls import AdmissionController, ModelClient
from plantain.calls.client import CallSpec
from plantain.calls.limits import CALM_ANSWERS, LONGEST_S, Deadline
from plantain.journal import CallResult, Journal
from plantain.records import Outcome, OutcomeKind, Step
from plantain.roles import Reply
from simulated.clock import run_simulated


async def ask(deadline: Deadline, seconds: float) -> Outcome:
    """A call whose answer takes so long."""

    async def send() -> Reply[str]:
        await asyncio.sleep(seconds)
        return Reply("done")

    async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
        return draft

    client = ModelClient(cast(Journal, None), cast(AdmissionController, None))
    spec = CallSpec(Step.EDIT, 1, 0, "hosted/m", {}, send, settle)
    return (await client.send(spec, deadline)).outcome


async def ask_again(deadline: Deadline, times: int) -> None:
    for _ in range(times):
        await ask(deadline, 1e6)


@pytest.mark.parametrize(("first", "kind"), [(1.0, OutcomeKind.TRANSPORT), (None, OutcomeKind.OK)])
def test_call_without_an_answer_in_time_is_a_timeout(first: float | None, kind: OutcomeKind) -> None:
    outcome = run_simulated(ask(Deadline(first), 30.0))
    assert outcome.kind is kind and outcome.timed_out is (kind is OutcomeKind.TRANSPORT)
    assert not outcome.unbilled


def test_first_late_call_gives_those_in_flight_twice_the_time() -> None:
    async def scene() -> list[Outcome]:
        deadline = Deadline(5.0)
        return await asyncio.gather(*(ask(deadline, 19.0) for _ in range(8)))

    outcomes = run_simulated(scene())
    # at 5, 10 and (20 > 19) never again: two of eight are lost
    assert sum(outcome.timed_out for outcome in outcomes) == 2


def test_deadline_grows_to_ten_minutes_and_comes_back_to_the_first_guess() -> None:
    deadline = Deadline(5.0)
    run_simulated(ask_again(deadline, 10))
    assert deadline.seconds == LONGEST_S
    for _ in range(10 * CALM_ANSWERS):
        deadline.answered(0.25)
    assert deadline.seconds == 5.0


def test_answers_close_to_the_deadline_lengthen_it_before_one_is_late() -> None:
    deadline = Deadline(5.0)
    deadline.answered(2.6)
    assert deadline.seconds == 10.0
