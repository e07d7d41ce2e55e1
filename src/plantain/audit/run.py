"""Run an audit: make clean edits and variants of them, and ask the judge until every kind of edit has its count."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from plantain.audit.card import make_card
from plantain.audit.clean import CleanEditRecipe, drawable, recipes
from plantain.audit.gate import AGAIN, CLEAN, TrialAnswer, scored
from plantain.audit.images import AuditImage, cluster_of
from plantain.audit.jury import MOST_MEMBERS, Jury, ask, jury_of, models_of
from plantain.audit.trials import KEPT, KINDS, Trial, trials_of
from plantain.findings import Taxonomy
from plantain.offline.workers import workers
from plantain.privacy.permission import made_from
from plantain.records import (
    EditTask,
    InputError,
    JudgeCard,
    Observations,
    Outcome,
    Rubric,
    TaskKind,
    TaskState,
    derive_seed,
)
from plantain.roles import EncodedImage, Judge, JudgeRequest, on_worker
from plantain.rubrics import MED_BANANA
from plantain.runs.open_run import OpenRun
from plantain.runs.progress import SILENT, ProgressObserver, RunSummary
from plantain.runs.setup import NewRun, RunSetup, changed_since
from plantain.runs.terms import Terms

AT_ONCE = 4
"""Clean edits made and judged at the same time."""
PATIENCE = 6
"""An audit gives up on a kind of edit after this many clean edits for each wanted one."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The settings of an audit.

    Attributes:
        judge: the judge's name (a panel's members separated by commas), or a judge object.
        rubric: the rubric by which it judges.
        pairs: number of edits of each kind, spread over all modalities to which the kind applies.
        seed: seed of the intents, the renderings and the defects.
        split: name of the set of images, for the card.
        kinds: kinds of edits, out of `trials.KINDS`; clean ones are always included.
    """

    judge: str | Judge
    rubric: Rubric = MED_BANANA
    pairs: int = 40
    seed: int = 0
    split: str = "held-out"
    kinds: tuple[str, ...] = KINDS


@dataclass(frozen=True, slots=True)
class Audited:
    """The result of an audit.

    Attributes:
        card: the judge's card.
        answers: every answer, in the order of the edits.
        examples: the first edit of each kind, for the card's page.
        summary: calls and cost of this process.
    """

    card: JudgeCard
    answers: list[TrialAnswer]
    examples: dict[str, Trial]
    summary: RunSummary


@dataclass(slots=True)
class _Audit:
    """The answers up to now, and the number of edits still wanted of each kind."""

    jury: Jury
    opened: OpenRun
    taxonomy: Taxonomy
    plan: AuditPlan
    wanted: dict[str, int]
    answers: dict[str, TrialAnswer] = field(default_factory=dict)
    examples: dict[str, Trial] = field(default_factory=dict)
    not_made: Counter[str] = field(default_factory=Counter)
    stored: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        return sum(self.wanted.values())

    async def make(self, recipe: CleanEditRecipe) -> list[Trial]:
        """Return a recipe's trials of wanted kinds, the clean edit first; [] without a clean edit."""
        modality = recipe.source.image.modality
        drawn = drawable(self.taxonomy, modality)
        named = [one for one in self.taxonomy.of(modality) if one.name in drawn]
        kinds = [kind for kind, left in self.wanted.items() if left > 0]
        made = await on_worker(workers(), "judge", trials_of, recipe, kinds, named)
        if isinstance(made, list):
            return made
        reason = made.reason if isinstance(made, Outcome) else made  # a worker died, or no clean edit
        self.not_made[reason] += 1
        return []

    def choose(self, trials: list[Trial]) -> list[Trial]:
        """Return the trials of kinds still wanted, and lower the wanted number of each such kind by 1."""
        kinds = {trial.kind for trial in trials if self.wanted.get(trial.kind, 0) > 0}
        for kind in kinds:
            self.wanted[kind] -= 1
        return [trial for trial in trials if trial.kind in kinds]

    async def ask(self, trial: Trial) -> None:
        """Ask the judge about one edit; about a clean one twice."""
        self.examples.setdefault(trial.kind, trial)
        await self._ask(trial, trial.kind, 0)
        if trial.kind == CLEAN:
            await self._ask(trial, AGAIN, 1)

    async def _ask(self, trial: Trial, kind: str, again: int) -> None:
        recipe, rubric = trial.recipe, self.jury.rubric
        image = recipe.source.image
        source = await self._store(recipe.source)
        original, edited = made_from(trial.original, source), made_from(trial.edited, source)
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
        seen = await self._observations(trial.name, request, again)
        shares, qualified, failed = scored(seen, rubric)
        self.answers[f"{again} {trial.name}"] = TrialAnswer(
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
            recipe=recipe.name,
        )

    async def _store(self, source: AuditImage) -> bytes:
        """Add an image to the run, once, and return its bytes."""
        if source.image.id not in self.stored:
            journal = self.opened.journal
            blob = await asyncio.to_thread(journal.put_blob, source.data, "image/jpeg")
            await journal.add_images([(replace(source.image, prepared_sha256=blob.sha256), blob)])
            self.stored.add(source.image.id)
        return source.data

    async def _observations(self, name: str, request: JudgeRequest, again: int) -> Observations | None:
        """Return a judge's observations, new or recorded; None if a call failed.

        Args:
            name: of the edit, unique in the audit.
            request: the edit.
            again: number of earlier requests for the same edit.
        """
        opened = self.opened
        task = EditTask(
            hashlib.sha256(f"audit\x1f{name}".encode()).hexdigest()[:20],
            request.image.id,
            request.image.modality,
            request.finding.name if request.finding else "edit",
            request.direction,
            TaskKind.BENCH,
        )
        await opened.journal.add_tasks([task])
        seen, outcome = await ask(
            self.jury, opened.calls(task.id, 1), request, round=1, draw=again * MOST_MEMBERS
        )
        state = TaskState.SUCCESS if outcome.ok else TaskState.STOPPED
        await opened.close_task(task.id, state, 1, outcome.reason)
        return seen

    def accepted(self, recipe: CleanEditRecipe) -> bool:
        """Return True if the judge accepted the clean edit of a recipe."""
        own = (recipe.name, CLEAN)
        return any(a.qualified for a in self.answers.values() if (a.recipe, a.kind) == own)


async def run_audit(
    plan: AuditPlan,
    terms: Terms,
    run: Path,
    images: Sequence[AuditImage],
    taxonomy: Taxonomy,
    observer: ProgressObserver = SILENT,
) -> Audited:
    """Audit a judge: ask about edits until every kind has its count, none can be made, or the run is stopped.

    Args:
        plan: settings.
        terms: limits, providers and consent.
        run: folder of the audit, new or to be resumed.
        images: real images; none of them may have been used to tune the judge.
        taxonomy: contains the findings to draw.
        observer: receives the progress.

    Raises:
        InputError: a judge is unknown, an image may not be sent to it, or the folder contains another audit or another
            kind of run.
    """
    setup = RunSetup(terms)
    named = models_of(plan.judge) if isinstance(plan.judge, str) else ()
    setup.check(images=[one.image for one in images], named=named, by="--judge")
    jury = jury_of(setup, plan.judge, plan.rubric)
    new = NewRun("audit", plan.seed, {"kind": "audit", "seed": plan.seed})
    async with setup.open(run, new, observer=observer) as opened:
        today = {"judge": f"{jury.name}: {jury.fingerprint}"}
        if changed := await changed_since(opened.journal, "audit.models", today):
            raise InputError(f"{run}: {changed}")
        audit = _Audit(jury, opened, taxonomy, plan, dict.fromkeys(plan.kinds, plan.pairs))
        await _ask_all(audit, images)
        answers = [audit.answers[name] for name in sorted(audit.answers)]
        card = make_card(jury, opened.journal.reader, answers, plan.split, audit.not_made)
    return Audited(card, answers, audit.examples, opened.summary)


async def _ask_all(audit: _Audit, images: Sequence[AuditImage]) -> None:
    plan, opened = audit.plan, audit.opened
    opened.observer.stage_started("audit", audit.left)
    supply = recipes(images, audit.taxonomy, plan.seed)
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
