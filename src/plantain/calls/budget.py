"""The budget: the most that a call can cost is reserved while it is in flight, and settled by its outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plantain.journal.account import REMEMBERED, assumed_usd
from plantain.records import Outcome, Price, Step, Usage

TOLERANCE_USD = 1e-9
"""Sums of many small floats are compared with the cap to within this."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that one call may consume, its adapter's second request after a malformed answer included."""

    input_tokens: int
    output_tokens: int
    image_tokens: int = 0
    images: int = 0

    def most(self, price: Price) -> float:
        """Return the dollars that a call can come to at this price: nothing cached, every limit reached."""
        text_in = price.input_per_m
        image_in = price.image_input_per_m or 0.0
        dearest = max(text_in, image_in, price.cached_per_m or 0.0, price.cache_write_per_m or 0.0)
        read = self.input_tokens * dearest / 1e6
        written = self.output_tokens * price.output_per_m / 1e6
        if price.image_out_each is not None:
            return read + written + self.images * price.image_out_each
        image_rate = price.output_per_m if price.image_output_per_m is None else price.image_output_per_m
        return read + written + self.image_tokens * image_rate / 1e6


INPUT_TOKENS = {Step.WRITE: 24_000, Step.EDIT: 8_000, Step.LOOK: 12_000, Step.JUDGE: 16_000}
"""Three 1024x1024 images (at most 2,600 tokens each with the providers known to us), the prompt, and for a writer the
history of twenty rounds."""

IMAGE_TOKENS = 4_096
"""Tokens of one written image, above the largest size of most models (2,520 for 4K), for those that list no sizes."""


def demand(step: Step, max_output_tokens: int, image_tokens: int = IMAGE_TOKENS) -> Demand:
    """Return the most that a call of this step consumes when an answer is cut at `max_output_tokens`.

    `image_tokens` are the most that one image of the model is known to come to at the requested size and quality.
    Writers and judges are asked a second time after a malformed answer, with twice the token limit if it was cut.
    """
    if step is Step.EDIT:
        return Demand(INPUT_TOKENS[step], max_output_tokens, max(image_tokens, IMAGE_TOKENS), images=1)
    return Demand(2 * INPUT_TOKENS[step], 3 * max_output_tokens)


MARGIN = 1.25
"""Factor of the reservation after a call was billed above our upper bound, as a multiple of that bill."""


class StepCosts:
    """Costs of one step's calls to one model: the known ones, and an estimate of the others.

    Attributes:
        bound: dollars that a call can come to by our own estimate; set by the gate, which knows its price.
        dearest: the highest bill so far.
        in_flight: calls whose answers are still to come.
        lost: calls that may have been billed and whose cost never became known; `lost_most` is the most that they can
            have cost.
        in_jobs_usd: set aside for calls of earlier processes that batch jobs still answer.
    """

    def __init__(
        self, costs: Iterable[float] = (), *, lost: int = 0, lost_most: float = 0.0, in_jobs_usd: float = 0.0
    ) -> None:
        self.bound = self.dearest = 0.0
        self.in_flight = 0
        self.lost = lost
        self.lost_most = lost_most
        self.in_jobs_usd = in_jobs_usd
        self._latest: deque[float] = deque(maxlen=REMEMBERED)
        for cost in costs:
            self.learn(cost)

    def learn(self, cost_usd: float) -> None:
        """Note a call's cost. Calls that cost nothing say nothing about others."""
        if cost_usd > 0.0:
            self.dearest = max(self.dearest, cost_usd)
            self._latest.append(cost_usd)

    @property
    def most(self) -> float:
        """Dollars to set aside for a call in flight: our own bound, and more where a bill was above it."""
        return self.bound if self.dearest <= self.bound + TOLERANCE_USD else MARGIN * self.dearest

    @property
    def reserved_usd(self) -> float:
        return self.in_flight * self.most + self.in_jobs_usd

    @property
    def held_usd(self) -> float:
        """Return the assumed cost of the lost calls."""
        return assumed_usd(self._latest, self.lost, self.lost_most)


class Budget:
    """Budget of a run: its cap, its spending and its reservations. Belongs to one event loop.

    Whenever a call is sent, spent + held + reserved <= budget. `reserved` is the most that calls in flight can cost.
    `held` is the assumed cost of calls of unknown cost; it grows up to their reservation as dearer calls of their kind
    become known. A provider that bills more than our upper bound can exceed the budget later (`overrun_usd`). From the
    first such bill on, the reservation of every call of its step is larger, also of those in flight, so that a run
    exceeds its budget at most by the calls in flight at that moment.

    Args:
        budget_usd: the cap; None for none.
        spent_usd: what settled calls cost, of this and earlier processes.
        costs: what earlier processes learned of each model and step.
        max_calls: calls that the run may make in all; None for no cap.
        calls: calls made by earlier processes.
    """

    def __init__(
        self,
        budget_usd: float | None,
        spent_usd: float = 0.0,
        costs: Mapping[tuple[str, Step], StepCosts] | None = None,
        *,
        max_calls: int | None = None,
        calls: int = 0,
    ) -> None:
        self.max_calls = max_calls
        self.calls = calls
        self.budget_usd = budget_usd
        self.spent_usd = spent_usd
        self.overrun_usd = 0.0
        self._costs = dict(costs or {})

    def costs(self, model: str, step: Step) -> StepCosts:
        """Return the costs of a model's calls of one step."""
        return self._costs.setdefault((model, step), StepCosts())

    @property
    def outstanding(self) -> int:
        """Number of calls in flight, whose reservations may be released in part."""
        return sum(costs.in_flight for costs in self._costs.values())

    @property
    def reserved_usd(self) -> float:
        return sum(costs.reserved_usd for costs in self._costs.values())

    @property
    def held_usd(self) -> float:
        return sum(costs.held_usd for costs in self._costs.values())

    @property
    def lost(self) -> int:
        """Calls of unknown cost."""
        return sum(costs.lost for costs in self._costs.values())

    @property
    def committed_usd(self) -> float:
        return self.spent_usd + self.held_usd + self.reserved_usd

    @property
    def calls_left(self) -> bool:
        return self.max_calls is None or self.calls < self.max_calls

    def fits(self, usd: float) -> bool:
        """Return True if this much can be set aside now."""
        return self.budget_usd is None or self.committed_usd + usd <= self.budget_usd + TOLERANCE_USD

    def settle(self, costs: StepCosts, cost_usd: float | None) -> None:
        """Note the end of a call in flight; one of unknown cost counts with what such calls usually cost."""
        costs.in_flight -= 1
        if cost_usd is None:
            costs.lost += 1
            costs.lost_most += costs.most
            return
        self.spent_usd += cost_usd
        self.overrun_usd += max(0.0, cost_usd - costs.most)
        costs.learn(cost_usd)


def cost_of(price: Price | None, outcome: Outcome, usage: Usage) -> float | None:
    """Return the dollars that a call cost; None where unknown (no price, or an answer that never arrived)."""
    if price is None:
        return None
    if price == Price():
        return 0.0
    known = price.cost(usage)
    if known is None and outcome.costs_nothing and not usage.asks:
        return 0.0
    return None if known is None else max(0.0, known)  # no provider pays us, whatever a model reports
