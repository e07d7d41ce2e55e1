"""Run an audit: make clean edits, spoil them in every way, ask the judge, until every kind has its edits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from plantain.audit.asking import Asking
from plantain.audit.card import make_card
from plantain.audit.clean import CleanEditRecipe, drawable, recipes
from plantain.audit.gate import AGAIN, CLEAN, NAIVE, TrialAnswer, scored
from plantain.audit.pictures import TrialPicture, cluster_of
from plantain.audit.trials import KEPT, KINDS, SWAPPED, Trial, trials_of
from plantain.findings import Taxonomy
from plantain.offline.workers import compute
from plantain.privacy.lineage import made_from
from plantain.records import JudgeCard, Outcome, derive_seed
from plantain.roles import EncodedImage, JudgeRequest

AT_ONCE = 4
"""Clean edits made and judged at the same time."""
PATIENCE = 6
"""An audit gives up on a kind of edit after this many clean edits for each wanted one."""

COMPARED = frozenset({CLEAN, SWAPPED, *NAIVE})
"""Kinds that the other judges are asked about too."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What an audit asks.

    Attributes:
        pairs: edits of each kind, spread over all modalities to which it applies.
        seed: of the intents, the renderings and the defects.
        split: name of the set of images, for the card.
        findings: names of the findings to draw; empty for all that a renderer can draw.
        kinds: of edits, out of `trials.KINDS`; clean ones are always included.
    """

    pairs: int = 40
    seed: int = 0
    split: str = "held-out"
    findings: tuple[str, ...] = ()
    kinds: tuple[str, ...] = KINDS


@dataclass(slots=True)
class _Audit:
    """The answers so far, and the number of edits still wanted of each kind."""

    asking: Asking
    taxonomy: Taxonomy
    plan: AuditPlan
    wanted: dict[str, int]
    answers: dict[str, TrialAnswer] = field(default_factory=dict)
    not_made: Counter[str] = field(default_factory=Counter)

    @property
    def left(self) -> int:
        return sum(self.wanted.values())

    async def make(self, recipe: CleanEditRecipe) -> list[Trial]:
        """Make everything of a recipe that is still wanted, the clean edit first."""
        modality = recipe.picture.image.modality
        drawn = drawable(self.taxonomy, modality)
        named = [one for one in self.taxonomy.of(modality) if one.name in drawn]
        lacking = [kind for kind, left in self.wanted.items() if left > 0]
        made = await compute("judge", trials_of, recipe, lacking, named)
        if isinstance(made, list):
            return made
        self.not_made[made.reason if isinstance(made, Outcome) else made] += (
            1  # a worker died, or no clean edit
        )
        return []

    def choose(self, trials: list[Trial]) -> list[Trial]:
        """Count off the trials that are still wanted and return them."""
        kinds = {trial.kind for trial in trials if self.wanted.get(trial.kind, 0) > 0}
        for kind in kinds:
            self.wanted[kind] -= 1
        return [trial for trial in trials if trial.kind in kinds]

    async def ask(self, trial: Trial) -> None:
        """Ask the judge about one edit, about a clean one twice, and the other judges where they are compared."""
        await self._ask(trial, trial.kind, 0, 0)
        if trial.kind == CLEAN:
            await self._ask(trial, AGAIN, 0, 1)
        for number in range(1, len(self.asking.juries)):
            if trial.kind in COMPARED and not self.asking.opened.stopping:
                await self._ask(trial, trial.kind, number, 0)

    async def _ask(self, trial: Trial, kind: str, jury: int, again: int) -> None:
        recipe, rubric = trial.recipe, self.asking.jury.rubric
        image = recipe.picture.image
        picture = await self.asking.take_in(recipe.picture)
        original, edited = made_from(trial.original, picture), made_from(trial.edited, picture)
        request = JudgeRequest(
            image=image,
            original=EncodedImage(original, "image/jpeg"),
            edited=EncodedImage(edited, "image/jpeg"),
            instruction=trial.instruction,
            finding=trial.finding,
            direction=recipe.direction,
            rubric=rubric,
            seed=derive_seed(recipe.seed, "asked", again) if again else recipe.seed,
        )
        seen, _ = await self.asking.observations(trial.name, request, jury=jury, again=again)
        shares, qualified, failed = scored(seen, rubric)
        self.answers[f"{jury} {again} {trial.name}"] = TrialAnswer(
            kind=kind,
            modality=image.modality,
            direction=recipe.direction.value,
            cluster=cluster_of(image),
            violates=trial.violates,
            shares=shares,
            qualified=qualified,
            failed=failed,
            may_be=trial.may_be,
            name=trial.name,
            judge=self.asking.juries[jury].name,
            recipe=recipe.name,
            injection=trial.injection,
        )

    def accepted(self, recipe: CleanEditRecipe) -> bool:
        """Return True if the judge accepted the clean edit of a recipe."""
        own = (recipe.name, CLEAN, self.asking.jury.name)
        return any(a.qualified for a in self.answers.values() if (a.recipe, a.kind, a.judge) == own)


async def run_audit(
    asking: Asking, pictures: Sequence[TrialPicture], taxonomy: Taxonomy, plan: AuditPlan
) -> tuple[JudgeCard, list[TrialAnswer]]:
    """Ask the judge until every kind of edit has its count, the recipes run out, or the run is stopped.

    Args:
        asking: the judge, and the run that keeps its answers.
        pictures: real images; none of them may have been used to tune the judge.
        taxonomy, plan: findings to draw from, and what to ask.

    Returns:
        The card, and every answer in the order of the edits.
    """
    audit = _Audit(asking, taxonomy, plan, dict.fromkeys(plan.kinds, plan.pairs))
    opened = asking.opened
    opened.observer.begun("audit", audit.left)
    supply = recipes(pictures, taxonomy, plan.seed, plan.findings)
    patience = PATIENCE * plan.pairs
    while audit.left and patience > 0 and not opened.stopping:
        batch = list(islice(supply, AT_ONCE))
        if not batch:
            break
        patience -= len(batch)
        made = await asyncio.gather(*map(audit.make, batch))
        wanted = [trials for trials in made if any(audit.wanted.get(trial.kind, 0) > 0 for trial in trials)]
        await opened.walk([t for trials in wanted for t in trials if t.kind == CLEAN], audit.ask)
        for trials in wanted:
            keeps = audit.accepted(trials[0].recipe)
            before = audit.left
            chosen = audit.choose([t for t in trials if keeps or t.kind not in KEPT])
            await opened.walk([t for t in chosen if t.kind != CLEAN], audit.ask)
            for _ in range(before - audit.left):
                opened.observer.advanced(1)
    for kind, n in audit.wanted.items():
        if n > 0:
            audit.not_made[f"{kind}: {n} of {plan.pairs} could not be made"] += 1
    answers = [audit.answers[name] for name in sorted(audit.answers)]
    return make_card(asking, answers, plan.split, audit.not_made), answers
