"""The circuit breaker in simulated time (when it opens, how it probes, its cost), and failures in a row."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest

from plantain.calls import AdmissionController, Budget, CallSpec, ModelClient, ModelLimits, TaskCalls
from plantain.calls.policy import (
    FAILURES_TO_OPEN,
    LONGEST_PAUSE_S,
    MOST,
    TASKS,
    CircuitBreaker,
    FailureStreaks,
    next_step,
)
from plantain.journal import CallResult, Journal
from plantain.records import OK, Outcome, OutcomeKind, Price, Step, Usage
from plantain.roles import Reply, failed
from simulated.clock import run_simulated
from simulated.day import Unwritten

GONE = Outcome(OutcomeKind.TRANSPORT, "503: overloaded", unbilled=True)


def failing(outage: CircuitBreaker, times: int, now: float = 0.0, outcome: Outcome = GONE) -> None:
    for _ in range(times):
        outage.heard(outcome, now, now)


@pytest.mark.parametrize("outcome", [OK, Outcome(OutcomeKind.REFUSED), Outcome(OutcomeKind.MALFORMED)])
def test_any_answer_closes_the_breaker(outcome: Outcome) -> None:
    outage = CircuitBreaker(3600.0)
    failing(outage, FAILURES_TO_OPEN)
    outage.heard(outcome, -5.0, 1.0)  # of a call that was sent before the first failure
    assert outage.open
    outage.heard(outcome, 0.5, 1.0)
    assert outage.wait(1.0) == 0.0


def test_refusals_by_a_limit_are_no_outage_before_two_minutes() -> None:
    outage = CircuitBreaker(3600.0)
    limited = Outcome(OutcomeKind.RATE_LIMITED, "429", retry_after=40.0)
    failing(outage, 50, 0.0, limited)
    assert not outage.open
    outage.heard(limited, 121.0, 121.0)
    assert outage.open and outage.wait(121.0) >= 40.0


def test_thirty_two_callers_wait_out_an_outage_with_few_requests_and_no_money() -> None:
    """Twenty minutes of 503, then health: probes at growing intervals, no money held, every call answered."""
    price = Price(image_out_each=1.0)
    budget = Budget(40.0)
    limits = ModelLimits(32, price=price, max_output_tokens=1, outage_s=3600.0)
    controller = AdmissionController(lambda model: limits, budget)
    news_lines: list[str] = []
    controller.on_outage = lambda model, news: news_lines.append(f"{model}: {news}")
    asked = 0

    async def one() -> None:
        nonlocal asked
        loop = asyncio.get_running_loop()
        outcome = GONE
        while not outcome.ok:
            async with controller.admit("hosted/m", Step.EDIT) as ticket:
                ticket.started = True
                asked += 1
                await asyncio.sleep(0.05)
                outcome = OK if loop.time() > 1200.0 else GONE
                ticket.settle(outcome, Usage(images=1) if outcome.ok else Usage())

    async def scene() -> float:
        await asyncio.gather(*(one() for _ in range(32)))
        return asyncio.get_running_loop().time()

    ended = run_simulated(scene())
    assert 1200.0 < ended < 1200.0 + LONGEST_PAUSE_S + 10.0
    assert asked <= 32 + FAILURES_TO_OPEN + 32 + 12
    assert (budget.spent_usd, budget.held_usd, budget.reserved_usd) == (32.0, 0.0, 0.0)
    assert news_lines[0].startswith("hosted/m: no answer for 0 s (503: overloaded); next try in ")
    assert len(news_lines) <= 12


@pytest.mark.parametrize("outage_s", [12 * 3600.0, 10.0], ids=["sat out", "given up"])
@pytest.mark.parametrize("outcome", [OK, Outcome(OutcomeKind.REFUSED, "no")], ids=["ok", "refused"])
def test_answers_under_way_when_an_outage_starts_are_not_requested_again(
    outcome: Outcome, outage_s: float
) -> None:
    """Sent before the first 503, answered a minute later while other calls fail: paid for, so it counts."""

    async def scene() -> tuple[list[str], Outcome | None]:
        asked: list[str] = []
        limits = ModelLimits(16, price=Price(input_per_m=1.0), outage_s=outage_s)
        client = ModelClient(
            cast(Journal, Unwritten()),
            AdmissionController(lambda _: limits, Budget(100.0)),
            jitter=random.Random(1),
        )

        async def call(task: str) -> Outcome:
            async def send() -> Reply[str]:
                asked.append(task)
                if task != "slow":
                    return failed(GONE)
                await asyncio.sleep(60.0)
                usage = Usage(input_tokens=1_000)
                return Reply("fine", OK, usage) if outcome.ok else failed(outcome, usage)

            async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
                return draft

            spec = CallSpec(Step.JUDGE, 1, 0, "p/judge", {}, send, settle)
            return (await TaskCalls(client, task, 0, []).answer(spec)).outcome

        slow = asyncio.create_task(call("slow"))
        await asyncio.sleep(1.0)
        others = [asyncio.create_task(call(f"quick {n}")) for n in range(8)]
        ended = await slow
        client.request_stop()
        await asyncio.gather(*others, return_exceptions=True)
        return asked, ended

    asked, ended = run_simulated(scene())
    assert asked.count("slow") == 1 and ended == outcome


def test_refusals_of_a_busy_provider_use_up_no_tries_of_a_broken_connection() -> None:
    """Seven 429 in a row, then a connection that breaks once: the sixth failure of a call had been its last."""

    async def scene() -> Outcome:
        faults = [Outcome(OutcomeKind.RATE_LIMITED, "429", unbilled=True)] * 7
        faults.append(Outcome(OutcomeKind.TRANSPORT, "the connection failed (ReadError)"))
        asked = 0

        async def send() -> Reply[str]:
            nonlocal asked
            asked += 1
            return failed(faults[asked - 1]) if asked <= len(faults) else Reply("fine")

        async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
            return draft

        limits = ModelLimits(4, outage_s=12 * 3600.0)
        client = ModelClient(
            cast(Journal, Unwritten()),
            AdmissionController(lambda _: limits, Budget(None)),
            jitter=random.Random(1),
        )
        spec = CallSpec(Step.JUDGE, 1, 0, "p/judge", {}, send, settle)
        return (await TaskCalls(client, "task", 0, []).answer(spec)).outcome

    assert run_simulated(scene()) == OK


# --- failures in a row ------------------------------------------------------------------------------

BAD = Outcome(OutcomeKind.MALFORMED, "400 INVALID_ARGUMENT: request req-17f is not accepted")


def fail(streaks: FailureStreaks, times: int, outcome: Outcome = BAD, tasks: int = TASKS) -> Outcome:
    last = OK
    for number in range(times):
        last = streaks.judged("gemini/m", Step.EDIT, f"task-{number % tasks}", outcome)
    return last


def test_last_of_too_many_failures_is_fatal_and_names_the_remedy() -> None:
    streaks = FailureStreaks()
    assert fail(streaks, MOST - 1) == BAD
    outcome = fail(streaks, 1)
    assert outcome.fatal and outcome.kind is OutcomeKind.MALFORMED
    assert f"{MOST} edit calls in a row failed" in outcome.reason
    assert "by `run retry` with --outcome malformed" in outcome.reason


def test_nothing_but_refusals_halts_before_more_instructions_are_bought() -> None:
    """Halt at the twentieth of 25 refused edits; after one other answer, refusals concern single instructions."""
    refused = Outcome(OutcomeKind.REFUSED, "moderation_blocked")
    streaks = FailureStreaks()
    outcomes = [fail(streaks, 1, refused) for _ in range(MOST - 1)]
    assert not any(outcome.fatal for outcome in outcomes)
    streaks.judged("gemini/m", Step.EDIT, "task-1", BAD)  # a failure is not an answer
    last = streaks.judged("gemini/m", Step.EDIT, "another", refused)
    assert not last.fatal  # twenty, of two tasks
    streaks = FailureStreaks()
    outcome = fail(streaks, MOST, refused)
    assert outcome.fatal and "20 edit calls in a row refused" in outcome.reason
    streaks = FailureStreaks()
    streaks.judged("gemini/m", Step.EDIT, "task", OK)
    assert not fail(streaks, 5 * MOST, refused).fatal


@pytest.mark.parametrize("kind", sorted(set(OutcomeKind) - {OutcomeKind.RATE_LIMITED, OutcomeKind.TRANSPORT}))
def test_next_step_answers_are_never_asked_again(kind: OutcomeKind) -> None:
    assert next_step(Outcome(kind), 1, random.Random(0)) is None


def test_next_step_waits_as_long_as_the_provider_requests() -> None:
    outcome = Outcome(OutcomeKind.RATE_LIMITED, retry_after=17.0)
    assert all(17.0 <= (next_step(outcome, n, random.Random(n)) or 0) <= 24.0 for n in range(1, 20))


def test_next_step_gives_up_on_transport_after_its_tries() -> None:
    waits = [next_step(Outcome(OutcomeKind.TRANSPORT), n, random.Random(1)) for n in range(1, 6)]
    assert waits[-1] is None and all(w is not None and w <= 30 for w in waits[:-1])


def test_next_step_fatal_is_final() -> None:
    assert next_step(Outcome(OutcomeKind.RATE_LIMITED, fatal=True), 1, random.Random(0)) is None
