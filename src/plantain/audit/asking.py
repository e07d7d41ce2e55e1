"""Asking the judge that is audited: each answer is a call of the audit's own run, memoised like any other."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from plantain.audit.jury import MOST_MEMBERS, Jury, ask, jury_of
from plantain.audit.pictures import TrialPicture
from plantain.audit.rejudging.stored import describe_ending
from plantain.records import EditTask, InputError, Observations, Rubric, SourceImage, TaskKind, TaskState
from plantain.roles import Judge, JudgeRequest
from plantain.rubrics import MED_BANANA
from plantain.runs.door import Beginning, Door, changed_since
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.open_run import OpenRun
from plantain.runs.settings.terms import Terms

MOST_AGAIN = 100
"""Times that a jury may be asked the same."""


def task_of(name: str) -> str:
    """The id of the task under which an edit of an audit is asked about."""
    return hashlib.sha256(f"audit\x1f{name}".encode()).hexdigest()[:20]


@dataclass(slots=True)
class Asking:
    """A judge, and the run in which its answers are kept. The run that is looked at is only read.

    Attributes:
        juries: the judge that is audited, then those that it is compared with.
        opened: the audit's run.
    """

    juries: tuple[Jury, ...]
    opened: OpenRun
    _taken: dict[str, bytes] = field(default_factory=dict)

    @property
    def jury(self) -> Jury:
        return self.juries[0]

    async def taken_in(self, picture: TrialPicture) -> bytes:
        """The picture's bytes, once they are in this run with what is known of them."""
        if picture.image.id not in self._taken:
            blob = await asyncio.to_thread(self.opened.journal.put_blob, picture.data, "image/jpeg")
            image = replace(picture.image, prepared_sha256=blob.sha256)
            await self.opened.journal.add_images([(image, blob)])
            self._taken[picture.image.id] = picture.data
        return picture.data

    async def observations(
        self, name: str, request: JudgeRequest, *, jury: int = 0, again: int = 0
    ) -> tuple[Observations | None, str]:
        """What a judge saw, recorded now or before; or None and why.

        Args:
            name: tells the edits of an audit apart.
            request: the edit.
            jury: which of the juries.
            again: how often it has been asked the same before.
        """
        about = request.finding.name if request.finding else "edit"
        task = EditTask(
            task_of(name),
            request.image.id,
            request.image.modality,
            about,
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
    """Opens a run for an audit of a judge.

    Args:
        judge: its name (a panel's members with commas between), or the judge itself.
        terms: under which it is asked.
        run: the audit's own folder, made or resumed.
        seed: of the audit.
        observer: told how it goes on.
        rubric: by which it judges.
        beside: judges that it is compared with.
        images: that would be sent, for consent; the gate looks again at each picture that goes.

    Raises:
        InputError: the judge cannot be had, or the folder holds another audit or another kind of run.
    """
    door = Door(terms)
    door.check(images=images)
    juries = tuple(jury_of(door, one, rubric) for one in (judge, *beside))
    async with door.open(
        run, Beginning("audit", seed, {"kind": "audit", "seed": seed}), observer=observer
    ) as opened:
        today = {"judge": f"{juries[0].name}: {juries[0].fingerprint}"}
        today |= {f"beside {jury.name}": jury.fingerprint for jury in juries[1:]}
        changed = await changed_since(opened.journal, "audit.models", today)
        if changed:
            raise InputError(f"{run}: {changed}")
        yield Asking(juries, opened)
