"""Whole builds through bursts of 503 in simulated time: real loop, door and journal; models that count what is paid."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from plantain.journal import JournalReader
from plantain.journal.commit import Committer
from plantain.pipeline.method import Method
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import (
    OK,
    Criterion,
    CriterionResult,
    Observations,
    Outcome,
    OutcomeKind,
    Step,
    Usage,
)
from plantain.roles import EditedImage, EditRequest, EncodedImage, JudgeRequest, Reply, WriteRequest, failed
from plantain.rubrics import MED_BANANA
from plantain.runs.limits import budget_of
from simulated.clock import SimulatedLoop, run_simulated
from simulated.day import PRICES

BURST_S, EVERY_S, FIRST_S = 600.0, 3_000.0, 300.0
"""Ten minutes out of fifty: a fifth of the time nothing but 503."""

SECONDS = {Step.WRITE: (3.0, 24.0), Step.EDIT: (12.0, 90.0), Step.JUDGE: (3.0, 24.0)}
LIST = {
    "writer": {"input_per_m": 2.0, "output_per_m": 12.0},
    "editor": {"input_per_m": 2.0, "image_out_each": 0.134},
    "judge": {"input_per_m": 2.0, "output_per_m": 12.0},
}
"""As `day.PRICES`, in a recipe's words."""

T = TypeVar("T")


@dataclass
class Provider:
    """Answers and bills; in a burst it answers 503, or breaks the connection, half of which it bills.

    Attributes:
        broken: share of the requests in a burst whose connection breaks instead.
        first_s: when the first burst begins.
        paid: answers that arrived, by what they were for.
        bill_usd: what the provider wants.
    """

    rng: random.Random
    broken: float = 0.0
    first_s: float = FIRST_S
    paid: Counter[tuple[object, ...]] = field(default_factory=Counter)
    bill_usd: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)

    async def ask(self, step: Step, what: tuple[object, ...], answer: Callable[[], T]) -> Reply[T]:
        loop, rng = asyncio.get_running_loop(), self.rng
        usage = Usage(
            input_tokens=int(rng.uniform(1_500, 4_000)),
            output_tokens=0 if step is Step.EDIT else int(rng.uniform(400, 2_500)),
            images=1 if step is Step.EDIT else 0,
        )
        cost = PRICES[step].cost(usage) or 0.0
        if loop.time() >= self.first_s and (loop.time() - self.first_s) % EVERY_S < BURST_S:
            await asyncio.sleep(0.2)
            if rng.random() < self.broken:
                self.seen["broken"] += 1
                self.bill_usd += cost * (rng.random() < 0.5)
                return failed(Outcome(OutcomeKind.TRANSPORT, "the connection failed (ReadError)"))
            self.seen["503"] += 1
            return failed(Outcome(OutcomeKind.TRANSPORT, "503: overloaded", unbilled=True))
        await asyncio.sleep(rng.uniform(*SECONDS[step]))
        self.seen["answered"] += 1
        self.paid[(step.value, *what)] += 1
        self.bill_usd += cost
        return Reply(answer(), OK, usage)


@dataclass
class Writer:
    provider: Provider
    name: str = "sim/writer"
    fingerprint: str = "1"

    async def write(self, request: WriteRequest) -> Reply[str]:
        text = f"Add {request.finding.name}, seed {request.seed}."
        return await self.provider.ask(Step.WRITE, (request.task.id, request.round), lambda: text)


@dataclass
class Editor:
    provider: Provider
    picture: EncodedImage
    name: str = "sim/editor"
    fingerprint: str = "1"

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        return await self.provider.ask(Step.EDIT, (request.seed,), lambda: EditedImage(self.picture))


@dataclass
class Judge:
    provider: Provider
    name: str = "sim/judge"
    fingerprint: str = "1"

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        good = request.seed % 5 < 3
        report = Observations(
            dict.fromkeys(Criterion, CriterionResult(good)),
            dict.fromkeys(MED_BANANA.facts, good),
            good,
            "by seed",
        )
        return await self.provider.ask(Step.JUDGE, (request.seed,), lambda: report)


@dataclass(frozen=True)
class Burst:
    """What came of a build through bursts.

    Attributes:
        states: tasks by how they ended; `starts` how often a process was begun.
        paid_again: answers that were paid for a second time.
        spent_usd, held_usd: by the journal; `bill_usd` by the provider.
        hours: simulated.
    """

    states: dict[str, int]
    starts: int
    paid_again: int
    spent_usd: float
    held_usd: float
    bill_usd: float
    hours: float
    seen: dict[str, int]


def build_through_bursts(
    catalogue: Path,
    run: Path,
    picture: EncodedImage,
    *,
    findings: int,
    concurrency: int = 4,
    broken: float = 0.0,
    outage_hours: float = 12.0,
    first_s: float = FIRST_S,
    seed: int = 0,
) -> Burst:
    """Builds until nothing is pending, beginning anew whenever the run halts.

    Args:
        catalogue: of fundus photographs.
        run: a folder for the run.
        picture: what every edit gives back, in normal form.
        findings: how many of them each image gets.
        concurrency: calls under way.
        broken, first_s: see `Provider`.
        outage_hours: as in a recipe: less than a burst halts the run in each.
        seed: of everything.
    """
    provider = Provider(random.Random(seed), broken, first_s)
    recipe = Recipe.model_validate(
        {
            "name": "bursts",
            "seed": seed,
            "data": {
                "catalogue": catalogue,
                "findings": ["AMD", "Cataract", "Diabetes", "Glaucoma", "Hypertension", "Myopia"][:findings],
                "directions": ["add"],
            },
            "models": {"writer": "sim/writer", "editor": "sim/editor", "judge": "sim/judge"},
            "loop": {"max_rounds": 2},
            "limits": {"concurrency": concurrency, "budget_usd": 10_000.0, "outage_hours": outage_hours},
            "providers": {"sim": {"prices": LIST}},
        }
    )
    method = Method(
        Writer(provider), Editor(provider, picture), (Judge(provider),), MED_BANANA, "all-pass", 0.7, 2, seed
    )

    async def until_done() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        for starts in range(1, 200):
            summary = await run_build(recipe, run, method=method)
            if summary.stopped is None:
                return starts, loop.time() / 3600.0
            await asyncio.sleep(120.0)  # somebody looks after it, and begins it again
        raise RuntimeError("the run never ended")

    with clock_beside_the_journal():
        starts, hours = run_simulated(until_done())
    with JournalReader.open(run) as reader:
        return Burst(
            {state.value: n for state, n in reader.counts().items() if n},
            starts,
            sum(n - 1 for n in provider.paid.values()),
            reader.spent_usd(),
            budget_of(recipe.limits, reader).held_usd,
            provider.bill_usd,
            hours,
            dict(provider.seen),
        )


@contextmanager
def clock_beside_the_journal() -> Iterator[None]:
    """The journal writes in a thread: the simulated clock stands still until it has."""
    submit = Committer.submit

    async def waited(self: Committer, operation: Callable[..., T]) -> T:
        loop = asyncio.get_running_loop()
        waiting: Awaitable[T] = submit(self, operation)
        if not isinstance(loop, SimulatedLoop):
            return await waiting
        with loop.standing_still():
            return await waiting

    with patch.object(Committer, "submit", waited):
        yield
