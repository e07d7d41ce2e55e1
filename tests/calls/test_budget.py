from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from budget_driver import MAX_OUTPUT, MODELS, PRICES, Watched, budget_recipe

from plantain.calls import AdmissionController, Budget, LimitReached, ModelLimits
from plantain.calls.budget import StepCosts, cost_of, demand
from plantain.journal import JournalReader
from plantain.records import FREE, OK, Outcome, OutcomeKind, Price, Step, Usage
from plantain.runs.limits import budget_of
from simulated.clock import run_simulated

SEED = 20261121


def test_price_counts_cached_image_and_thinking_tokens_apart() -> None:
    price = Price(input_per_m=2.0, output_per_m=10.0, cached_per_m=0.5, image_output_per_m=60.0)
    usage = Usage(
        input_tokens=1_000,
        cached_tokens=400,
        output_tokens=1_300,
        output_image_tokens=1_120,
        thinking_tokens=100,
    )
    # read 600 at 2 and 400 at 0.5; written 180, of which 100 thinking, at 10 and 1,120 at 60, all per million
    assert price.cost(usage) == pytest.approx((600 * 2 + 400 * 0.5 + 180 * 10 + 1120 * 60) / 1e6)


def test_price_of_an_image_replaces_its_tokens() -> None:
    price = Price(input_per_m=0.3, output_per_m=2.5, image_out_each=0.039)
    usage = Usage(input_tokens=1_000, output_tokens=1_290, output_image_tokens=1_290, images=1)
    assert price.cost(usage) == pytest.approx(0.0003 + 0.039)


@pytest.mark.parametrize(
    ("price", "outcome", "cost"),
    [
        (None, OK, None),
        (FREE, Outcome(OutcomeKind.TRANSPORT), 0.0),
        (PRICES["m/judge"], Outcome(OutcomeKind.RATE_LIMITED), 0.0),
        (PRICES["m/judge"], Outcome(OutcomeKind.REFUSED), 0.0),
        (PRICES["m/judge"], Outcome(OutcomeKind.TRANSPORT), None),
        (PRICES["m/judge"], Outcome(OutcomeKind.TRANSPORT, unbilled=True), 0.0),
        (PRICES["m/judge"], Outcome(OutcomeKind.MALFORMED, unbilled=True), 0.0),
        (PRICES["m/judge"], Outcome(OutcomeKind.TRANSPORT, timed_out=True), None),
        (PRICES["m/judge"], OK, None),
    ],
)
def test_cost_without_usage(price: Price | None, outcome: Outcome, cost: float | None) -> None:
    assert cost_of(price, outcome, Usage()) == cost


@pytest.mark.parametrize("step", list(Step))
def test_demand_is_never_less_than_what_an_answer_within_its_limits_costs(step: Step) -> None:
    rng = random.Random(SEED)
    most = demand(step, MAX_OUTPUT)
    for _ in range(500):
        price = Price(
            rng.uniform(0, 5),
            rng.uniform(0, 20),
            rng.choice((None, rng.uniform(0, 1))),
            rng.choice((None, rng.uniform(0, 9))),
            rng.choice((None, rng.uniform(0, 100))),
            rng.choice((None, rng.uniform(0, 0.2))),
        )
        read = rng.randint(0, most.input_tokens)
        image_tokens = rng.randint(0, most.image_tokens)
        usage = Usage(
            input_tokens=read,
            output_tokens=rng.randint(0, most.output_tokens) + image_tokens,
            cached_tokens=rng.randint(0, read),
            input_image_tokens=rng.randint(0, read),
            output_image_tokens=image_tokens,
            images=most.images,
        )
        if price.image_out_each is not None:
            usage = Usage(
                input_tokens=read, output_tokens=rng.randint(0, most.output_tokens), images=most.images
            )
        cost = price.cost(usage)
        assert cost is None or cost <= most.most(price) + 1e-12


def test_ten_thousand_concurrent_calls_never_commit_more_than_the_budget() -> None:
    print("seed", SEED)

    async def scene() -> tuple[Watched, list[object]]:
        rng = random.Random(SEED)
        budget = Watched(60.0)
        prices = {
            model: Price(
                rng.uniform(0.1, 3),
                rng.uniform(1, 15),
                image_out_each=rng.choice((None, rng.uniform(0.01, 0.2))),
            )
            for model in MODELS.values()
        }
        gate = AdmissionController(
            lambda m: ModelLimits(
                rng.choice((20, 200, 2_000)), price=prices[m], max_output_tokens=MAX_OUTPUT
            ),
            budget,
        )

        async def one(step: Step) -> None:
            async with gate.admit(MODELS[step], step) as ticket:
                ticket.started = rng.random() < 0.99
                if not ticket.started:
                    return
                await asyncio.sleep(rng.expovariate(1.0))
                most = demand(step, MAX_OUTPUT)
                usage = Usage(
                    input_tokens=rng.randint(0, most.input_tokens // 4),
                    output_tokens=rng.randint(0, most.output_tokens // 2),
                    images=most.images,
                )
                kind = rng.choices(list(OutcomeKind), [80, 2, 3, 3, 3, 3, 3, 1])[0]
                if kind is OutcomeKind.CANCELLED:
                    return  # nobody knows what became of it
                unknown = kind in (OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED)
                ticket.settle(Outcome(kind), Usage() if unknown else usage)

        ended = await asyncio.gather(
            *(one(rng.choice((Step.WRITE, Step.EDIT, Step.JUDGE))) for _ in range(10_000)),
            return_exceptions=True,
        )
        return budget, list(ended)

    budget, ended = run_simulated(scene())
    assert {type(e) for e in ended if e is not None} <= {LimitReached}
    assert (budget.outstanding, budget.reserved_usd, budget.overrun_usd) == (0, 0.0, 0.0)
    assert 0.9 * 60.0 <= budget.committed_usd <= 60.0 + 1e-6  # the budget was used, not just kept


@pytest.mark.slow
def test_budget_holds_through_kills(tmp_path: Path) -> None:
    """Four thousand calls on a real journal, killed seven times: bills never exceed what the journal admits to."""
    print("seed", SEED)
    rng = random.Random(SEED)
    cap_usd, tasks, kills = 360.0, 2_000, 7
    for attempt in range(kills + 1):
        enough = billed(tmp_path)[0] + rng.randint(200, 600) if attempt < kills else None
        run_driver(tmp_path, SEED + attempt, cap_usd, tasks, kill_at=enough)
        with JournalReader.open(tmp_path / "run") as reader:
            budget = budget_of(budget_recipe(cap_usd).limits, reader)
            open_calls, made = len(reader.open_calls()), budget.calls
        assert billed(tmp_path)[1] <= budget.committed_usd <= 1.01 * cap_usd, f"kill {attempt}"
        assert billed(tmp_path)[1] <= cap_usd, (
            f"kill {attempt}"
        )  # what is held is an estimate; the bill is not
    assert open_calls >= kills and made >= 4_000
    print(
        f"{made} calls, {open_calls} left open by kills, committed {budget.committed_usd:.2f} of {cap_usd:.0f}"
    )


def billed(folder: Path) -> tuple[int, float]:
    """How many bills the provider wrote, and their sum."""
    path = folder / "bills"
    bills = [float(line) for line in path.read_text().split()] if path.exists() else []
    return len(bills), sum(bills)


def run_driver(folder: Path, seed: int, cap_usd: float, tasks: int, *, kill_at: int | None) -> None:
    """Runs the driver to its end, or until so many bills are written."""
    driver = Path(__file__).with_name("budget_driver.py")
    arguments = [str(folder), str(seed), str(cap_usd), str(tasks)]
    with (folder / "out").open("w") as out:
        process = subprocess.Popen([sys.executable, str(driver), *arguments], stdout=out, stderr=out)
    while kill_at is not None and billed(folder)[0] < kill_at:
        assert process.poll() is None, (folder / "out").read_text()
        time.sleep(0.005)
    if kill_at is not None:
        process.kill()
    assert process.wait() == (0 if kill_at is None else -9), (folder / "out").read_text()


def test_reservation_of_an_earlier_process_is_taken_over_and_settled_once() -> None:
    costs = StepCosts(lost=1, lost_most=2.0, in_jobs_usd=3.0)
    budget = Budget(10.0, 2.0, {("m/j", Step.JUDGE): costs})
    assert (budget.held_usd, budget.reserved_usd, budget.committed_usd) == (2.0, 3.0, 7.0)
    costs.bound, costs.in_jobs_usd = 3.0, 0.0
    costs.in_flight += 1  # its answer is waited for again
    assert budget.committed_usd == 7.0
    budget.settle(costs, 1.0)
    assert (budget.spent_usd, budget.held_usd, budget.committed_usd) == (3.0, 2.0, 5.0)


def test_call_of_unknown_cost_holds_what_nineteen_of_twenty_such_calls_cost() -> None:
    costs = StepCosts()
    costs.bound, costs.in_flight = 0.30, 3
    budget = Budget(10.0, 0.0, {("m/j", Step.JUDGE): costs})
    budget.settle(costs, None)
    assert budget.held_usd == 0.30  # nothing is known yet
    for cents in range(1, 21):
        costs.learn(cents / 100)
    assert budget.held_usd == 0.19  # the 19th of 20 sorted costs
    budget.settle(costs, None)
    assert budget.held_usd == pytest.approx(2 * 0.19) and budget.lost == 2
    assert budget.reserved_usd == 0.30  # the worst case only for what is in flight


def test_bill_above_our_bound_raises_what_is_set_aside_also_for_calls_in_flight() -> None:
    costs = StepCosts()
    costs.bound, costs.in_flight = 0.10, 4
    budget = Budget(5.0, 0.0, {("m/j", Step.JUDGE): costs})
    assert budget.reserved_usd == pytest.approx(0.40)
    budget.settle(costs, 0.50)
    assert budget.overrun_usd == pytest.approx(0.40)
    assert budget.reserved_usd == pytest.approx(3 * 1.25 * 0.50)
