"""What an audit will ask, and what that may cost; nothing is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypedDict

from plantain.audit.clean import drawable
from plantain.audit.gate import CLEAN
from plantain.audit.pictures import TrialPicture, cluster_of
from plantain.audit.published import PublishedEdit, askable
from plantain.audit.run import COMPARED, PATIENCE, AuditPlan
from plantain.audit.trials import SWAPPED
from plantain.findings import Taxonomy
from plantain.records import Step
from plantain.runs.limits import SPREAD, TYPICAL_USAGE, usual_cost
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
        edits: verdicts of the judge, a clean edit's twice; calls: by model, two an edit of a judge in the blind form.
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
    """The most that an audit asks, and what it costs from the fewest calls to the most.

    At the least every kind has its edits and the first clean ones gave them all; at the most clean ones are asked about
    until the audit gives up. A wrong label counts for each other finding.

    Args:
        pictures, taxonomy, plan: of the audit.
        judge: the models behind its judge; beside: those behind each judge that it is compared with.
        terms: with the prices.
    """
    modalities = sorted({picture.image.modality for picture in pictures})
    named = {m: [f for f in taxonomy.of(m) if f.name in drawable(taxonomy, m)] for m in modalities}
    others = max((len(found) - 1 for found in named.values() if found), default=0)
    kinds = [kind for kind in plan.kinds if kind != CLEAN]

    def asked(clean: int) -> tuple[int, Counter[str]]:
        """Verdicts of the judge, and of each model, where so many clean edits are made for each that is wanted."""
        of_kind = {kind: plan.pairs * (others if kind == SWAPPED else 1) for kind in kinds}
        edits = sum(of_kind.values()) + 2 * clean * plan.pairs
        compared = sum(n for kind, n in of_kind.items() if kind in COMPARED) + clean * plan.pairs
        models = Counter({model: edits * n for model, n in Counter(judge).items()})
        models.update({model: compared * n for model, n in Counter(chain(*beside)).items()})
        return edits, models

    _, least = asked(1)
    edits, most = asked(PATIENCE)
    calls = {model: n * len(_steps(model, terms)) for model, n in most.items()}
    counted = {m: sum(p.image.modality == m for p in pictures) for m in modalities}
    independent = len({cluster_of(picture.image) for picture in pictures})
    low, high = _cost(least, terms), _cost(most, terms)
    cost = None if low is None or high is None else (SPREAD[0] * low, SPREAD[2] * high)
    return AuditForecast(counted, independent, edits, calls, cost)


def forecast_published(edits: Sequence[PublishedEdit], judge: Sequence[str], terms: Terms) -> AuditForecast:
    """What it takes to ask about the edits of a published tree that an original can be stood in for, once each."""
    asked = askable(edits)
    verdicts = Counter({model: len(asked) * n for model, n in Counter(judge).items()})
    cost = _cost(verdicts, terms)
    return AuditForecast(
        dict(sorted(Counter(edit.modality for edit in asked).items())),
        len({(edit.modality, edit.source) for edit in asked}),
        len(asked),
        {model: n * len(_steps(model, terms)) for model, n in verdicts.items()},
        None if cost is None else (SPREAD[0] * cost, SPREAD[2] * cost),
    )


def _steps(model: str, terms: Terms) -> tuple[Step, ...]:
    """The calls that a judge makes for one verdict."""
    return (Step.LOOK, Step.JUDGE) if terms.options(model, "judge").get("form") == "blind" else (Step.JUDGE,)


def _cost(asked: Mapping[str, int], terms: Terms) -> float | None:
    """What so many verdicts of each model usually cost."""
    total = 0.0
    for model, n in asked.items():
        for step in _steps(model, terms):
            cost = usual_cost(terms, model, "judge", TYPICAL_USAGE[step])
            if cost is None:
                return None
            total += n * cost
    return total
