"""Money: the most that a call can cost is set aside before it is sent, and settled by what it consumed."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.records import Outcome, OutcomeKind, Price, Step, Usage

TOLERANCE_USD = 1e-9
"""Sums of many small floats are compared with the cap to within this."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that one call may consume, its adapter's second question after a malformed answer included."""

    input_tokens: int
    output_tokens: int
    image_tokens: int = 0
    images: int = 0

    def most(self, price: Price) -> float:
        """Dollars that a call can come to at this price: nothing cached, every limit reached."""
        text_in = price.input_per_m
        image_in = price.image_input_per_m or 0.0
        read = self.input_tokens * max(text_in, image_in, price.cached_per_m or 0.0) / 1e6
        written = self.output_tokens * price.output_per_m / 1e6
        if price.image_out_each is not None:
            return read + written + self.images * price.image_out_each
        image_rate = price.output_per_m if price.image_output_per_m is None else price.image_output_per_m
        return read + written + self.image_tokens * image_rate / 1e6


INPUT_TOKENS = {Step.WRITE: 24_000, Step.EDIT: 8_000, Step.JUDGE: 16_000}
"""Three 1024x1024 images (at most 2,600 tokens each with the providers known to us), the prompt, and for a writer the
history of twenty rounds."""

IMAGE_TOKENS = 4_096
"""Tokens of one image written, above the largest size that a provider lists (2,520 for 4K)."""


def demand(step: Step, max_output_tokens: int) -> Demand:
    """The most that a call of this step consumes when an answer is cut at `max_output_tokens`.

    Writers and judges may ask a second time when an answer is malformed, with twice the room when it was cut.
    """
    if step is Step.EDIT:
        return Demand(INPUT_TOKENS[step], max_output_tokens, IMAGE_TOKENS, images=1)
    return Demand(2 * INPUT_TOKENS[step], 3 * max_output_tokens)


class Budget:
    """What a run may spend, has spent, and has set aside. Belongs to one event loop.

    At every instant spent + held + reserved <= budget, as long as no call costs more than was set aside for it;
    `overrun_usd` sums by how much some did, and from then on that much more is set aside for such calls (`calls.lane`).

    Args:
        budget_usd: the cap; None for none.
        spent_usd: what settled calls cost, of this and earlier processes.
        held_usd: set aside for calls whose cost never became known: open when a process was killed, or answered by a
            broken connection. It counts until someone has looked at the provider's bill.
        max_calls: calls that the run may make in all; None for no cap.
        calls: calls made by earlier processes.
    """

    def __init__(
        self,
        budget_usd: float | None,
        spent_usd: float = 0.0,
        held_usd: float = 0.0,
        *,
        max_calls: int | None = None,
        calls: int = 0,
    ) -> None:
        self.max_calls = max_calls
        self.calls = calls
        self.budget_usd = budget_usd
        self.spent_usd = spent_usd
        self.held_usd = held_usd
        self.reserved_usd = 0.0
        self.overrun_usd = 0.0
        self.outstanding = 0
        """Reservations that may still come back, in part."""

    @property
    def committed_usd(self) -> float:
        return self.spent_usd + self.held_usd + self.reserved_usd

    @property
    def calls_left(self) -> bool:
        return self.max_calls is None or self.calls < self.max_calls

    def fits(self, usd: float) -> bool:
        """Whether this much can be set aside now."""
        return self.budget_usd is None or self.committed_usd + usd <= self.budget_usd + TOLERANCE_USD

    def reserve(self, usd: float) -> None:
        """Sets money aside. Raises ValueError where it does not fit."""
        if not self.fits(usd):
            raise ValueError(f"{usd} does not fit: {self.committed_usd} of {self.budget_usd} are committed")
        self.reserved_usd += usd
        self.outstanding += 1

    def take_over(self, usd: float) -> None:
        """Turns what is held for a call of an earlier process into a reservation: its answer is expected again."""
        self.held_usd = max(0.0, self.held_usd - usd)
        self.reserved_usd += usd
        self.outstanding += 1

    def settle(self, reserved_usd: float, cost_usd: float | None) -> None:
        """Turns a reservation into its cost; an unknown cost stays held."""
        self._take_back(reserved_usd)
        if cost_usd is None:
            self.held_usd += reserved_usd
            return
        self.spent_usd += cost_usd
        self.overrun_usd += max(0.0, cost_usd - reserved_usd)

    def release(self, reserved_usd: float) -> None:
        """Gives back what was set aside for a call that was never sent."""
        self._take_back(reserved_usd)

    def _take_back(self, usd: float) -> None:
        self.outstanding -= 1
        self.reserved_usd = self.reserved_usd - usd if self.outstanding else 0.0


UNBILLED = frozenset({OutcomeKind.RATE_LIMITED, OutcomeKind.REFUSED, OutcomeKind.CANCELLED})
"""Ended before the model worked, unless the provider's usage says otherwise."""


def cost_of(price: Price | None, outcome: Outcome, usage: Usage) -> float | None:
    """Dollars that a call cost; None where that cannot be known (no price, or an answer that never arrived)."""
    if price is None:
        return None
    if price == Price():
        return 0.0
    known = price.cost(usage)
    if known is None and (outcome.fatal or outcome.kind in UNBILLED):
        return 0.0
    return known
