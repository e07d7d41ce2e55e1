"""What an audit will ask, and what that may cost; nothing is called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypedDict

from plantain.audit.clean import renderers
from plantain.audit.gate import CLEAN
from plantain.audit.pictures import TrialPicture, cluster_of
from plantain.audit.run import COMPARED, AuditPlan
from plantain.audit.trials import SWAPPED
from plantain.findings import Taxonomy
from plantain.records import Usage
from plantain.runs.money.pricing import price_under
from plantain.runs.settings.terms import Terms

TYPICAL = Usage(input_tokens=3_800, output_tokens=1_250, thinking_tokens=900)
"""Of one verdict by a hosted model: our own reckoning from the prompt's length and two images of 1024x1024."""
SPREAD = (0.7, 1.5)
"""How much a guessed cost may be off, low to high."""


class PlanJson(TypedDict):
    """As `audit --plan --json` prints it."""

    judge: str
    pictures: dict[str, int]
    independent: int
    edits: int
    calls: dict[str, int]
    cost_usd: list[float] | None


@dataclass(frozen=True, slots=True)
class AuditForecast:
    """What an audit comes to at the most.

    Attributes:
        pictures: by modality; independent: patients or source files behind them.
        edits: that are asked about; calls: by model.
        cost_usd: low and high; None where a model's price is unknown.
    """

    pictures: dict[str, int]
    independent: int
    edits: int
    calls: dict[str, int]
    cost_usd: tuple[float, float] | None

    def as_json(self, judge: str) -> PlanJson:
        cost = None if self.cost_usd is None else [round(value, 4) for value in self.cost_usd]
        return {
            "judge": judge,
            "pictures": self.pictures,
            "independent": self.independent,
            "edits": self.edits,
            "calls": self.calls,
            "cost_usd": cost,
        }


def forecast(
    pictures: Sequence[TrialPicture],
    taxonomy: Taxonomy,
    plan: AuditPlan,
    judge: Sequence[str],
    beside: Collection[Sequence[str]],
    terms: Terms,
) -> AuditForecast:
    """The most that an audit asks: every kind finds its edits, and a wrong label counts for each other finding.

    Args:
        pictures, taxonomy, plan: of the audit.
        judge: the models behind its judge; beside: those behind each judge that it is compared with.
        terms: with the prices.
    """
    modalities = sorted({picture.image.modality for picture in pictures})
    named = {m: [f for f in taxonomy.of(m) if f.name in renderers(m)] for m in modalities}
    others = max((len(found) - 1 for found in named.values() if found), default=0)
    by_kind = {
        kind: plan.pairs * (others if kind == SWAPPED else 2 if kind == CLEAN else 1) for kind in plan.kinds
    }
    edits = sum(by_kind.values())
    compared = sum(n for kind, n in by_kind.items() if kind in COMPARED)
    calls: dict[str, int] = {}
    for model in judge:
        calls[model] = calls.get(model, 0) + edits
    for models in beside:
        for model in models:
            calls[model] = calls.get(model, 0) + compared
    counted = {m: sum(p.image.modality == m for p in pictures) for m in modalities}
    independent = len({cluster_of(picture.image) for picture in pictures})
    return AuditForecast(counted, independent, edits, calls, _cost(calls, terms))


def _cost(calls: dict[str, int], terms: Terms) -> tuple[float, float] | None:
    total = 0.0
    for model, n in calls.items():
        price = price_under(terms, model)
        cost = None if price is None else price.cost(TYPICAL)
        if cost is None:
            return None
        total += n * cost
    return SPREAD[0] * total, SPREAD[1] * total
