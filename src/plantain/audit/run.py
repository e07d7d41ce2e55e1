"""Walks through an audit: make clean edits, spoil them in every way, ask the judge, until every kind has its edits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from plantain.audit.asking import Asking
from plantain.audit.card_making import Answered, make_card
from plantain.audit.clean import CleanEditRecipe, drawable, recipes
from plantain.audit.gate import AGAIN, CLEAN, NAIVE
from plantain.audit.pictures import TrialPicture, cluster_of
from plantain.audit.trials import KEPT, KINDS, SWAPPED, Trial, trials_of
from plantain.findings import Taxonomy
from plantain.offline.workers import compute
from plantain.privacy.lineage import made_from
from plantain.records import InputError, JudgeCard, Outcome, derive_seed
from plantain.roles import EncodedImage, JudgeRequest

AT_ONCE = 4
"""Edits made and judged at the same time."""
MOST_CRASHES = 3
"""An audit stops when more workers than this died."""
PATIENCE = 6
"""An audit gives up on a kind of edit after this many clean edits for each one that it wants."""

COMPARED = frozenset({CLEAN, SWAPPED, *NAIVE})
"""Kinds that judges beside the audited one are asked about too."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What an audit asks.

    Attributes:
        pairs: edits wanted of each kind, spread over all modalities to which it applies.
        amplitude: "weak" or "strong", of planted defects.
        seed: of the wishes, the renderings and the defects.
        split: name of the set of pictures, for the card.
        findings: names of the findings to draw; empty for all that a renderer can draw.
        kinds: of edits, out of `trials.KINDS`; the clean ones always come along.
    """

    pairs: int = 40
    amplitude: str = "strong"
    seed: int = 0
    split: str = "held-out"
    findings: tuple[str, ...] = ()
    kinds: tuple[str, ...] = KINDS


@dataclass(slots=True)
class _Audit:
    """The answers so far, and what is still wanted."""

    asking: Asking
    taxonomy: Taxonomy
    plan: AuditPlan
    wanted: dict[str, int]
    answers: dict[str, Answered] = field(default_factory=dict)
    not_made: Counter[str] = field(default_factory=Counter)
    crashes: int = 0

    async def make(self, recipe: CleanEditRecipe) -> list[Trial]:
        """Everything of a recipe that is still wanted."""
        lacking = [kind for kind, left in self.wanted.items() if left > 0]
        others = self.taxonomy.of(recipe.picture.image.modality)
        drawn = drawable(self.taxonomy, recipe.picture.image.modality)
        named = [one for one in others if one.name in drawn]
        made = await compute("judge", trials_of, recipe, lacking, self.plan.amplitude, named)
        if isinstance(made, Outcome):
            self.crashes += 1
            if self.crashes > MOST_CRASHES:
                raise InputError(f"the audit cannot go on: {made.reason}")
            made = made.reason
        if isinstance(made, str):
            self.not_made[made] += 1
            return []
        return made

    def choose(self, trials: list[Trial]) -> list[Trial]:
        """Those that are still wanted, counted off; a clean edit comes along with whatever is made of it."""
        kinds = {trial.kind for trial in trials if self.wanted.get(trial.kind, 0) > 0}
        if not kinds:
            return []
        for kind in kinds:
            self.wanted[kind] -= 1
        return [trial for trial in trials if trial.kind in kinds or trial.kind == CLEAN]

    async def ask(self, trial: Trial) -> None:
        """Has the judge asked about one edit, and of a clean one once more."""
        await self._ask(trial, trial.kind, 0, 0)
        if trial.kind == CLEAN:
            await self._ask(trial, AGAIN, 0, 1)
        for number in range(1, len(self.asking.juries)):
            if trial.kind in COMPARED and not self.asking.opened.stopping:
                await self._ask(trial, trial.kind, number, 0)

    async def _ask(self, trial: Trial, kind: str, jury: int, again: int) -> None:
        recipe = trial.recipe
        image = recipe.picture.image
        picture = await self.asking.taken_in(recipe.picture)
        original, edited = made_from(trial.original, picture), made_from(trial.edited, picture)
        request = JudgeRequest(
            image=image,
            original=EncodedImage(original, "image/jpeg"),
            edited=EncodedImage(edited, "image/jpeg"),
            instruction=trial.instruction,
            finding=trial.finding,
            direction=recipe.direction,
            rubric=self.asking.jury.rubric,
            seed=derive_seed(recipe.seed, "asked", again) if again else recipe.seed,
        )
        seen, why_not = await self.asking.observations(trial.name, request, jury=jury, again=again)
        name = self.asking.juries[jury].name
        self.answers[f"{jury} {again} {trial.name}"] = Answered(
            trial.name,
            kind,
            name,
            image.modality,
            trial.finding.name,
            recipe.direction.value,
            cluster_of(image),
            recipe.name,
            trial.violates,
            trial.may_be,
            seen,
            why_not,
            trial.injection,
        )

    def accepted(self, recipe: CleanEditRecipe) -> bool:
        """Whether the judge accepted the clean edit of a recipe."""
        rubric = self.asking.jury.rubric
        found = [a for a in self.answers.values() if a.recipe == recipe.name and a.kind == CLEAN]
        return any(a.judge == self.asking.jury.name and a.qualified(rubric) for a in found)


async def run_audit(
    asking: Asking,
    pictures: Sequence[TrialPicture],
    taxonomy: Taxonomy,
    plan: AuditPlan,
    on_stage: Callable[[int, int], None] | None = None,
) -> tuple[JudgeCard, list[Answered]]:
    """Asks the judge until every kind of edit has its count, the recipes run out, or something stops the run.

    Args:
        asking: the judge, and the run in which its answers are kept.
        pictures: real pictures; none of them may have been used while tuning the judge.
        taxonomy: findings to draw from.
        plan: how much to ask.
        on_stage: told how many edits are still wanted, and of how many.

    Returns:
        The card, and every answer in the order of the edits.
    """
    audit = _Audit(asking, taxonomy, plan, dict.fromkeys(plan.kinds, plan.pairs))
    total = sum(audit.wanted.values())
    observer = asking.opened.observer
    observer.begun("audit", total)
    supply = recipes(pictures, taxonomy, plan.seed, plan.findings)
    left = PATIENCE * plan.pairs
    while any(n > 0 for n in audit.wanted.values()) and left > 0 and not asking.opened.stopping:
        batch = list(islice(supply, AT_ONCE))
        if not batch:
            break
        left -= len(batch)
        made = await asyncio.gather(*map(audit.make, batch))
        await asking.opened.walk(
            [t for trials in made for t in trials if t.kind == CLEAN and _any(audit, trials)], audit.ask
        )
        for trials in made:
            keeps = bool(trials) and audit.accepted(trials[0].recipe)
            before = sum(audit.wanted.values())
            chosen = audit.choose([t for t in trials if keeps or t.kind not in KEPT])
            await asking.opened.walk([t for t in chosen if t.kind != CLEAN], audit.ask)
            for _ in range(before - sum(audit.wanted.values())):
                observer.advanced(1)
        if on_stage is not None:
            on_stage(sum(audit.wanted.values()), total)
    for kind, n in audit.wanted.items():
        if n > 0:
            audit.not_made[f"{kind}: {n} of {plan.pairs} could not be made"] += 1
    given = [audit.answers[name] for name in sorted(audit.answers)]
    return make_card(asking, given, plan.split, audit.not_made), given


def _any(audit: _Audit, trials: Sequence[Trial]) -> bool:
    """Whether anything of a recipe is still wanted."""
    return any(audit.wanted.get(trial.kind, 0) > 0 for trial in trials)
