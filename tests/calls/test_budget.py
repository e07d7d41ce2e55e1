from __future__ import annotations

import asyncio
import random

import pytest

from plantain.calls import AdmissionController, Budget, LimitReached, ModelLimits
from plantain.calls.limits import IMAGE_TOKENS, INPUT_TOKENS, TOLERANCE_USD, StepCosts, cost_of, most_of
from plantain.records import FREE, OK, Outcome, OutcomeKind, Price, Step, Usage
from simulated.clock import run_simulated

SEED = 20261121
MAX_OUTPUT = 2_000
MODELS = {Step.WRITE: "m/writer", Step.EDIT: "m/editor", Step.JUDGE: "m/judge"}
JUDGE = Price(input_per_m=2.0, output_per_m=12.0)
READ = {step: n if step is Step.EDIT else 2 * n for step, n in INPUT_TOKENS.items()}
WRITTEN = {step: MAX_OUTPUT if step is Step.EDIT else 3 * MAX_OUTPUT for step in Step}
"""Most tokens of a call: a writer or judge is asked twice, the second time with twice the limit."""


class Watched(Budget):
    """Fails as soon as the amount paid and the possible cost of calls in flight exceed the budget."""

    def settle(self, costs: StepCosts, cost_usd: float | None) -> None:
        super().settle(costs, cost_usd)
        assert self.budget_usd is not None
        paid = self.spent_usd + self.reserved_usd
        assert paid <= self.budget_usd + 10 * TOLERANCE_USD, (paid, self.budget_usd)


@pytest.mark.parametrize(
    ("price", "outcome", "cost"),
    [
        (None, OK, None),
        (FREE, Outcome(OutcomeKind.TRANSPORT), 0.0),
        (JUDGE, Outcome(OutcomeKind.RATE_LIMITED), 0.0),
        (JUDGE, Outcome(OutcomeKind.REFUSED), 0.0),
        (JUDGE, Outcome(OutcomeKind.TRANSPORT), None),
        (JUDGE, Outcome(OutcomeKind.TRANSPORT, unbilled=True), 0.0),
        (JUDGE, Outcome(OutcomeKind.MALFORMED, unbilled=True), 0.0),
        (JUDGE, Outcome(OutcomeKind.TRANSPORT, timed_out=True), None),
        (JUDGE, OK, None),
    ],
)
def test_cost_without_usage(price: Price | None, outcome: Outcome, cost: float | None) -> None:
    assert cost_of(price, outcome, Usage()) == cost


@pytest.mark.parametrize("step", list(Step))
def test_reservation_is_at_least_the_cost_of_an_answer_within_its_limits(step: Step) -> None:
    rng = random.Random(SEED)
    images = int(step is Step.EDIT)
    for _ in range(500):
        price = Price(
            rng.uniform(0, 5),
            rng.uniform(0, 20),
            rng.choice((None, rng.uniform(0, 1))),
            rng.choice((None, rng.uniform(0, 9))),
            rng.choice((None, rng.uniform(0, 100))),
            rng.choice((None, rng.uniform(0, 0.2))),
        )
        read = rng.randint(0, READ[step])
        image_tokens = rng.randint(0, images * IMAGE_TOKENS)
        usage = Usage(
            input_tokens=read,
            output_tokens=rng.randint(0, WRITTEN[step]) + image_tokens,
            cached_tokens=rng.randint(0, read),
            input_image_tokens=rng.randint(0, read),
            output_image_tokens=image_tokens,
            images=images,
        )
        if price.image_out_each is not None:
            usage = Usage(input_tokens=read, output_tokens=rng.randint(0, WRITTEN[step]), images=images)
        cost = price.cost(usage)
        assert cost is None or cost <= most_of(price, step, MAX_OUTPUT) + 1e-12


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
                usage = Usage(
                    input_tokens=rng.randint(0, READ[step] // 4),
                    output_tokens=rng.randint(0, WRITTEN[step] // 2),
                    images=int(step is Step.EDIT),
                )
                kind = rng.choices(list(OutcomeKind), [80, 2, 3, 3, 3, 3, 3, 1])[0]
                if kind is OutcomeKind.CANCELLED:
                    return  # its cost is unknown
                unknown = kind in (OutcomeKind.TRANSPORT, OutcomeKind.RATE_LIMITED)
                ticket.settle(Outcome(kind), Usage() if unknown else usage)

        ended = await asyncio.gather(
            *(one(rng.choice((Step.WRITE, Step.EDIT, Step.JUDGE))) for _ in range(10_000)),
            return_exceptions=True,
        )
        return budget, list(ended)

    budget, ended = run_simulated(scene())
    assert {type(e) for e in ended if e is not None} <= {LimitReached}
    assert (budget.outstanding, budget.reserved_usd) == (0, 0.0)
    assert 0.9 * 60.0 <= budget.committed_usd <= 60.0 + 1e-6  # the budget was used, not just kept


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
    assert budget.reserved_usd == 0.30  # the worst case only for calls in flight
