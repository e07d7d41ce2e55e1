"""Ask the judge that is audited: each answer is a call of the audit's own run, memoised like any other."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from plantain.audit.jury import MOST_MEMBERS, Jury, ask, describe_ending, jury_of
from plantain.audit.pictures import TrialPicture
from plantain.records import EditTask, InputError, Observations, Rubric, SourceImage, TaskKind, TaskState
from plantain.roles import Judge, JudgeRequest
from plantain.rubrics import MED_BANANA
from plantain.runs.open_run import OpenRun
from plantain.runs.progress import SILENT, ProgressObserver
from plantain.runs.settings.terms import Terms
from plantain.runs.setup import NewRun, RunSetup, changed_since

MOST_AGAIN = 100
"""Times that a jury may be asked the same."""


@dataclass(slots=True)
class Asking:
    """A judge and the run that keeps its answers.

    Attributes:
        juries: the judge that is audited, then those that it is compared with.
        opened: the audit's run.
    """

    juries: tuple[Jury, ...]
    opened: OpenRun
    _taken: set[str] = field(default_factory=set)

    @property
    def jury(self) -> Jury:
        return self.juries[0]

    async def take_in(self, picture: TrialPicture) -> bytes:
        """Add an image to the run, once, and return its bytes."""
        if picture.image.id not in self._taken:
            blob = await asyncio.to_thread(self.opened.journal.put_blob, picture.data, "image/jpeg")
            image = replace(picture.image, prepared_sha256=blob.sha256)
            await self.opened.journal.add_images([(image, blob)])
            self._taken.add(picture.image.id)
        return picture.data

    async def observations(
        self, name: str, request: JudgeRequest, *, jury: int = 0, again: int = 0
    ) -> tuple[Observations | None, str]:
        """Return what a judge saw, recorded now or before; or None and why.

        Args:
            name: of the edit, unique in the audit.
            request: the edit.
            jury: index into the juries.
            again: how often it has been asked the same before.
        """
        task = EditTask(
            hashlib.sha256(f"audit\x1f{name}".encode()).hexdigest()[:20],
            request.image.id,
            request.image.modality,
            request.finding.name if request.finding else "edit",
            request.direction,
            TaskKind.BENCH,
        )
        await self.opened.journal.add_tasks([task])
        seen, outcome = await ask(
            self.juries[jury],
            self.opened.calls(task.id, 1),
            request,
            round=1,
            draw=(jury * MOST_AGAIN + again) * MOST_MEMBERS,
        )
        state = TaskState.SUCCESS if outcome.ok else TaskState.STOPPED
        await self.opened.close_task(task.id, state, 1, outcome.reason)
        return seen, "" if seen is not None else describe_ending(outcome)


@asynccontextmanager
async def asking(
    judge: str | Judge,
    terms: Terms,
    run: Path,
    seed: int = 0,
    observer: ProgressObserver = SILENT,
    *,
    rubric: Rubric = MED_BANANA,
    beside: Sequence[str | Judge] = (),
    images: Sequence[SourceImage] = (),
) -> AsyncIterator[Asking]:
    """Open a run for the audit of a judge.

    Args:
        judge: its name (a panel's members separated by commas), or the judge itself.
        terms: limits, providers and consent.
        run: the audit's own folder, made or resumed.
        seed: of the audit.
        observer: receives the progress.
        rubric: by which it judges.
        beside: judges that it is compared with.
        images: that will be sent, for consent.

    Raises:
        InputError: no such judge, or the folder contains another audit or another kind of run.
    """
    setup = RunSetup(terms)
    setup.check(images=images)
    juries = tuple(jury_of(setup, one, rubric) for one in (judge, *beside))
    new = NewRun("audit", seed, {"kind": "audit", "seed": seed})
    async with setup.open(run, new, observer=observer) as opened:
        today = {"judge": f"{juries[0].name}: {juries[0].fingerprint}"}
        today |= {f"beside {jury.name}": jury.fingerprint for jury in juries[1:]}
        changed = await changed_since(opened.journal, "audit.models", today)
        if changed:
            raise InputError(f"{run}: {changed}")
        yield Asking(juries, opened)
