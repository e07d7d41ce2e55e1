"""A bad day at a provider, in simulated time: outages, cut connections, storms of refusals; and its own bill of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast
from unittest.mock import patch

from plantain.calls import (
    AdmissionController,
    Budget,
    CallSpec,
    LimitReached,
    ModelClient,
    ModelLimits,
    RunHalted,
    TaskCalls,
    policy,
)
from plantain.journal import CallResult, Journal, StartedCall
from plantain.records import OK, Outcome, OutcomeKind, Price, Step, Usage
from plantain.roles import Reply, failed

DAY_S = 86_400.0
OUTAGES = ((3 * 3600.0, 1200.0), (9 * 3600.0, 1200.0), (17 * 3600.0, 1200.0))
"""Three of twenty minutes: every request is answered with 503, in the second one with nothing until a timeout."""

STORMS = ((1 * 3600.0, 600.0), (13 * 3600.0, 900.0))
"""Nine in ten requests are refused by a limit, half of them without saying until when."""

CUT = 0.05
"""Connections that break; in half of them the model has worked, and it is billed."""

PRICES: Mapping[Step, Price] = {
    Step.WRITE: Price(input_per_m=2.0, output_per_m=12.0),
    Step.EDIT: Price(input_per_m=2.0, image_out_each=0.134),
    Step.JUDGE: Price(input_per_m=2.0, output_per_m=12.0),
}


@dataclass
class Provider:
    """Answers calls and bills those that its models worked on; it knows nothing of budgets."""

    rng: random.Random
    overbilling: float = 1.0
    bill_usd: float = 0.0
    answered_usd: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)

    async def ask(self, step: Step) -> Reply[str]:
        now, rng = asyncio.get_running_loop().time(), self.rng
        if _within(now, OUTAGES):
            self.seen["outage"] += 1
            if _within(now, OUTAGES[1:2]):
                await asyncio.sleep(1e6)
            await asyncio.sleep(0.2)
            return failed(Outcome(OutcomeKind.TRANSPORT, "503: overloaded", unbilled=True))
        if _within(now, STORMS) and rng.random() < 0.9:
            self.seen["refused"] += 1
            wait = rng.choice((None, rng.uniform(1.0, 30.0)))
            return failed(Outcome(OutcomeKind.RATE_LIMITED, "429", retry_after=wait, unbilled=True))
        await asyncio.sleep(rng.uniform(12.0, 90.0) if step is Step.EDIT else rng.uniform(3.0, 24.0))
        usage = Usage(
            input_tokens=int(rng.uniform(1_500, 4_000)),
            output_tokens=int(self.overbilling * (0 if step is Step.EDIT else rng.uniform(400, 2_500))),
            images=1 if step is Step.EDIT else 0,
        )
        cost = PRICES[step].cost(usage) or 0.0
        if rng.random() < CUT:
            self.seen["cut"] += 1
            self.bill_usd += cost * (rng.random() < 0.5)
            return failed(Outcome(OutcomeKind.TRANSPORT, "the connection failed (ReadError)"))
        self.seen["answered"] += 1
        self.bill_usd += cost
        self.answered_usd += cost
        return Reply("fine", OK, usage)


class Unwritten:
    """A journal that keeps nothing: its thread would not live in simulated time."""

    def __init__(self) -> None:
        self.calls = 0

    async def start_call(self, call: StartedCall) -> int:
        self.calls += 1
        return self.calls

    async def settle_call(self, result: CallResult) -> None:
        return


@dataclass(frozen=True)
class Day:
    """The result of a simulated day.

    Attributes:
        bill_usd: the provider's bill; `answered_usd` of it for answers that arrived.
        stopped: why no more calls were made: "budget" or "day", or a fault, which a user would have to correct.
        stopped_tasks: tasks that ended for another reason than an answer.
    """

    budget_usd: float
    bill_usd: float
    answered_usd: float
    stopped: str
    stopped_tasks: int
    seen: Mapping[str, int]


async def live_through(
    budget_usd: float, seed: int, *, concurrency: int = 32, overbilling: float = 1.0
) -> Day:
    """Workers carry tasks of a write, an edit and a judgement through the day, until the money or the day ends."""
    provider = Provider(random.Random(seed), overbilling)
    budget = Budget(budget_usd)

    def limits(model: str) -> ModelLimits:
        return ModelLimits(
            concurrency, price=PRICES[Step(model.partition("/")[2])], deadline_s=180.0, outage_s=12 * 3600.0
        )

    waits = SimpleNamespace(Random=lambda: random.Random(seed))  # pauses of outages, the same every time
    with patch.object(policy, "random", waits):
        return await _through(budget_usd, budget, provider, limits, seed, concurrency)


async def _through(
    budget_usd: float,
    budget: Budget,
    provider: Provider,
    limits: Callable[[str], ModelLimits],
    seed: int,
    concurrency: int,
) -> Day:
    controller = AdmissionController(limits, budget)
    client = ModelClient(cast(Journal, Unwritten()), controller, jitter=random.Random(seed))
    loop = asyncio.get_running_loop()
    stopped, stopped_tasks, task = "day", 0, 0

    async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
        return replace(draft, answer=reply.value or "")

    async def worker() -> None:
        nonlocal stopped, stopped_tasks, task
        while loop.time() < DAY_S and not client.stop_requested:
            task += 1
            calls = TaskCalls(client, f"task-{task}", 0, [])
            try:
                for step in PRICES:

                    async def send(step: Step = step) -> Reply[str]:
                        return await provider.ask(step)

                    answer = await calls.answer(CallSpec(step, 1, 0, f"p/{step}", {}, send, settle))
                    if not answer.outcome.ok:
                        stopped_tasks += 1
                        break
            except LimitReached:
                stopped = "budget"
                return
            except RunHalted as halted:
                stopped = str(halted)
                client.request_stop()
                return

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return Day(
        budget_usd,
        provider.bill_usd,
        provider.answered_usd,
        stopped,
        stopped_tasks,
        dict(provider.seen),
    )


def _within(now: float, spans: tuple[tuple[float, float], ...]) -> bool:
    return any(begin <= now < begin + length for begin, length in spans)
