"""Makes random calls within a budget until it is killed, the budget is spent, or nothing is left to do.

Started as its own process: python budget_driver.py FOLDER SEED BUDGET TASKS. A provider that bills at random writes
every bill into FOLDER/bills, in one write each, before its answer is handed over: what it says survives a SIGKILL.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from plantain.calls import (
    AdmissionController,
    Budget,
    CallSpec,
    Interrupted,
    LimitReached,
    ModelClient,
    ModelLimits,
    TaskCalls,
)
from plantain.calls.budget import TOLERANCE_USD, StepCosts, demand
from plantain.journal import CallResult, Journal, RunHeader
from plantain.pipeline.recipe import Recipe
from plantain.records import Direction, EditTask, Outcome, OutcomeKind, Price, Step, Usage
from plantain.roles import Reply, failed
from plantain.runs.limits import budget_of, costs_of

PRICES = {
    "m/writer": Price(input_per_m=1.5, output_per_m=9.0, cached_per_m=0.2),
    "m/editor": Price(input_per_m=0.5, output_per_m=3.0, image_out_each=0.039),
    "m/judge": Price(input_per_m=2.0, output_per_m=12.0),
}
MODELS = {Step.WRITE: "m/writer", Step.EDIT: "m/editor", Step.JUDGE: "m/judge"}
MAX_OUTPUT = 2_000


def budget_recipe(cap_usd: float) -> Recipe:
    return Recipe.model_validate(
        {"name": "money", "data": {"catalogue": "none"}, "limits": {"budget_usd": cap_usd}}
    )


class Watched(Budget):
    """Fails at the first instant at which what was paid and what calls in flight can cost exceed the budget."""

    def settle(self, costs: StepCosts, cost_usd: float | None) -> None:
        super().settle(costs, cost_usd)
        self.check()

    def check(self) -> None:
        assert self.budget_usd is not None
        paid = self.spent_usd + self.reserved_usd
        assert paid <= self.budget_usd + 10 * TOLERANCE_USD, (paid, self.budget_usd)


class Impatient(ModelClient):
    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Biller:
    """A provider: random usage, random faults, and a bill for each call that it worked on."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._file = os.open(folder / "bills", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._rng = rng

    async def answer(self, step: Step) -> Reply[str]:
        rng = self._rng
        await asyncio.sleep(rng.choice((0.0, 0.0, 0.001, 0.02)))
        most = demand(step, MAX_OUTPUT)
        usage = Usage(
            input_tokens=rng.randint(1, most.input_tokens),
            output_tokens=rng.randint(0, most.output_tokens),
            images=most.images,
        )
        fault = rng.random()
        if fault < 0.03:
            return failed(Outcome(OutcomeKind.REFUSED, "blocked before generation"))
        cost = PRICES[MODELS[step]].cost(usage)
        os.write(self._file, f"{cost!r}\n".encode())
        await asyncio.sleep(0)
        if fault < 0.06:
            return failed(Outcome(OutcomeKind.TRANSPORT, "reset after the model had worked"))
        if fault < 0.09:
            return failed(Outcome(OutcomeKind.MALFORMED, "no JSON"), usage)
        return Reply("fine", usage=usage)


def tasks(count: int) -> Iterator[EditTask]:
    for i in range(count):
        yield EditTask(f"{i:020x}", "image", "fundus", "AMD", Direction.ADD)


async def walk(calls: TaskCalls, biller: Biller) -> None:
    async def settle(reply: Reply[str], draft: CallResult) -> CallResult:
        return replace(draft, answer=reply.value or "")

    for step in MODELS:

        async def send(step: Step = step) -> Reply[str]:
            return await biller.answer(step)

        await calls.answer(CallSpec(step, 1, 0, MODELS[step], {"any": 1}, send, settle))


async def main(folder: Path, seed: int, cap_usd: float, count: int) -> int:
    run = folder / "run"
    if (run / "journal.sqlite").exists():
        journal = Journal.open(run)
    else:
        journal = Journal.create(run, RunHeader("money", "money", 1, {}, "0"))
        await journal.add_tasks(tasks(count))
    print("ready", flush=True)
    try:
        budget = budget_of(budget_recipe(cap_usd).limits, journal.reader)
        watched = Watched(cap_usd, budget.spent_usd, costs_of(journal.reader))
        gate = AdmissionController(
            lambda model: ModelLimits(400, price=PRICES[model], max_output_tokens=MAX_OUTPUT), watched
        )
        client = Impatient(journal, gate)
        biller = Biller(folder, random.Random(seed))
        walks = (
            walk(TaskCalls(client, row.task.id, 0, journal.reader.calls(row.task.id, 0)), biller)
            for row in list(journal.reader.tasks())
        )
        ended = await asyncio.gather(*walks, return_exceptions=True)
    finally:
        await journal.close()
    reached = [e for e in ended if e is not None]
    assert all(isinstance(e, (LimitReached, Interrupted)) for e in reached), reached[:3]
    print("limit" if reached else "done", client.made, client.replayed, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))))
