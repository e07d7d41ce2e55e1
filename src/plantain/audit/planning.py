"""Calls and cost of an audit or a rejudging, before any call is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from plantain.audit.clean import drawable
from plantain.audit.gate import CLEAN
from plantain.audit.images import AuditImage, cluster_of
from plantain.audit.jury import models_of
from plantain.audit.rejudge import (
    NO_ORIGINAL,
    RejudgeRequest,
    check_rejudgeable,
    chosen_attempts,
    juries_for,
    rubric_for,
)
from plantain.audit.run import PATIENCE, AuditPlan
from plantain.audit.trials import SWAPPED
from plantain.findings import Taxonomy
from plantain.journal import JournalReader, JsonValue
from plantain.records import Step
from plantain.runs.terms import SPREAD, TYPICAL_USAGE, Terms, price_under


def forecast(
    images: Sequence[AuditImage], taxonomy: Taxonomy, plan: AuditPlan, terms: Terms
) -> dict[str, JsonValue]:
    """Forecast an audit: the maximum number of calls, and the cost for the fewest and for the most calls.

    With the fewest, the first clean edits give all edits of every kind. With the most, clean edits are judged until
    the audit gives up. A swapped label counts for each other finding.

    Args:
        images, taxonomy, plan: images, findings and settings of the audit.
        terms: terms with the prices.

    Returns:
        "judge"; "images" by modality, and "independent" patients or source files among them; "edits": number of
        verdicts, two for a clean edit; "calls" by model; "cost_usd": low and high, None if a price is unknown.
    """
    judge = plan.judge if isinstance(plan.judge, str) else plan.judge.name
    modalities = sorted({one.image.modality for one in images})
    named = {m: [f for f in taxonomy.of(m) if f.name in drawable(taxonomy, m)] for m in modalities}
    labels = max((len(found) - 1 for found in named.values() if found), default=0)
    of_kind = {k: plan.pairs * (labels if k == SWAPPED else 1) for k in plan.kinds if k != CLEAN}

    def edits(clean: int) -> int:
        """Return the verdicts with this many clean edits for each wanted one."""
        return sum(of_kind.values()) + 2 * clean * plan.pairs

    least, most = (
        {model: edits(clean) * n for model, n in Counter(models_of(judge)).items()} for clean in (1, PATIENCE)
    )
    return {
        "judge": judge,
        "images": {m: sum(p.image.modality == m for p in images) for m in modalities},
        "independent": len({cluster_of(one.image) for one in images}),
        "edits": edits(PATIENCE),
        **_bill(least, most, terms),
    }


def forecast_rejudge(run: Path, request: RejudgeRequest, terms: Terms) -> dict[str, JsonValue]:
    """Forecast a rejudging: "attempts" that can be judged, "calls" by model, "cost_usd" in US dollars.

    Recorded answers, which are reused, are counted too.

    "remarks" names missing keys, and how many attempts are skipped because their original is missing.

    Raises:
        InputError: as `run_rejudge`.
    """
    missing: list[str] = []
    with JournalReader.open(run) as reader:
        check_rejudgeable(reader)
        juries_for(terms, request, rubric_for(reader.header.frozen, request), missing)
        images = (reader.image(one.task.image_id) for one in chosen_attempts(reader, request))
        there = Counter(reader.has_blob(image.prepared_sha256) for image in images)
    attempts, lost = there[True], there[False]
    judges = [models_of(judge) for judge in request.judges if isinstance(judge, str)]
    times = attempts * max(1, len(request.prompts)) * request.repeat
    models = Counter({model: times * n for model, n in Counter(chain(*judges)).items()})
    return {
        "attempts": attempts,
        **_bill(models, models, terms),
        "remarks": list[JsonValue](dict.fromkeys(missing + [f"{lost} left out: {NO_ORIGINAL}"] * bool(lost))),
    }


def _bill(least: Mapping[str, int], most: Mapping[str, int], terms: Terms) -> dict[str, JsonValue]:
    """Return the most calls and the usual cost of verdicts by model, from the fewest to the most."""
    calls: dict[str, JsonValue] = {}
    low = high = 0.0
    known = True
    for model, n in most.items():
        calls[model] = n
        price = price_under(terms, model)
        cost = None if price is None else price.cost(TYPICAL_USAGE[Step.JUDGE])
        known, each = known and cost is not None, cost or 0.0
        low, high = low + SPREAD[0] * least[model] * each, high + SPREAD[2] * n * each
    return {"calls": calls, "cost_usd": [round(low, 4), round(high, 4)] if known else None}
