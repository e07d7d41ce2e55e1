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
from plantain.records import Step
from plantain.runs.money.pricing import usual_cost
from plantain.runs.money.typical import SPREAD, TYPICAL_USAGE
from plantain.runs.settings.terms import Terms


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
        edits: that are asked about; calls: by model, two an edit of a judge in the blind form.
        cost_usd: low and high; None where the price of a model, or of its service tier, is unknown.
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
    asked: dict[str, int] = {}
    for model in judge:
        asked[model] = asked.get(model, 0) + edits
    for models in beside:
        for model in models:
            asked[model] = asked.get(model, 0) + compared
    calls = {model: n * len(_steps(model, terms)) for model, n in asked.items()}
    counted = {m: sum(p.image.modality == m for p in pictures) for m in modalities}
    independent = len({cluster_of(picture.image) for picture in pictures})
    return AuditForecast(counted, independent, edits, calls, _cost(asked, terms))


def _steps(model: str, terms: Terms) -> tuple[Step, ...]:
    """The calls that a judge makes for one verdict."""
    return (Step.LOOK, Step.JUDGE) if terms.options(model, "judge").form == "blind" else (Step.JUDGE,)


def _cost(asked: dict[str, int], terms: Terms) -> tuple[float, float] | None:
    total = 0.0
    for model, n in asked.items():
        for step in _steps(model, terms):
            cost = usual_cost(terms, model, "judge", TYPICAL_USAGE[step])
            if cost is None:
                return None
            total += n * cost
    return SPREAD[0] * total, SPREAD[2] * total
