"""The gate in simulated time against providers that enforce limits."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from plantain.calls import AdmissionController, Budget, Interrupted, LimitReached, ModelLimits
from plantain.records import OK, Outcome, OutcomeKind, Price, Step, Usage
from plantain.roles import AnnouncedLimit
from simulated.clock import run_simulated
from simulated.limits import LimitedProvider

DOLLAR = Price(image_out_each=1.0)


def gate_with(rules: ModelLimits, budget: Budget | None = None) -> AdmissionController:
    return AdmissionController(lambda model: rules, budget or Budget(None))


async def call(
    gate: AdmissionController,
    step: Step = Step.EDIT,
    *,
    seconds: float = 1.0,
    outcome: Outcome = OK,
    usage: Usage | None = None,
) -> None:
    async with gate.admit("hosted/model", step) as ticket:
        ticket.started = True
        await asyncio.sleep(seconds)
        ticket.settle(outcome, usage or Usage())


async def drive(
    gate: AdmissionController,
    provider: LimitedProvider,
    seconds: float,
    *,
    workers: int = 64,
    latency: float = 0.2,
    announces: bool = False,
) -> None:
    """Sends calls as fast as the gate lets them, for so long."""
    loop = asyncio.get_running_loop()
    rng = random.Random(0)

    async def worker() -> None:
        while loop.time() < seconds:
            async with gate.admit("hosted/model", Step.EDIT) as ticket:
                ticket.started = True
                outcome = provider.ask(loop.time())
                await asyncio.sleep(latency * rng.uniform(0.5, 1.5) if outcome.ok else 0.02)
                if outcome.ok:
                    provider.leave()
                ticket.announced(provider.stated(loop.time()) if announces else [])
                ticket.settle(outcome, Usage())
            if not outcome.ok:
                await asyncio.sleep((outcome.retry_after or 0.0) + rng.uniform(0.0, 1.0))

    tasks = [asyncio.create_task(worker()) for _ in range(workers)]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("kind", ["bucket", "sliding", "fixed"])
def test_gate_keeps_a_stated_limit_and_uses_it(kind: str) -> None:
    provider = LimitedProvider(kind, [(0.0, 600.0)])
    run_simulated(drive(gate_with(ModelLimits(64, requests_per_minute=600.0)), provider, 300.0))
    for begin in range(60, 300, 60):
        assert provider.utilisation(begin, begin + 60) >= 0.95
    assert provider.refused_share(0, 300) < 0.01


@pytest.mark.parametrize("hint", [True, False])
def test_gate_learns_a_limit_and_follows_it_down_and_up(hint: bool) -> None:
    provider = LimitedProvider("bucket", [(0.0, 600.0), (240.0, 300.0), (480.0, 600.0)], hint=hint)
    run_simulated(drive(gate_with(ModelLimits(64)), provider, 720.0))
    for begin in (120, 180, 300, 360, 420, 540, 600, 660):
        assert provider.utilisation(begin, begin + 60) >= 0.90, begin
    assert provider.refused_share(120, 240) < 0.01


@pytest.mark.parametrize("kind", ["bucket", "sliding", "fixed"])
def test_gate_keeps_a_limit_that_is_announced_from_the_first_answer_on(kind: str) -> None:
    steps = [(0.0, 600.0), (240.0, 300.0), (480.0, 600.0)]
    provider = LimitedProvider(kind, steps, hint=False)
    run_simulated(drive(gate_with(ModelLimits(64)), provider, 720.0, announces=True))
    for begin in (60, 120, 180, 300, 360, 420, 540, 600, 660):
        assert provider.utilisation(begin, begin + 60) >= 0.95, begin
    assert provider.refused_share(0, 720) < 0.03
    assert provider.refused_share(60, 240) < 0.01


def test_gate_waits_when_an_answer_announces_that_nothing_is_left() -> None:
    async def scene() -> float:
        gate = gate_with(ModelLimits(8, requests_per_minute=6_000.0))
        async with gate.admit("hosted/model", Step.EDIT) as ticket:
            ticket.announced([AnnouncedLimit("requests", 6_000.0, left=0.0, reset_s=12.5)])
            ticket.settle(OK, Usage())
        await call(gate, seconds=0.0)
        return asyncio.get_running_loop().time()

    assert 12.5 <= run_simulated(scene()) < 13.0


def test_gate_finds_how_many_calls_may_be_in_flight() -> None:
    provider = LimitedProvider("parallel", [(0.0, 10.0)])
    run_simulated(drive(gate_with(ModelLimits(64)), provider, 300.0))
    # 10 in flight of 0.2 s each are 50 a second at most
    assert len([t for t in provider.taken if 120 <= t < 300]) >= 0.80 * 180 * 50
    assert provider.refused_share(120, 300) < 0.01


def test_gate_obeys_retry_after() -> None:
    async def scene() -> list[float]:
        gate = gate_with(ModelLimits(8))
        loop = asyncio.get_running_loop()
        await call(gate, outcome=Outcome(OutcomeKind.RATE_LIMITED, "429", retry_after=17.0))
        before = loop.time()
        await call(gate)
        return [before, loop.time()]

    before, after = run_simulated(scene())
    assert after - before >= 17.0


def test_gate_serves_steps_in_turn_so_that_judging_never_starves_editing() -> None:
    async def scene() -> Counter[Step]:
        gate = gate_with(ModelLimits(4, requests_per_minute=60.0))
        served: Counter[Step] = Counter()

        async def many(step: Step, n: int) -> None:
            async def one() -> None:
                await call(gate, step, seconds=0.1)
                served[step] += 1

            await asyncio.gather(*(one() for _ in range(n)))

        judging = asyncio.create_task(many(Step.JUDGE, 200))
        await asyncio.sleep(5.0)  # two hundred judge calls wait before the first edit comes
        editing = asyncio.create_task(many(Step.EDIT, 20))
        before = served.copy()
        await asyncio.sleep(30.0)
        judging.cancel(), editing.cancel()
        return served - before

    served = run_simulated(scene())
    # 30 calls in 30 s, half of them for each
    assert served[Step.EDIT] >= 13 and served[Step.JUDGE] >= 13


def test_gate_tokens_a_minute() -> None:
    async def scene() -> float:
        gate = gate_with(ModelLimits(8, tokens_per_minute=60_000.0))
        usage = Usage(input_tokens=1_500, output_tokens=500)
        for _ in range(60):
            await call(gate, Step.WRITE, seconds=0.0, usage=usage)
        return asyncio.get_running_loop().time()

    # 60 calls of 2,000 tokens at 1,000 tokens a second: two minutes, whatever was guessed at first
    assert 110.0 <= run_simulated(scene()) <= 125.0


def test_gate_budget_ends_the_run_when_nothing_fits_any_more() -> None:
    async def scene() -> tuple[int, Budget]:
        budget = Budget(5.5)
        gate = gate_with(ModelLimits(8, price=DOLLAR, max_output_tokens=1), budget)
        usage = Usage(input_tokens=10, images=1)
        done = await asyncio.gather(*(call(gate, usage=usage) for _ in range(9)), return_exceptions=True)
        assert {type(d) for d in done if d is not None} == {LimitReached}
        assert "limits.budget_usd = 5.5: $5.0000 spent" in str(next(d for d in done if d is not None))
        return sum(d is None for d in done), budget

    made, budget = run_simulated(scene())
    assert made == 5 and budget.committed_usd == pytest.approx(5.0)


def test_gate_waits_for_calls_in_flight_before_it_calls_the_budget_spent() -> None:
    async def scene() -> int:
        # a call may cost $1 and costs nothing: one at a time fits, and all nine are made in the end
        gate = gate_with(ModelLimits(8, price=DOLLAR, max_output_tokens=1), Budget(1.0))
        refused = Outcome(OutcomeKind.REFUSED, "safety")
        done = await asyncio.gather(*(call(gate, outcome=refused) for _ in range(9)), return_exceptions=True)
        return sum(d is None for d in done)

    assert run_simulated(scene()) == 9


def test_gate_releases_money_only_after_the_call_is_recorded() -> None:
    """While a call is answered but not yet on disk, its reservation still counts, so no other call is sent."""

    async def scene() -> list[float]:
        gate = gate_with(ModelLimits(8, price=DOLLAR, max_output_tokens=1), Budget(1.0))
        sent = []

        async def recorded_slowly() -> None:
            async with gate.admit("hosted/model", Step.EDIT) as ticket:
                sent.append(asyncio.get_running_loop().time())
                ticket.started = True
                ticket.settle(Outcome(OutcomeKind.REFUSED, "safety"), Usage())
                await asyncio.sleep(5.0)  # the journal's disk

        await asyncio.gather(*(recorded_slowly() for _ in range(3)))
        return [time - sent[0] for time in sent]

    assert run_simulated(scene()) == pytest.approx([0.0, 5.0, 10.0])


def test_gate_holds_the_money_of_a_call_without_an_answer() -> None:
    async def scene() -> Budget:
        budget = Budget(10.0)
        gate = gate_with(ModelLimits(8, price=DOLLAR, max_output_tokens=1), budget)
        await call(gate, outcome=Outcome(OutcomeKind.TRANSPORT, "reset"))
        await call(gate, outcome=Outcome(OutcomeKind.RATE_LIMITED, "429"))
        return budget

    budget = run_simulated(scene())
    assert (budget.spent_usd, budget.held_usd, budget.reserved_usd) == (0.0, 1.0, 0.0)


def test_gate_stop_cancels_waiting_calls_and_lets_calls_in_flight_finish() -> None:
    async def scene() -> list[object]:
        gate = gate_with(ModelLimits(2))
        tasks = [asyncio.create_task(call(gate, seconds=10.0)) for _ in range(5)]
        await asyncio.sleep(1.0)
        gate.stop()
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    results = run_simulated(scene())
    assert [type(r) for r in results] == [type(None)] * 2 + [Interrupted] * 3
