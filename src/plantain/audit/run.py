"""Walks through an audit: make clean edits, spoil them, ask the judge, until every defect has its pairs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from plantain.audit.asking import Asking
from plantain.audit.clean import CleanEditRecipe, recipes, rendered_or_reason
from plantain.audit.pictures import TrialPicture
from plantain.audit.planted_defects import DEFECTS, CleanEdit, Defect, NotApplicable, plant
from plantain.audit.rates import CLEAN, AuditReport, TrialAnswer, report_of
from plantain.findings import Taxonomy
from plantain.offline.workers import compute
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.privacy.lineage import made_from
from plantain.records import Criterion, Outcome, Rubric, derive_seed
from plantain.roles import EncodedImage, JudgeRequest

AT_ONCE = 4
"""Edits made and judged at the same time."""
MOST_CRASHES = 3
"""An audit stops when more workers than this died."""
PATIENCE = 12
"""An audit gives up on a defect after this many clean edits for each pair that it wants."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What an audit asks.

    Attributes:
        pairs: pairs wanted for each defect, spread over all modalities to which it applies.
        clean: clean edits judged for false alarms, at least.
        amplitude: "weak" or "strong".
        seed: of the wishes, the renderings and the defects.
        split: name of the set of pictures, for the report.
        defects: names of the defects to plant; empty for all.
        findings: names of the findings to draw; empty for all that a renderer can draw.
    """

    pairs: int = 100
    clean: int = 100
    amplitude: str = "strong"
    seed: int = 0
    split: str = "held-out"
    defects: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One edit as the judge will see it, encoded."""

    defect: str
    recipe: CleanEditRecipe
    violates: tuple[Criterion, ...]
    instruction: str
    original: bytes
    edited: bytes


def trials_of(recipe: CleanEditRecipe, names: Sequence[str], amplitude: str) -> list[Trial] | Outcome | str:
    """Renders a recipe and spoils it in every named way that applies; the clean edit comes first. Runs in a worker."""
    clean = rendered_or_reason(recipe)
    if isinstance(clean, str):
        return clean
    trials = [_trial(CLEAN, recipe, (), clean)]
    for defect in DEFECTS:
        if defect.name not in names:
            continue
        try:
            spoilt = plant(defect, clean, amplitude, derive_seed(recipe.seed, defect.name))
        except NotApplicable:
            continue
        trials.append(_trial(defect.name, recipe, defect.violates[recipe.direction], spoilt))
    return trials


def _trial(name: str, recipe: CleanEditRecipe, violates: tuple[Criterion, ...], edit: CleanEdit) -> Trial:
    return Trial(
        name, recipe, violates, edit.instruction, encode_source(edit.original), encode_jpeg(edit.edited)
    )


async def run_audit(
    asking: Asking,
    pictures: Sequence[TrialPicture],
    taxonomy: Taxonomy,
    rubric: Rubric,
    plan: AuditPlan,
) -> tuple[AuditReport, list[TrialAnswer]]:
    """Asks the judge until every defect has its pairs, its recipes run out, or something stops the run.

    Args:
        asking: the judge, and the run in which its answers are kept.
        pictures: real pictures; none of them may have been used while tuning the judge.
        taxonomy: findings to draw from.
        rubric: handed to the judge.
        plan: how much to ask.

    Returns:
        The report, and every answer in the order of the recipes.
    """
    wanted = _wanted(plan)
    asking.opened.observer.begun("audit", sum(wanted.values()))
    answers: dict[int, TrialAnswer] = {}
    not_made: Counter[str] = Counter()
    supply = recipes(pictures, taxonomy, plan.seed, plan.findings)
    crashes = asked = 0
    budget = PATIENCE * max(plan.pairs, plan.clean)
    while any(wanted.values()) and budget > 0 and not asking.opened.stopping:
        batch = list(islice(supply, AT_ONCE))
        if not batch:
            break
        budget -= len(batch)
        names = [name for name, left in wanted.items() if left > 0]
        made = await asyncio.gather(*(compute(trials_of, recipe, names, plan.amplitude) for recipe in batch))
        chosen: list[Trial] = []
        for trials in made:
            if isinstance(trials, Outcome):
                crashes += 1
                if crashes > MOST_CRASHES:
                    raise RuntimeError(f"the audit cannot go on: {trials.reason}")
                trials = trials.reason
            if isinstance(trials, str):
                not_made[trials] += 1
                continue
            chosen += _still_wanted(trials, wanted)

        async def carry(item: tuple[int, Trial]) -> None:
            answers[item[0]] = await _ask(asking, item[1], rubric)
            asking.opened.observer.advanced(1)

        await asking.opened.walk(enumerate(chosen, asked), carry)
        asked += len(chosen)
    given = [answers[number] for number in sorted(answers)]
    order = {name: index for index, name in enumerate((CLEAN, *(defect.name for defect in DEFECTS)))}
    report = report_of(
        sorted(given, key=lambda answer: order[answer.defect]),
        judge=asking.judge.name,
        amplitude=plan.amplitude,
        seed=plan.seed,
        split=plan.split,
        not_made=not_made,
    )
    return report, given


def _still_wanted(trials: list[Trial], wanted: dict[str, int]) -> list[Trial]:
    """Those of the trials that fill a defect's count; counts them off."""
    chosen = []
    for trial in trials:
        if wanted.get(trial.defect, 0) > 0:
            wanted[trial.defect] -= 1
            chosen.append(trial)
    return chosen


def _wanted(plan: AuditPlan) -> dict[str, int]:
    known: list[Defect] = [d for d in DEFECTS if not plan.defects or d.name in plan.defects]
    return {CLEAN: plan.clean, **{defect.name: plan.pairs for defect in known}}


async def _ask(asking: Asking, trial: Trial, rubric: Rubric) -> TrialAnswer:
    recipe = trial.recipe
    picture = await asking.taken_in(recipe.picture)
    original, edited = made_from(trial.original, picture), made_from(trial.edited, picture)
    observed, why_not = await asking.observations(
        f"{recipe.name} {trial.defect}",
        JudgeRequest(
            image=recipe.picture.image,
            original=EncodedImage(original, "image/jpeg"),
            edited=EncodedImage(edited, "image/jpeg"),
            instruction=trial.instruction,
            finding=recipe.finding,
            direction=recipe.direction,
            rubric=rubric,
            seed=recipe.seed,
        ),
    )
    return TrialAnswer(
        defect=trial.defect,
        modality=recipe.picture.image.modality,
        finding=recipe.finding.name,
        direction=recipe.direction.value,
        picture=recipe.picture.image.id,
        violates=trial.violates,
        failed=None
        if observed is None
        else tuple(Criterion(name) for name, result in observed.criteria.items() if not result.passed),
        reason=why_not if observed is None else observed.reason,
        name=recipe.name,
    )
