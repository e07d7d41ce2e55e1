"""Calls and cost of an audit or a rejudging, before any call is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from plantain.audit.clean import renderers
from plantain.audit.gate import CLEAN
from plantain.audit.jury import models_of
from plantain.audit.pictures import TrialPicture, cluster_of
from plantain.audit.rejudge import RejudgeRequest, check_rejudgeable, juries_for, stored_attempts
from plantain.audit.run import COMPARED, PATIENCE, AuditPlan
from plantain.audit.trials import SWAPPED
from plantain.findings import Taxonomy
from plantain.journal import JournalReader
from plantain.records import Step
from plantain.rubrics import recorded
from plantain.runs.money.pricing import usual_cost
from plantain.runs.money.typical import SPREAD, TYPICAL_USAGE
from plantain.runs.settings.terms import Terms

Cost = tuple[float, float] | None
"""Dollars, low and high; None where the price of a model or of its service tier is unknown."""


@dataclass(frozen=True, slots=True)
class AuditForecast:
    """The most that an audit asks.

    Attributes:
        pictures: by modality; `independent` counts the patients or source files behind them.
        edits: verdicts of the judge, a clean edit's twice.
        calls: by model; a judge in the blind form makes two for an edit.
        cost_usd: dollars.
    """

    pictures: Mapping[str, int]
    independent: int
    edits: int
    calls: Mapping[str, int]
    cost_usd: Cost


def forecast(
    pictures: Sequence[TrialPicture],
    taxonomy: Taxonomy,
    plan: AuditPlan,
    judge: Sequence[str],
    beside: Collection[Sequence[str]],
    terms: Terms,
) -> AuditForecast:
    """Return the most that an audit asks, and its cost from the fewest calls to the most.

    At the least the first clean edits give all edits of every kind; at the most clean edits are judged until the audit
    gives up. A wrong label counts for each other finding.

    Args:
        pictures, taxonomy, plan: of the audit.
        judge: models of its judge.
        beside: models of each judge that it is compared with.
        terms: with the prices.
    """
    modalities = sorted({picture.image.modality for picture in pictures})
    named = {m: [f for f in taxonomy.of(m) if f.name in renderers(m)] for m in modalities}
    others = max((len(found) - 1 for found in named.values() if found), default=0)
    of_kind = {k: plan.pairs * (others if k == SWAPPED else 1) for k in plan.kinds if k != CLEAN}

    def asked(clean: int) -> tuple[int, Counter[str]]:
        """Return verdicts of the judge, and of each model, with this many clean edits for each wanted one."""
        edits = sum(of_kind.values()) + 2 * clean * plan.pairs
        compared = sum(n for kind, n in of_kind.items() if kind in COMPARED) + clean * plan.pairs
        models = Counter({model: edits * n for model, n in Counter(judge).items()})
        models.update({model: compared * n for model, n in Counter(chain(*beside)).items()})
        return edits, models

    edits, most = asked(PATIENCE)
    counted = {m: sum(p.image.modality == m for p in pictures) for m in modalities}
    independent = len({cluster_of(picture.image) for picture in pictures})
    return AuditForecast(counted, independent, edits, _calls(most, terms), _cost(asked(1)[1], most, terms))


def forecast_rejudge(
    run: Path, request: RejudgeRequest, terms: Terms
) -> tuple[int, dict[str, int], Cost, list[str]]:
    """Return attempts, calls by model, cost, and the keys that are missing, of a rejudging.

    Raises:
        InputError: as `run_rejudge`.
    """
    missing: list[str] = []
    with JournalReader.open(run) as reader:
        check_rejudgeable(reader)
        juries_for(terms, request, recorded(reader.header.frozen), missing)
        attempts = sum(1 for _ in stored_attempts(reader, request.sample, reader.header.seed))
    judges = [models_of(judge) for judge in request.judges if isinstance(judge, str)]
    times = attempts * max(1, len(request.prompts))
    models = Counter({model: times * n for model, n in Counter(chain(*judges)).items()})
    return attempts, _calls(models, terms), _cost(models, models, terms), list(dict.fromkeys(missing))


def _calls(verdicts: Mapping[str, int], terms: Terms) -> dict[str, int]:
    return {model: n * len(_steps(model, terms)) for model, n in verdicts.items()}


def _steps(model: str, terms: Terms) -> tuple[Step, ...]:
    """Return the calls of a judge for one verdict."""
    return (Step.LOOK, Step.JUDGE) if terms.options(model, "judge").form == "blind" else (Step.JUDGE,)


def _cost(least: Mapping[str, int], most: Mapping[str, int], terms: Terms) -> Cost:
    """Return the usual cost of verdicts by model, from the fewest to the most."""
    each: dict[str, float] = {}
    for model in most:
        costs = [usual_cost(terms, model, "judge", TYPICAL_USAGE[step]) for step in _steps(model, terms)]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        each[model] = sum(known)
    low, high = (sum(n * each[model] for model, n in verdicts.items()) for verdicts in (least, most))
    return SPREAD[0] * low, SPREAD[2] * high
